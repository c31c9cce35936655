//! A server to ask, on virtual time, with everything outside it played: in this process, or over a
//! socket of it.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Once};
use std::time::Duration;

use bytes::BytesMut;
use futures::FutureExt as _;
use homeostat_apiserver::kinds::Kind;
use homeostat_apiserver::{Body, Server, ServerConfig};
use homeostat_env::Env;
use http_body_util::BodyExt as _;
use jiff::Timestamp;

use crate::dice::Dice;
use crate::judge::{self, Answer};
use crate::outside::{Nodes, Webhooks};
use crate::request::Request;
use crate::trail::Trail;
use crate::wire::Wire;

/// No answer may take longer: webhooks are asked for half a minute each, bodies waited for one.
const PATIENCE: Duration = Duration::from_secs(3600);
/// A stream is read for so long, and for so many pieces; they are smaller over a socket.
const STREAM: Duration = Duration::from_secs(90);
const PIECES: usize = 20;
const PIECES_OVER_A_SOCKET: usize = 2000;

/// One server and what is known of the questions put to it.
pub(crate) struct World<'a> {
    seed: u64,
    env: Env,
    server: Server,
    wire: Option<Wire>,
    trail: &'a Trail,
}

/// How requests reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    InProcess,
    Http1,
    Http2,
}

impl Way {
    /// One round in four goes over a socket.
    pub(crate) fn of(seed: u64) -> Self {
        match seed % 8 {
            3 => Self::Http1,
            7 => Self::Http2,
            _ => Self::InProcess,
        }
    }
}

thread_local! {
    /// The words of a panic on this thread, whoever caught it: a round has a thread for itself.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn listen_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANIC.with(|words| words.replace(Some(panic.to_string())));
            before(panic);
        }));
    });
}

impl<'a> World<'a> {
    /// A fresh server; must be made inside a paused runtime.
    pub(crate) fn new(seed: u64, trail: &'a Trail) -> Self {
        let env = Env::simulated(seed, Timestamp::UNIX_EPOCH);
        let config = ServerConfig { history: 64, ..ServerConfig::new(env.clone()) };
        let server = Server::new(config);
        server.connect_nodes(Arc::new(Nodes));
        server.connect_webhooks(Arc::new(Webhooks(Arc::new(Dice::new(!seed)))));
        listen_for_panics();
        let wire = match Way::of(seed) {
            Way::InProcess => None,
            way => Some(Wire::to(&server, &env, way == Way::Http2)),
        };
        Self { seed, env, server, wire, trail }
    }

    /// The kinds served right now.
    pub(crate) fn kinds(&self) -> Vec<Arc<Kind>> {
        self.server.registry().catalogue().all().to_vec()
    }

    /// Asks; the error is a finding. `None` for what cannot be sent at all.
    pub(crate) async fn ask(&self, request: &Request) -> Result<Option<Answer>, String> {
        let Some(sent) = request.build() else { return Ok(None) };
        PANIC.take();
        let asked = AssertUnwindSafe(Box::pin(self.exchange(request, sent))).catch_unwind();
        let asked = self.env.timeout(PATIENCE, asked);
        let answer = match self.trail.follow(self.seed, request, asked).await {
            Err(_) => return Err("no answer".to_owned()),
            Ok(Err(_)) => return Err("a panic while the answer was read".to_owned()),
            Ok(Ok(answer)) => answer?,
        };
        if let Some(words) = PANIC.take() {
            return Err(words);
        }
        let Some(answer) = answer else { return Ok(None) };
        judge::judge(request, &answer, self.wire.is_some())?;
        Ok(Some(answer))
    }

    /// Sends bytes that are no request, if there is a wire to send them over.
    pub(crate) async fn disturb(&self, dice: &Dice) -> Result<(), String> {
        let Some(wire) = &self.wire else { return Ok(()) };
        PANIC.take();
        wire.disturb(dice).await?;
        PANIC.take().map_or(Ok(()), Err)
    }

    async fn exchange(
        &self,
        request: &Request,
        sent: http::Request<Body>,
    ) -> Result<Option<Answer>, String> {
        let answer = match &self.wire {
            None => self.server.handle(sent).await,
            Some(wire) => match wire.send(request, sent).await? {
                Some(answer) => answer,
                None => return Ok(None),
            },
        };
        let (parts, mut body) = answer.into_parts();
        let (mut bytes, mut ended) = (BytesMut::new(), false);
        let pieces = if self.wire.is_some() { PIECES_OVER_A_SOCKET } else { PIECES };
        for _ in 0..pieces {
            match self.env.timeout(STREAM, body.frame()).await {
                Err(_) => break,
                Ok(None) => {
                    ended = true;
                    break;
                }
                Ok(Some(Ok(frame))) => bytes.extend(frame.into_data().ok()),
                Ok(Some(Err(error))) => return Err(format!("a body that breaks off: {error}")),
            }
        }
        let (code, headers) = (parts.status.as_u16(), parts.headers);
        if let Some(wire) = self.wire.as_ref().filter(|_| !ended) {
            wire.leave().await;
        }
        Ok(Some(Answer { code, headers, body: bytes.freeze(), ended }))
    }
}
