//! A connection that is read ahead: TLS asks for a few kilobytes at a time, and a system call for
//! each would cost more than deciphering them.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::either::Either;

/// How much is read at once.
const AT_ONCE: usize = 64 * 1024;

/// A connection to a proxy that is enciphered itself.
pub(super) type Secured = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A TCP connection, enciphered as far as a proxy or not; writes go straight through.
pub(super) struct Ahead(BufReader<Either<TcpStream, TokioIo<Secured>>>);

impl Ahead {
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self(BufReader::with_capacity(AT_ONCE, Either::Left(stream)))
    }

    pub(super) fn secured(stream: Secured) -> Self {
        Self(BufReader::with_capacity(AT_ONCE, Either::Right(TokioIo::new(stream))))
    }
}

impl Connection for Ahead {
    fn connected(&self) -> Connected {
        match self.0.get_ref() {
            Either::Left(stream) => stream.connected(),
            Either::Right(stream) => stream.inner().connected(),
        }
    }
}

impl AsyncRead for Ahead {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Ahead {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
