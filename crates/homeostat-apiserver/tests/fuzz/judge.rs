//! What every answer must be, whatever was asked. It knows nothing of what the right answer is.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

use crate::request::Request;

/// The pieces that were read of an answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether the whole body was read.
    pub(crate) ended: bool,
}

impl Answer {
    pub(crate) fn media(&self) -> &str {
        let media = self.headers.get("content-type").and_then(|value| value.to_str().ok());
        media.unwrap_or("").split(';').next().unwrap_or("")
    }

    /// The JSON in the body, if that is what it holds.
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// What a 500 may say, as kube-apiserver's does: a webhook failed, or somebody took away the range
/// that Services get their addresses from.
const FORGIVEN: [&str; 3] = ["webhook", "conversion", "failed to allocate a serviceIP"];

/// What is wrong with the answer; `is_outside` when it came over a connection.
pub(crate) fn judge(request: &Request, answer: &Answer, is_outside: bool) -> Result<(), String> {
    let said = || String::from_utf8_lossy(&answer.body).chars().take(600).collect::<String>();
    if request.method == "HEAD" {
        return if answer.code == 500 { Err("a 500".to_owned()) } else { Ok(()) };
    }
    if answer.code < 400 {
        return content(request, answer).map_err(|why| format!("{why}: {}", said()));
    }
    // What hyper says itself of lines and headers that it does not take.
    if is_outside && matches!(answer.code, 400 | 414 | 431) && answer.body.is_empty() {
        return Ok(());
    }
    // What kube-apiserver says of paths that lead nowhere, too.
    if answer.code == 404 && answer.media() == "text/plain" {
        return Ok(());
    }
    // A refusal can repeat a long list for each of its items; nobody reads that to its end.
    if !answer.ended && answer.body.starts_with(b"{\"kind\":\"Status\"") {
        return Ok(());
    }
    let status = match answer.media() {
        "application/json" => answer.json(),
        "application/yaml" => serde_saphyr::from_slice(&answer.body).ok(),
        _ => None,
    };
    let Some(status) = status else {
        return Err(format!("a {} that is no Status: {}", answer.code, said()));
    };
    if status["kind"] != "Status" || status["status"] != "Failure" {
        return Err(format!("a {} that is no Status: {}", answer.code, said()));
    }
    if status["code"] != answer.code {
        return Err(format!("a {} whose Status has another code: {}", answer.code, said()));
    }
    // A 500 without a reason is an answer of kube-apiserver's, found by comparing.
    if answer.code == 500 && status["reason"] == "InternalError" {
        let words = status["message"].as_str().unwrap_or("");
        if !FORGIVEN.iter().any(|part| words.contains(part)) {
            return Err(format!("a 500: {words}"));
        }
    }
    Ok(())
}

/// Whether a success holds what its media type says.
fn content(request: &Request, answer: &Answer) -> Result<(), String> {
    if answer.code == 304 || answer.code == 101 {
        return Ok(());
    }
    match answer.media() {
        "application/json" if is_stream(request, answer) => events(answer),
        "application/json" if answer.headers.contains_key("content-encoding") => Ok(()),
        "application/json" => {
            serde_json::from_slice::<Value>(&answer.body).map_err(|error| error.to_string())?;
            Ok(())
        }
        "application/yaml" => {
            serde_saphyr::from_slice::<Value>(&answer.body).map_err(|error| error.to_string())?;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn is_stream(request: &Request, answer: &Answer) -> bool {
    !answer.ended || request.target.contains("watch")
}

/// A stream holds one event per line; one that was left early may end in the middle.
fn events(answer: &Answer) -> Result<(), String> {
    let words = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"];
    let pieces = serde_json::Deserializer::from_slice(&answer.body).into_iter::<Value>();
    for event in pieces {
        let event = match event {
            Ok(event) => event,
            Err(error) if error.is_eof() && !answer.ended => return Ok(()),
            Err(error) => return Err(format!("not a stream of events: {error}")),
        };
        let known = event["type"].as_str().is_some_and(|word| words.contains(&word));
        // The word "watch" alone does not make a watch: a document is a document.
        if answer.ended && !known && event.get("object").is_none() {
            return Ok(());
        }
        if !known || !event["object"].is_object() {
            return Err("not an event".to_owned());
        }
        if event["type"] == "ERROR" && event["object"]["code"] == 500 {
            return Err("a 500 in a stream".to_owned());
        }
    }
    Ok(())
}
