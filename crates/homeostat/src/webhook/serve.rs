//! The listener of the webhooks: TLS, HTTP, one answer per request. It knows no kinds.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Handler;
use super::current::Current;
use crate::Env;
use crate::error::{Error, Result};
use crate::metrics::Metrics;

/// How long a caller may take to shake hands, and to say what it wants.
const HELLO: Duration = Duration::from_secs(10);
/// How long a handler may take; the API waits no longer than this.
const LIMIT: Duration = Duration::from_secs(30);
/// The longest question: the API sends an object and its old self.
const LONGEST: usize = 7 * 1024 * 1024;

/// What answers, by path.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) handlers: Arc<BTreeMap<String, Handler>>,
    pub(super) env: Env,
    pub(super) metrics: Metrics,
}

/// A listener that answers until it is closed; dropped, it ends at once.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    certificate: Arc<Current>,
    accept: JoinHandle<Option<()>>,
    /// Cancelled when nobody new is answered.
    closing: CancellationToken,
    running: CancellationToken,
    stop: DropGuard,
}

impl Serving {
    /// Answers nobody new, gives the address back, and lets the answers that are being given finish
    /// within `limit`; whether they did.
    pub(crate) async fn close(mut self, env: &Env, limit: Duration) -> bool {
        self.closing.cancel();
        let in_time = env.timeout(limit, &mut self.accept).await.is_ok();
        drop(self.stop);
        if !in_time {
            drop(self.accept.await);
        }
        in_time
    }

    /// Runs `work` for as long as the listener.
    pub(super) fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(self.running.clone().run_until_cancelled_owned(work)));
    }

    /// Who can tell what is wrong with it.
    pub(crate) fn observer(&self) -> Observer {
        Observer(self.certificate.clone())
    }
}

/// Tells how a listener is; cheap to clone.
#[derive(Clone)]
pub(crate) struct Observer(Arc<Current>);

impl Observer {
    /// What is wrong, in words.
    pub(crate) fn problem(&self) -> Option<String> {
        self.0.problem()
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("webhooks")
    }
}

pub(super) async fn listen(
    address: SocketAddr,
    certificate: Arc<Current>,
    site: Site,
) -> Result<Serving> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Error::transient(format!("{address} cannot be listened on: {error}")))?;
    let address = listener.local_addr().map_err(Error::transient)?;
    let (stop, closing) = (CancellationToken::new(), CancellationToken::new());
    let accept = accept(listener, certificate.clone(), site, closing.clone());
    let accept = tokio::spawn(stop.clone().run_until_cancelled_owned(accept));
    let running = stop.clone();
    Ok(Serving { address, certificate, accept, closing, running, stop: stop.drop_guard() })
}

/// Answers whoever comes until it is `closing`, then those who are here.
async fn accept(
    listener: TcpListener,
    certificate: Arc<Current>,
    site: Site,
    closing: CancellationToken,
) {
    let mut callers = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = closing.cancelled() => break,
            Some(_) = callers.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (certificate, site) = (certificate.clone(), site.clone());
                callers.spawn(converse(stream, certificate, site, closing.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "a caller could not be heard");
                site.env.sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    while callers.join_next().await.is_some() {}
}

async fn converse(
    stream: TcpStream,
    certificate: Arc<Current>,
    site: Site,
    closing: CancellationToken,
) {
    let Some(acceptor) = certificate.acceptor().await else {
        return tracing::debug!("there is no certificate yet");
    };
    let greeted = site.env.timeout(HELLO, acceptor.accept(stream));
    let stream = match closing.run_until_cancelled(greeted).await {
        Some(Ok(Ok(stream))) => stream,
        Some(Ok(Err(error))) => return tracing::debug!(%error, "no handshake"),
        Some(Err(_)) | None => return,
    };
    let answer = move |request: Request<Incoming>| {
        let site = site.clone();
        async move { Ok::<_, Infallible>(site.respond(request).await) }
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HELLO)
        .serve_connection(TokioIo::new(stream), service_fn(answer));
    let mut connection = std::pin::pin!(connection);
    let ended = match closing.run_until_cancelled(connection.as_mut()).await {
        Some(ended) => ended,
        None => {
            // The question under way is answered, and no other is taken.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

impl Site {
    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        let Some(handler) = self.handlers.get(&path) else {
            return plain(StatusCode::NOT_FOUND, format!("nothing answers at {path}"));
        };
        if request.method() != Method::POST {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only POST is understood".to_owned());
        }
        let body = match Limited::new(request.into_body(), LONGEST).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return plain(StatusCode::BAD_REQUEST, error.to_string()),
        };
        let (_asked, began) = (self.metrics.webhook.asked(&path), self.env.instant());
        let response = self.ask(&path, handler, body).await;
        let took = self.env.instant().saturating_duration_since(began);
        self.metrics.webhook.answered(&path, response.status(), took);
        response
    }

    /// An error, a panic and a handler that takes too long are no answer: the API does what the
    /// configuration's `failurePolicy` says.
    async fn ask(&self, path: &str, handler: &Handler, body: Bytes) -> Response<Full<Bytes>> {
        let guarded = AssertUnwindSafe(async { handler(body).await }).catch_unwind();
        let why = match self.env.timeout(LIMIT, guarded).await {
            Ok(Ok(Ok(answer))) => {
                let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
                let json = header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                return response;
            }
            Ok(Ok(Err(error))) => error.chain(),
            Ok(Err(_)) => "the handler panicked".to_owned(),
            Err(_) => format!("no answer within {LIMIT:?}"),
        };
        tracing::warn!(path, why, "a webhook gave no answer");
        plain(StatusCode::INTERNAL_SERVER_ERROR, why)
    }
}

fn plain(status: StatusCode, words: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(words)));
    *response.status_mut() = status;
    response
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving").field("address", &self.address).finish_non_exhaustive()
    }
}
