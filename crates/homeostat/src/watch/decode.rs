//! From the bytes of an answer to what the machine understands; an object that cannot be read is
//! a report, never an error of the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;

use super::driver::Source;
use super::{Input, Refusal, Unreadable};
use crate::cache::{Entry, Form, Maker, Scan};
use crate::key::Key;

/// The annotation of the bookmark that ends the initial events of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// A page of a list.
pub(super) struct Page {
    pub(super) items: Vec<Entry>,
    pub(super) skipped: Vec<Unreadable>,
    pub(super) revision: String,
    pub(super) token: Option<String>,
}

/// Reads the answers about one source.
pub(super) struct Reader(Maker);

impl Reader {
    pub(super) fn new(source: &Source) -> Self {
        let form = Form::new(&source.kind, source.keep_managed_fields);
        Self(Maker::new(form, source.transform.clone()))
    }

    /// Reads the body of a list.
    pub(super) fn page(&mut self, body: &[u8]) -> Result<Page, serde_json::Error> {
        #[derive(Deserialize)]
        struct List<'a> {
            metadata: ListMetadata,
            #[serde(borrow, default)]
            items: Option<Vec<&'a RawValue>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ListMetadata {
            #[serde(default)]
            resource_version: String,
            #[serde(default, rename = "continue")]
            token: Option<String>,
        }
        let list: List<'_> = serde_json::from_slice(body)?;
        let (mut items, mut skipped) = (Vec::new(), Vec::new());
        for item in list.items.unwrap_or_default() {
            let scan = match Scan::of(item.get()) {
                Ok(scan) => scan,
                Err(error) => {
                    skipped.push(nameless(item.get(), &error));
                    continue;
                }
            };
            match self.0.entry(&scan) {
                Ok(entry) => items.push(entry),
                Err(error) => skipped.push(unreadable(&scan, item.get(), &error)),
            }
        }
        let token = list.metadata.token.filter(|token| !token.is_empty());
        Ok(Page { items, skipped, revision: list.metadata.resource_version, token })
    }

    /// Reads one line of a watch.
    pub(super) fn event(&mut self, line: &[u8]) -> Input<Entry> {
        // Once for the whole line: what is text already need not be checked piece by piece.
        let text =
            std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::from);
        let (kind, object) = match Scan::of_event(&text) {
            Ok(event) => event,
            Err(error) => return Input::Undecodable(nameless(&text, &error)),
        };
        let read = match &*kind {
            // No object is lost with it, only how far the stream is: there it begins again.
            "BOOKMARK" => return bookmark(&object).unwrap_or_else(|error| unmarked(&text, &error)),
            "ERROR" => Ok(Input::Refused(status(&object))),
            "ADDED" | "MODIFIED" => self.0.entry(&object).map(|object| {
                let revision = object.header.resource_version.clone();
                Input::Applied { object, revision }
            }),
            "DELETED" => self.0.last_entry(&object).map(|object| {
                let revision = object.header.resource_version.clone();
                Input::Deleted { object, revision }
            }),
            kind => Err(serde_json::Error::custom(format!("unknown event type {kind}"))),
        };
        read.unwrap_or_else(|error| {
            let gone = kind == "DELETED";
            Input::Undecodable(Unreadable { gone, ..unreadable(&object, &text, &error) })
        })
    }
}

/// Reads a `Status`, or takes the raw words of a server or proxy that sends something else.
pub(super) fn refusal(code: u16, body: &[u8]) -> Refusal {
    let mut refusal: Refusal = serde_json::from_slice(body).unwrap_or_else(|_| Refusal {
        message: beginning(&String::from_utf8_lossy(body)),
        ..Refusal::default()
    });
    if refusal.code == 0 {
        refusal.code = code;
    }
    refusal
}

/// The same from an object that was scanned.
fn status(scan: &Scan<'_>) -> Refusal {
    let text = |name| scan.fields.text(name).ok().flatten().unwrap_or_default().into_owned();
    let code = scan.fields.read("code").ok().flatten().unwrap_or_default();
    let details = scan.fields.read("details").ok().flatten().unwrap_or_default();
    Refusal { code, reason: text("reason"), message: text("message"), details }
}

fn bookmark(scan: &Scan<'_>) -> Result<Input<Entry>, serde_json::Error> {
    let annotations: Option<BTreeMap<String, String>> = scan.metadata.read("annotations")?;
    let end =
        annotations.unwrap_or_default().get(INITIAL_EVENTS_END).is_some_and(|it| it == "true");
    let revision = scan.metadata.text("resourceVersion")?;
    let revision = revision.ok_or_else(|| serde_json::Error::missing_field("resourceVersion"))?;
    Ok(Input::Bookmark { revision: revision.into_owned(), initial_end: end })
}

fn unmarked(json: &str, error: &serde_json::Error) -> Input<Entry> {
    Input::Broken(format!("a bookmark cannot be read: {}", nameless(json, error).why))
}

/// What can be said of an object that cannot be read.
fn unreadable(scan: &Scan<'_>, json: &str, error: &serde_json::Error) -> Unreadable {
    let text = |name| scan.metadata.text(name).ok().flatten();
    let name = text("name").filter(|name| !name.is_empty());
    let key = name.map(|name| Key::new(text("namespace").as_deref(), name));
    let [uid, revision] =
        ["uid", "resourceVersion"].map(|name| text(name).unwrap_or_default().into_owned());
    Unreadable { key, uid, revision, ..nameless(json, error) }
}

/// What can be said of something that is not even an object.
fn nameless(json: &str, error: &serde_json::Error) -> Unreadable {
    let why = format!("{error}: {}", beginning(json));
    Unreadable { key: None, uid: String::new(), revision: String::new(), gone: false, why }
}

fn beginning(text: &str) -> String {
    const MOST: usize = 200;
    let mut short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
