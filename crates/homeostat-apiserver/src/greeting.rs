//! Whether a client has begun to speak: until its first bytes tell which HTTP it is, nobody else
//! counts the time. Passes everything through as it is.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a client of HTTP/2 begins with; another one differs within its first word.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection that listens for the beginning.
#[derive(Debug)]
pub(crate) struct Greeted<S> {
    stream: S,
    /// How much of [`PREFACE`] was heard; all of it, too, once it is clear that it is not coming.
    heard: usize,
    has_begun: Arc<AtomicBool>,
}

/// Says whether the client has begun.
#[derive(Debug, Clone)]
pub(crate) struct Greeting(Arc<AtomicBool>);

impl Greeting {
    pub(crate) fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S> Greeted<S> {
    pub(crate) fn new(stream: S) -> (Self, Greeting) {
        let has_begun = Arc::<AtomicBool>::default();
        (Self { stream, heard: 0, has_begun: has_begun.clone() }, Greeting(has_begun))
    }

    fn hear(&mut self, bytes: &[u8]) {
        let rest = &PREFACE[self.heard..];
        let is_preface = bytes.iter().zip(rest).all(|(byte, expected)| byte == expected);
        self.heard = if is_preface { self.heard + bytes.len() } else { PREFACE.len() };
        self.heard = self.heard.min(PREFACE.len());
        self.has_begun.store(self.heard == PREFACE.len(), Ordering::Relaxed);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Greeted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        if self.heard < PREFACE.len() {
            self.hear(&into.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Greeted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_begun_when_it_is_clear_what_it_speaks() {
        let begun = |pieces: &[&str]| {
            let (mut stream, greeting) = Greeted::new(());
            pieces.iter().for_each(|piece| stream.hear(piece.as_bytes()));
            greeting.has_begun()
        };
        assert!(!begun(&[]) && !begun(&["P"]) && !begun(&["PR", "I * HTTP/2.0\r\n\r\nSM\r\n\r"]));
        assert!(begun(&["G"]) && begun(&["P", "A"]) && begun(&["PR", "I * HTTP/1.1"]));
        assert!(begun(&["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n and more"]));
        assert!(begun(&["PRI * HTTP/2.0\r\n\r\nSM\r\n\r", "\n", "more"]));
    }
}
