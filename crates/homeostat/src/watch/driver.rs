//! Runs a [`Machine`] on a [`kube::Client`]: raw bytes in, changes out; nothing typed is decoded.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use homeostat_env::Env;
use http_body_util::BodyExt;
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::{Change, Input, Machine, Next, Refusal, Request};
use crate::cache::Entry;
use crate::kind::Kind;

/// How long the server may take to answer a request, and to send the rest of a page.
const ANSWER: Duration = Duration::from_secs(60);

/// The annotation of the bookmark that ends the initial events of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What is watched.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) keep_managed_fields: bool,
}

/// Follows the source until the receiver is gone.
pub(crate) async fn run(
    client: kube::Client,
    env: Env,
    source: Source,
    changes: mpsc::Sender<Change<Entry>>,
) {
    let mut machine = Machine::default();
    let mut lines = None;
    let mut input = Input::Go;
    loop {
        let step = machine.step(input, env.random_unit());
        for change in step.changes {
            if changes.send(change).await.is_err() {
                return;
            }
        }
        input = match step.next {
            Next::Wait(delay) => {
                lines = None;
                env.sleep(delay).await;
                Input::Go
            }
            Next::Request(request) => {
                lines = None;
                let answer = env.timeout(ANSWER, source.send(&client, &request)).await;
                match answer {
                    Ok(Ok(Answer::Page { input, skipped })) => {
                        for why in skipped {
                            if changes.send(Change::Skipped(why)).await.is_err() {
                                return;
                            }
                        }
                        input
                    }
                    Ok(Ok(Answer::Watch(body))) => {
                        lines = Some(Lines { body, buffer: BytesMut::new(), searched: 0 });
                        Input::Opened
                    }
                    Ok(Err(failure)) => failure,
                    Err(_) => Input::Broken(format!("no answer within {ANSWER:?}")),
                }
            }
            Next::Read(idle) => match &mut lines {
                None => Input::Broken("there is nothing to read".to_owned()),
                Some(lines) => match env.timeout(idle, lines.next()).await {
                    Err(_) => Input::Silent,
                    Ok(Err(why)) => Input::Broken(why),
                    Ok(Ok(None)) => Input::Closed,
                    Ok(Ok(Some(line))) => source.event(&line),
                },
            },
        };
    }
}

enum Answer {
    Page { input: Input<Entry>, skipped: Vec<String> },
    Watch(Body),
}

impl Source {
    async fn send(&self, client: &kube::Client, request: &Request) -> Result<Answer, Input<Entry>> {
        let path = self.kind.path(self.namespace.as_deref());
        let query = request.query(self.labels.as_deref());
        let request_is_page = matches!(request, Request::Page { .. });
        let request = http::Request::get(format!("{path}?{query}"))
            .header(http::header::ACCEPT, "application/json")
            // Compressed watch events come as one gzip member each, which few decoders follow.
            .header(http::header::ACCEPT_ENCODING, "identity")
            .body(Body::empty())
            .map_err(|error| Input::Broken(error.to_string()))?;
        let response = client.send(request).await.map_err(|error| Input::Broken(words(&error)))?;
        let status = response.status();
        if status.is_success() && !request_is_page {
            return Ok(Answer::Watch(response.into_body()));
        }
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| Input::Broken(words(&error)))?.to_bytes();
        if status.is_success() {
            return self.page(&body);
        }
        Err(Input::Refused(refusal(status.as_u16(), &body)))
    }

    fn page(&self, body: &[u8]) -> Result<Answer, Input<Entry>> {
        #[derive(Deserialize)]
        struct Page<'a> {
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
        let page: Page<'_> = serde_json::from_slice(body)
            .map_err(|error| Input::Broken(format!("the answer is no list: {error}")))?;
        let (mut items, mut skipped) = (Vec::new(), Vec::new());
        for item in page.items.unwrap_or_default() {
            match Entry::parse(&self.kind, item.get(), self.keep_managed_fields) {
                Ok(entry) => items.push(entry),
                Err(error) => skipped.push(unreadable(item.get(), &error)),
            }
        }
        let input = Input::Page {
            items,
            revision: page.metadata.resource_version,
            token: page.metadata.token.filter(|token| !token.is_empty()),
        };
        Ok(Answer::Page { input, skipped })
    }

    fn event(&self, line: &[u8]) -> Input<Entry> {
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
        match &*event.kind {
            "BOOKMARK" => bookmark(json),
            "ERROR" => Input::Refused(refusal(0, json.as_bytes())),
            kind => match Entry::parse(&self.kind, json, self.keep_managed_fields) {
                Err(error) => Input::Undecodable(unreadable(json, &error)),
                Ok(object) => {
                    let revision = object.header.resource_version.clone();
                    match kind {
                        "ADDED" | "MODIFIED" => Input::Applied { object, revision },
                        "DELETED" => Input::Deleted { object, revision },
                        _ => Input::Undecodable(format!("unknown event type {kind}")),
                    }
                }
            },
        }
    }
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
        annotations: BTreeMap<String, String>,
    }
    match serde_json::from_str::<Bookmark>(json) {
        Err(error) => Input::Undecodable(unreadable(json, &error)),
        Ok(Bookmark { metadata }) => Input::Bookmark {
            revision: metadata.resource_version,
            initial_end: metadata.annotations.get(INITIAL_EVENTS_END).is_some_and(|v| v == "true"),
        },
    }
}

/// A `Status`, or the raw words of a server or proxy that sends something else.
fn refusal(code: u16, body: &[u8]) -> Refusal {
    let mut refusal: Refusal = serde_json::from_slice(body).unwrap_or_else(|_| Refusal {
        message: beginning(&String::from_utf8_lossy(body)),
        ..Refusal::default()
    });
    if refusal.code == 0 {
        refusal.code = code;
    }
    refusal
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

fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !words.contains(&said) {
            words.push_str(": ");
            words.push_str(&said);
        }
        cause = inner.source();
    }
    words
}

/// Splits a streaming body into lines without copying them into strings.
struct Lines {
    body: Body,
    buffer: BytesMut,
    /// How much of the buffer is known to have no line end.
    searched: usize,
}

impl Lines {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            let end = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end {
                let line = self.buffer.split_to(self.searched + end + 1).freeze();
                self.searched = 0;
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(words(&error)),
                // A line without its end was cut off: the watch goes on after the one before it.
                None => return Ok(None),
            }
        }
    }
}
