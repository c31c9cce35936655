//! Requests, as many at once as asked, with bodies that are made beforehand.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use serde_json::json;
use tokio::sync::mpsc;

/// Where everything is written.
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// What is asked of the API, object by object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    /// The first page of all objects.
    List,
    Create,
    Update,
    /// A merge patch of one field.
    Patch,
    /// A server-side apply of one field.
    Apply,
    Delete,
}

/// How many objects [`Verb::List`] asks for.
pub(crate) const PAGE: usize = 500;

impl Verb {
    /// What it is called in the table.
    pub(crate) fn name(self) -> String {
        match self {
            Self::List => format!("list of {PAGE}"),
            verb => format!("{verb:?}").to_lowercase(),
        }
    }

    fn request(self, number: usize, text: usize) -> Result<Request<Vec<u8>>> {
        let name = format!("map-{number:07}");
        let one = format!("{MAPS}/{name}");
        let write = |request: http::request::Builder, of: &str, body: Vec<u8>| {
            request.header(CONTENT_TYPE, format!("application/{of}")).body(body)
        };
        let applied = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"applied": "1"},
        });
        Ok(match self {
            Self::Get => Request::get(one).body(Vec::new()),
            Self::List => Request::get(format!("{MAPS}?limit={PAGE}")).body(Vec::new()),
            Self::Create => write(Request::post(MAPS), "json", map(&name, text)),
            // Another text, or nothing would be written.
            Self::Update => write(Request::put(one), "json", map(&name, text + 1)),
            Self::Patch => {
                let body = json!({"data": {"patched": "1"}}).to_string().into_bytes();
                write(Request::patch(one), "merge-patch+json", body)
            }
            Self::Apply => {
                let body = applied.to_string().into_bytes();
                let one = format!("{one}?fieldManager=bench-apply");
                write(Request::patch(one), "apply-patch+yaml", body)
            }
            Self::Delete => Request::delete(one).body(Vec::new()),
        }?)
    }
}

/// An object of so many bytes of text, and a few hundred around them.
fn map(name: &str, text: usize) -> Vec<u8> {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "bench", "part": name}},
        "data": {"text": "x".repeat(text)},
    });
    object.to_string().into_bytes()
}

/// Does that to the objects numbered `range`, which have so many bytes of text, `at_once` at a time;
/// how long it took.
pub(crate) async fn run(
    client: &Client,
    verb: Verb,
    range: Range<usize>,
    text: usize,
    at_once: usize,
) -> Result<Duration> {
    let begin = Instant::now();
    let next = Arc::new(AtomicUsize::new(range.start));
    let workers = (0..at_once).map(|_| {
        let (client, next, end) = (client.clone(), next.clone(), range.end);
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return Ok::<_, anyhow::Error>(());
                }
                client.request_text(verb.request(number, text)?).await?;
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await??;
    }
    Ok(begin.elapsed())
}

/// Changes one object; a value that it has already would change nothing, and nobody would hear of it.
pub(crate) async fn change(client: &Client, number: usize, value: usize) -> Result<()> {
    let patch = json!({"data": {"value": value.to_string()}}).to_string();
    let request = Request::patch(format!("{MAPS}/map-{number:07}"))
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .body(patch.into_bytes())?;
    client.request_text(request).await?;
    Ok(())
}

/// Watches; one message per event, and the task ends when the receiver is gone.
pub(crate) async fn watch(client: &Client, seen: mpsc::UnboundedSender<()>) -> Result<()> {
    let list = Request::get(format!("{MAPS}?limit=1")).body(Vec::new())?;
    let list: serde_json::Value = serde_json::from_str(&client.request_text(list).await?)?;
    let revision = list["metadata"]["resourceVersion"].as_str().context("no revision")?;
    let url = format!("{MAPS}?watch=1&resourceVersion={revision}");
    let lines = client.request_stream(Request::get(url).body(Vec::new())?).await?;
    tokio::spawn(async move {
        let mut lines = std::pin::pin!(lines.lines());
        while let Some(Ok(_)) = lines.next().await {
            if seen.send(()).is_err() {
                return;
            }
        }
    });
    Ok(())
}
