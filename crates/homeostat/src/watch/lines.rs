//! Splits a streaming body into lines without copying them into strings.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use kube::client::Body;

/// The lines of a body; blank ones are left out.
pub(super) struct Lines {
    body: Body,
    buffer: BytesMut,
    /// How much of the buffer is known to have no line end.
    searched: usize,
}

impl Lines {
    pub(super) fn of(body: Body) -> Self {
        Self { body, buffer: BytesMut::new(), searched: 0 }
    }

    /// The next line; `None` at the end of the body. A dropped call loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, kube::Error> {
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
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                // A line without its end was cut off: the watch goes on after the one before it.
                None => return Ok(None),
            }
        }
    }
}
