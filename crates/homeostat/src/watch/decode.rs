//! From the bytes of an answer to what the machine understands; an object that cannot be read is
//! a report, never an error of the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::driver::Source;
use super::{Input, Refusal};
use crate::cache::Entry;

/// The annotation of the bookmark that ends the initial events of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// A page of a list.
pub(super) struct Page {
    pub(super) items: Vec<Entry>,
    pub(super) skipped: Vec<String>,
    pub(super) revision: String,
    pub(super) token: Option<String>,
}

/// Reads the body of a list.
pub(super) fn page(source: &Source, body: &[u8]) -> Result<Page, serde_json::Error> {
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
        match Entry::parse(&source.kind, item.get(), source.keep_managed_fields) {
            Ok(entry) => items.push(entry),
            Err(error) => skipped.push(unreadable(item.get(), &error)),
        }
    }
    let token = list.metadata.token.filter(|token| !token.is_empty());
    Ok(Page { items, skipped, revision: list.metadata.resource_version, token })
}

/// Reads one line of a watch.
pub(super) fn event(source: &Source, line: &[u8]) -> Input<Entry> {
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let event: Event<'_> = match serde_json::from_slice(line) {
        Ok(event) => event,
        Err(error) => {
            return Input::Undecodable(unreadable(&String::from_utf8_lossy(line), &error));
        }
    };
    let json = event.object.get();
    let kind = match &*event.kind {
        "BOOKMARK" => return bookmark(json),
        "ERROR" => return Input::Refused(refusal(0, json.as_bytes())),
        kind => kind,
    };
    match Entry::parse(&source.kind, json, source.keep_managed_fields) {
        Err(error) => Input::Undecodable(unreadable(json, &error)),
        Ok(object) => {
            let revision = object.header.resource_version.clone();
            match kind {
                "ADDED" | "MODIFIED" => Input::Applied { object, revision },
                "DELETED" => Input::Deleted { object, revision },
                _ => Input::Undecodable(format!("unknown event type {kind}")),
            }
        }
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

fn bookmark(json: &str) -> Input<Entry> {
    #[derive(Deserialize)]
    struct Bookmark {
        metadata: BookmarkMetadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct BookmarkMetadata {
        resource_version: String,
        #[serde(default)]
        annotations: Option<BTreeMap<String, String>>,
    }
    match serde_json::from_str::<Bookmark>(json) {
        Err(error) => Input::Undecodable(unreadable(json, &error)),
        Ok(Bookmark { metadata }) => {
            let annotations = metadata.annotations.unwrap_or_default();
            Input::Bookmark {
                revision: metadata.resource_version,
                initial_end: annotations.get(INITIAL_EVENTS_END).is_some_and(|end| end == "true"),
            }
        }
    }
}

fn unreadable(json: &str, error: &serde_json::Error) -> String {
    format!("an object cannot be read ({error}): {}", beginning(json))
}

fn beginning(text: &str) -> String {
    const MOST: usize = 200;
    let mut short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
