//! Splits a streaming body into lines without copying them into strings.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use kube::client::Body;

/// The lines of a body; blank ones are left out.
pub(super) struct Lines {
    body: Body,
    /// What has come and was not looked at yet.
    frame: Bytes,
    /// The beginning of a line whose end has not come.
    begun: BytesMut,
}

impl Lines {
    pub(super) fn of(body: Body) -> Self {
        Self { body, frame: Bytes::new(), begun: BytesMut::new() }
    }

    /// The next line; `None` at the end of the body. A dropped call loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, kube::Error> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.frame) {
                let mut line = self.frame.split_to(end + 1);
                // Most lines come in one piece, which is then not copied.
                if !self.begun.is_empty() {
                    self.begun.extend_from_slice(&line);
                    line = self.begun.split().freeze();
                }
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some(line));
            }
            self.begun.extend_from_slice(&std::mem::take(&mut self.frame));
            match self.body.frame().await {
                Some(frame) => self.frame = frame?.into_data().unwrap_or_default(),
                // A line without its end was cut off: the watch goes on after the one before it.
                None => return Ok(None),
            }
        }
    }
}
