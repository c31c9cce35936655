//! One request, whole: it can be sent again, made smaller, and shown to people.

use std::fmt;

use bytes::Bytes;
use futures::stream;
use homeostat_apiserver::Body;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tower::BoxError;

/// Bodies are shown up to here.
const SHOWN: usize = 2000;

/// How the body comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Delivery {
    /// In one piece.
    #[default]
    Whole,
    /// In small pieces.
    Pieces,
    /// The second half never comes.
    Stalls,
    /// The connection breaks after the first half.
    Breaks,
}

/// What is sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) delivery: Delivery,
}

impl Request {
    pub(crate) fn get(target: impl Into<String>, accept: &str) -> Self {
        let headers = vec![("accept".to_owned(), accept.to_owned())];
        Self { method: "GET".to_owned(), target: target.into(), headers, ..Self::default() }
    }

    /// The request as the server gets it; `None` for what no connection would let through.
    pub(crate) fn build(&self) -> Option<http::Request<Body>> {
        let mut request =
            http::Request::builder().method(self.method.as_str()).uri(self.target.as_str());
        for (name, value) in &self.headers {
            request = request.header(name, value.as_bytes());
        }
        request.body(self.body()).ok()
    }

    fn body(&self) -> Body {
        let half = self.body.len() / 2;
        let piece = |bytes: &[u8]| Ok(Frame::data(Bytes::copy_from_slice(bytes)));
        let pieces: Vec<Result<Frame<Bytes>, BoxError>> = match self.delivery {
            Delivery::Whole => vec![piece(&self.body)],
            Delivery::Pieces => self.body.chunks(self.body.len() / 5 + 1).map(piece).collect(),
            Delivery::Stalls => {
                let begun = stream::iter([piece(&self.body[..half])]);
                let stalled = futures::StreamExt::chain(begun, stream::pending());
                return StreamBody::new(stalled).boxed_unsync();
            }
            Delivery::Breaks => vec![piece(&self.body[..half]), Err("connection reset".into())],
        };
        StreamBody::new(stream::iter(pieces)).boxed_unsync()
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.method, self.target)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        if self.delivery != Delivery::Whole {
            writeln!(f, "(the body: {:?})", self.delivery)?;
        }
        if self.body.is_empty() {
            return Ok(());
        }
        let shown = &self.body[..self.body.len().min(SHOWN)];
        writeln!(
            f,
            "\n{}",
            String::from_utf8_lossy(shown).escape_debug().to_string().replace("\\\"", "\"")
        )?;
        if shown.len() < self.body.len() {
            writeln!(f, "… {} bytes in all", self.body.len())?;
        }
        Ok(())
    }
}
