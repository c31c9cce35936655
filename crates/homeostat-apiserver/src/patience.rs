//! Clients that stop reading a watch: what they watch is let go of, or the connection is.
//!
//! Nobody asks a watch for more while its client takes nothing, so neither its length nor the limits
//! of the past would ever reach it. Over HTTP/1.1 the socket is stuck then ([`Patient`]); over HTTP/2
//! only the stream may be, while others of the same connection go on ([`Unread`]). Whoever reads slowly
//! is not meant (a batch of events in a minute will do), nor whoever reads a log: a pager may wait for
//! days.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use homeostat_env::Env;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::BoxError;

use crate::http::Body;

/// A client that takes nothing of a watch for so long is not waited for any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// A socket that fails when nothing can be written for too long, while a watch is what it carries.
pub(crate) struct Patient<S> {
    stream: S,
    env: Env,
    carries_watch: Arc<AtomicBool>,
    /// Runs while the socket takes nothing.
    stuck: Option<BoxFuture<'static, ()>>,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, env: &Env, carries_watch: &Arc<AtomicBool>) -> Self {
        let carries_watch = carries_watch.clone();
        Self { stream, env: env.clone(), carries_watch, stuck: None }
    }

    fn judge(
        &mut self,
        written: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() || !self.carries_watch.load(Ordering::Relaxed) {
            self.stuck = None;
            return written;
        }
        let env = &self.env;
        let stuck = self.stuck.get_or_insert_with(|| {
            let env = env.clone();
            Box::pin(async move { env.sleep(PATIENCE).await })
        });
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.judge(written, cx)
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

/// The watches of one connection, and since when each of them waits for its client.
#[derive(Default)]
pub(crate) struct Unread {
    watches: Mutex<Vec<Weak<Mutex<Watch>>>>,
    /// Somebody looks at the clock for all of them.
    is_timed: AtomicBool,
    waiting: Notify,
}

struct Watch {
    /// Gone when the client took too long.
    body: Option<Body>,
    /// When something was handed out for which nobody has come back yet.
    since: Option<Instant>,
}

impl Unread {
    /// The same body, which can be let go of while nobody asks for more of it.
    pub(crate) fn guard(self: &Arc<Self>, body: Body, env: &Env) -> Body {
        let watch = Arc::new(Mutex::new(Watch { body: Some(body), since: None }));
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|known| known.strong_count() > 0);
        watches.push(Arc::downgrade(&watch));
        Guarded { watch, all: self.clone(), env: env.clone() }.boxed_unsync()
    }

    /// Lets go of whatever nobody asks for; runs for as long as the connection does.
    pub(crate) async fn let_go(&self, env: &Env) -> Infallible {
        loop {
            // Before the look: who begins to wait after it says so.
            self.is_timed.store(false, Ordering::SeqCst);
            match self.look(env.instant()) {
                Some(next) => {
                    self.is_timed.store(true, Ordering::SeqCst);
                    env.sleep_until(next).await;
                }
                None => self.waiting.notified().await,
            }
        }
    }

    /// Lets go of those whose time is over; when that of the next one is.
    fn look(&self, now: Instant) -> Option<Instant> {
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut next: Option<Instant> = None;
        for watch in watches.iter().filter_map(Weak::upgrade) {
            let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(end) = watch.since.map(|since| since + PATIENCE) else { continue };
            if end <= now {
                watch.since = None;
                watch.body = None;
                tracing::debug!("a watch was not read and is over");
            } else {
                next = Some(next.map_or(end, |next| next.min(end)));
            }
        }
        next
    }
}

/// A watch's body as the connection sees it.
struct Guarded {
    watch: Arc<Mutex<Watch>>,
    all: Arc<Unread>,
    env: Env,
}

impl http_body::Body for Guarded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.since = None;
        let Some(body) = watch.body.as_mut() else {
            return Poll::Ready(Some(Err("the client did not read what it watches".into())));
        };
        let polled = Pin::new(body).poll_frame(context);
        if let Poll::Ready(Some(Ok(_))) = polled {
            watch.since = Some(self.env.instant());
            if !self.all.is_timed.swap(true, Ordering::SeqCst) {
                self.all.waiting.notify_one();
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.body.as_ref().is_some_and(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
