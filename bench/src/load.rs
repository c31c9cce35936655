//! Requests, as many at once as asked, with bodies that are made beforehand.

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

/// An object of about one kilobyte.
pub(crate) fn map(name: &str) -> Vec<u8> {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "bench", "part": name}},
        "data": {"text": "x".repeat(700)},
    });
    object.to_string().into_bytes()
}

/// Creates the objects numbered `range`, `at_once` at a time; how long that took.
pub(crate) async fn create(
    client: &Client,
    range: std::ops::Range<usize>,
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
                let request = Request::post(MAPS)
                    .header(CONTENT_TYPE, "application/json")
                    .body(map(&format!("map-{number:07}")))?;
                client.request_text(request).await?;
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await??;
    }
    Ok(begin.elapsed())
}

/// Gets one object `count` times.
pub(crate) async fn get(client: &Client, number: usize, count: usize) -> Result<()> {
    for _ in 0..count {
        let request = Request::get(format!("{MAPS}/map-{number:07}")).body(Vec::new())?;
        client.request_text(request).await?;
    }
    Ok(())
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
