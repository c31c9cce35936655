//! Building answers.

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderValue, WARNING, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use serde_json::Value;

use super::body::{Body, full};
use super::negotiate::Encoding;
use crate::kinds::builtin;
use crate::status::Status;

/// Warnings are cut to this many characters once they would fill too much of the header.
const LONGEST_WARNING: usize = 256;
/// Warnings that are longer together are cut.
const LONGEST_TOGETHER: usize = 4096;

/// An answer of JSON bytes, turned into what the client reads.
pub(crate) fn document(code: u16, json: impl Into<Bytes>, encoding: Encoding) -> Response<Body> {
    let json = json.into();
    let bytes = match encoding {
        Encoding::Json => line(json),
        Encoding::Yaml => match yaml(&json) {
            Ok(text) => text.into(),
            Err(status) => return refusal(&status),
        },
    };
    let mut response = verbatim(code, bytes);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(encoding.media_type()));
    response
}

/// An answer of JSON bytes and nothing else.
pub(crate) fn verbatim(code: u16, json: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(json));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let media = HeaderValue::from_static(Encoding::Json.media_type());
    response.headers_mut().insert(CONTENT_TYPE, media);
    response
}

/// The bytes as a line; only those that are somebody else's too are copied.
fn line(json: Bytes) -> Bytes {
    let mut bytes = json.try_into_mut().unwrap_or_else(|shared| {
        let mut copy = BytesMut::with_capacity(shared.len() + 1);
        copy.extend_from_slice(&shared);
        copy
    });
    bytes.extend_from_slice(b"\n");
    bytes.freeze()
}

fn yaml(json: &[u8]) -> Result<String, Status> {
    let value: Value =
        serde_json::from_slice(json).map_err(|error| Status::internal(error.to_string()))?;
    serde_saphyr::to_string(&value).map_err(|error| Status::internal(error.to_string()))
}

/// An answer of a JSON value.
pub(crate) fn value(code: u16, value: &Value, encoding: Encoding) -> Response<Body> {
    document(code, value.to_string(), encoding)
}

/// A refusal in JSON, which every client reads.
pub(crate) fn refusal(status: &Status) -> Response<Body> {
    refusal_in(status, Some(Encoding::Json))
}

/// A refusal in what the client reads best; for one that reads nothing, in JSON for people.
pub(crate) fn refusal_in(status: &Status, encoding: Option<Encoding>) -> Response<Body> {
    let told = status.to_value();
    let mut response = match encoding {
        Some(encoding) => value(status.code, &told, encoding),
        None => verbatim(status.code, format!("{told:#}")),
    };
    warn(&mut response, &status.warnings);
    if let Some(seconds) = status.details.as_ref().and_then(|d| d.get("retryAfterSeconds"))
        && let Ok(value) = HeaderValue::from_str(&seconds.to_string())
    {
        response.headers_mut().insert(http::header::RETRY_AFTER, value);
    }
    response
}

/// An answer for people and probes, which is what it says it is.
pub(crate) fn text(code: u16, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = plain(code, text);
    let never = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, never);
    response
}

/// Text of any kind.
pub(crate) fn plain(code: u16, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(text));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// Where nothing is served: a refusal in the groups of the server itself, a page everywhere else.
pub(crate) fn nothing_here(group: &str) -> Result<Response<Body>, Status> {
    if builtin().iter().any(|kind| kind.group == group) {
        return Err(Status::no_such_resource());
    }
    Ok(text(404, "404 page not found\n"))
}

/// Adds a `Warning` header before those that are there.
pub(crate) fn warn_first(response: &mut Response<Body>, warning: &str) {
    let others: Vec<HeaderValue> = response.headers().get_all(WARNING).iter().cloned().collect();
    response.headers_mut().remove(WARNING);
    warn(response, &[warning.to_owned()]);
    for other in others {
        response.headers_mut().append(WARNING, other);
    }
}

/// Adds `Warning` headers, which kubectl shows. Where they are too much together, long ones are cut
/// and the last ones left out.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    let (mut written, mut cut) = (0, false);
    let mut kept: Vec<&str> = Vec::new();
    // What cannot stand in a header is not told.
    let fits = |warning: &&String| !warning.is_empty() && !warning.contains(char::is_control);
    for warning in warnings.iter().filter(fits) {
        if cut && written >= LONGEST_TOGETHER {
            break;
        }
        if kept.contains(&warning.as_str()) {
            continue;
        }
        kept.push(warning);
        let length = |warning: &str| warning.chars().count();
        written += if cut { length(warning).min(LONGEST_WARNING) } else { length(warning) };
        if !cut && written > LONGEST_TOGETHER {
            cut = true;
            written = kept.iter().map(|warning| length(warning).min(LONGEST_WARNING)).sum();
        }
    }
    let longest = if cut { LONGEST_WARNING } else { LONGEST_TOGETHER };
    for warning in kept {
        let short: String = warning.chars().take(longest).collect();
        let escaped = short.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(header) = HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            response.headers_mut().append(WARNING, header);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(warnings: &[String]) -> Vec<usize> {
        let mut response = Response::new(full(""));
        warn(&mut response, warnings);
        response.headers().get_all(WARNING).iter().map(HeaderValue::len).collect()
    }

    #[test]
    fn however_many_warnings_there_are_the_headers_stay_small() {
        let around = "299 - \"\"".len();
        let long = |count: usize| -> Vec<String> {
            (0..count).map(|at| format!("{at:5}{}", "x".repeat(1000))).collect()
        };
        assert_eq!(headers(&long(4)), vec![1005 + around; 4]);
        assert_eq!(headers(&long(5)), vec![LONGEST_WARNING + around; 5]);
        assert_eq!(headers(&long(50_000)), vec![LONGEST_WARNING + around; 16]);
        assert_eq!(headers(&["a".to_owned(), String::new(), "a".to_owned()]), [1 + around]);
    }
}
