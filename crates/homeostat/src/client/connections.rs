//! As many connections as the traffic needs: a server takes a limited number of requests at once on
//! one HTTP/2 connection, and a watch takes one of them for as long as it lives.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;

use super::limited::Limited;

/// How many requests share a connection at most; servers allow 100 and more.
const MOST: u32 = 64;
/// How often the other end of a connection in use is asked whether it is there, and how long it may
/// take to say so.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(15);

/// How much of an answer may be on its way before it is read: enough for a first list at full
/// speed, little enough to be held for every watch.
const WINDOW: u32 = 1024 * 1024;
/// The same for all answers of a connection: as much as all of them may have, or those that nobody
/// reads would hold up the others. A limit only, of what HTTP/2 allows (2³¹ - 1).
const WINDOW_OF_ALL: u32 = MOST * WINDOW;
/// How much of it comes in one piece at most: a piece needs memory of its own, whatever its size.
const PIECE: u32 = 64 * 1024;

/// Which versions of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Any,
    One,
}

type Pool = Client<Limited, Body>;
/// Held once more for every answer under way.
type Token = Arc<()>;

/// A growing set of connections; clones share it.
#[derive(Clone)]
pub(super) struct Connections {
    connector: Limited,
    protocol: Protocol,
    pools: Arc<Mutex<Vec<(Pool, Token)>>>,
}

impl Connections {
    pub(super) fn new(connector: Limited, protocol: Protocol) -> Self {
        Self { connector, protocol, pools: Arc::default() }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Counted>, Error> {
        let (pool, token) = self.pick();
        let answer = pool.request(request).await?;
        Ok(answer.map(|body| Counted { body, _token: token }))
    }

    /// The first connection with room, or another one.
    fn pick(&self) -> (Pool, Token) {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let room =
            |token: &Token| u32::try_from(Arc::strong_count(token)).is_ok_and(|held| held <= MOST);
        if let Some((pool, token)) = pools.iter().find(|(_, token)| room(token)) {
            return (pool.clone(), Arc::clone(token));
        }
        let new = (self.pool(), Arc::new(()));
        pools.push(new.clone());
        new
    }

    fn pool(&self) -> Pool {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
        if self.protocol == Protocol::Any {
            builder
                .http2_initial_stream_window_size(WINDOW)
                .http2_initial_connection_window_size(WINDOW_OF_ALL)
                .http2_max_frame_size(PIECE)
                .http2_keep_alive_interval(PING)
                .http2_keep_alive_timeout(PONG);
        }
        builder.build(self.connector.clone())
    }
}

/// The body of an answer; its connection has room again when it is dropped.
pub(super) struct Counted {
    body: Incoming,
    _token: Token,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
