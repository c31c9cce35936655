//! How an answer is written: in lines for people, compressed where it is large and the client says
//! that it can read that. Streams are left alone, and so is what others have written.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, USER_AGENT, VARY,
};
use http::{HeaderMap, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::body::{Body, full};
use crate::aside;
use crate::registry::options;

/// Only what is larger is compressed.
const LARGE: usize = 128 * 1024;
/// Programs that show what they get to people.
const FOR_PEOPLE: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];

/// Stands with an answer that somebody else has written: it is passed on unread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsItCame;

/// What a request says about how its answer is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dress {
    in_lines: bool,
    compressed: bool,
}

impl Dress {
    pub(crate) fn wanted<B>(request: &Request<B>) -> Self {
        let headers = request.headers();
        Self { in_lines: in_lines(request), compressed: can_decompress(headers) }
    }

    /// Writes the answer as it is wanted.
    pub(crate) async fn put_on(self, response: Response<Body>) -> Response<Body> {
        if response.extensions().get::<AsItCame>().is_some() {
            return response;
        }
        let media = response.headers().get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let media = media.unwrap_or_default();
        let is_json = media.starts_with("application/json");
        let is_known = is_json || media.starts_with("application/yaml");
        let size = response.body().size_hint().exact().unwrap_or(0);
        let compressed = self.compressed && size > LARGE as u64;
        let in_lines = self.in_lines && is_json && size > 0;
        if !is_known || response.headers().contains_key(CONTENT_ENCODING) {
            return response;
        }
        if !compressed && !in_lines {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        let Ok(body) = body.collect().await else { return Response::from_parts(parts, full("")) };
        let mut bytes = body.to_bytes();
        if in_lines && let Ok(value) = serde_json::from_slice::<Value>(&bytes) {
            bytes = format!("{value:#}").into();
        }
        if compressed && let Some(smaller) = aside::aside(|| gzip(&bytes)) {
            bytes = smaller;
            parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        Response::from_parts(parts, full(bytes))
    }
}

fn gzip(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

fn can_decompress(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.unwrap_or_default().split(',').any(|token| token.trim() == "gzip")
}

fn in_lines<B>(request: &Request<B>) -> bool {
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let query = request.uri().query().filter(|query| query.contains("pretty"));
    let given = query.and_then(|query| options::read(query).remove("pretty"));
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        return matches!(given.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let agent = text(USER_AGENT).unwrap_or_default();
    FOR_PEOPLE.iter().any(|program| agent.starts_with(program))
        || text(ACCEPT).is_some_and(|accepted| accepted.contains(";pretty=1"))
}
