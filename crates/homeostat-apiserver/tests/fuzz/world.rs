//! A server to ask, on virtual time, with everything outside it played.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures::FutureExt as _;
use homeostat_apiserver::kinds::Kind;
use homeostat_apiserver::{Server, ServerConfig};
use homeostat_env::Env;
use http_body_util::BodyExt as _;
use jiff::Timestamp;

use crate::dice::Dice;
use crate::judge::{self, Answer};
use crate::outside::{Nodes, Webhooks};
use crate::request::Request;
use crate::trail::Trail;

/// No answer may take longer: webhooks are asked for half a minute each, bodies waited for one.
const PATIENCE: Duration = Duration::from_secs(3600);
/// A stream is read for so long, and for so many pieces.
const STREAM: Duration = Duration::from_secs(90);
const PIECES: usize = 20;

/// One server and what is known of the questions put to it.
pub(crate) struct World<'a> {
    seed: u64,
    env: Env,
    server: Server,
    trail: &'a Trail,
}

impl<'a> World<'a> {
    /// A fresh server; must be made inside a paused runtime.
    pub(crate) fn new(seed: u64, trail: &'a Trail) -> Self {
        let env = Env::simulated(seed, Timestamp::UNIX_EPOCH);
        let config = ServerConfig { history: 64, ..ServerConfig::new(env.clone()) };
        let server = Server::new(config);
        server.connect_nodes(Arc::new(Nodes));
        server.connect_webhooks(Arc::new(Webhooks(Arc::new(Dice::new(!seed)))));
        Self { seed, env, server, trail }
    }

    /// The kinds served right now.
    pub(crate) fn kinds(&self) -> Vec<Arc<Kind>> {
        self.server.registry().catalogue().all().to_vec()
    }

    /// Asks; the error is a finding. `None` for what cannot be sent at all.
    pub(crate) async fn ask(&self, request: &Request) -> Result<Option<Answer>, String> {
        let Some(sent) = request.build() else { return Ok(None) };
        let asked = AssertUnwindSafe(Box::pin(self.exchange(sent))).catch_unwind();
        let asked = self.env.timeout(PATIENCE, asked);
        let answer = match self.trail.follow(self.seed, request, asked).await {
            Err(_) => return Err("no answer".to_owned()),
            Ok(Err(_)) => return Err("a panic while the answer was read".to_owned()),
            Ok(Ok(answer)) => answer?,
        };
        judge::judge(request, &answer)?;
        Ok(Some(answer))
    }

    async fn exchange(
        &self,
        request: http::Request<homeostat_apiserver::Body>,
    ) -> Result<Answer, String> {
        let (parts, mut body) = self.server.handle(request).await.into_parts();
        let (mut bytes, mut ended) = (BytesMut::new(), false);
        for _ in 0..PIECES {
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
        Ok(Answer { code, headers, body: bytes.freeze(), ended })
    }
}
