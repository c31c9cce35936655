//! A conversation with one caller of the webhooks: TLS, HTTP/1.1, one answer per question. It knows
//! no kinds. It waits for no caller without a limit: anybody may connect, and what a caller has
//! begun to say is kept in memory.
//!
//! HTTP/2 is not offered. kube-apiserver does not ask for it: its webhook client wants connections
//! that a load balancer can spread.

#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::Handler;
use super::current::Current;
use crate::Env;
use crate::metrics::Metrics;

/// So many callers are heard at once. Each may hold a question in memory, and a file descriptor. An
/// API server has a connection for every question that it waits for, and keeps some that it may need
/// again; those of a large cluster have a few hundred together in a storm.
pub(super) const CALLERS: usize = 512;
/// While fewer places than this are free, nobody is kept: an answer ends its connection, and so does
/// having asked nothing within [`HELLO`]. So connections that are only kept take the other places at
/// most, whoever opens them: these are for questions.
const FREE: usize = CALLERS / 2;
/// How long a caller may take to shake hands, and again to ask when places are scarce. It is not so
/// short for who could be kept: Go's client opens connections that it needs only later.
const HELLO: Duration = Duration::from_secs(10);
/// How long a caller that is kept may be silent between questions or dawdle over the head of one, and
/// how long any may take over an answer. It must be longer than the 90 s for which Go's client, and so
/// kube-apiserver, keeps a connection that it does not use: were this side the one to close it, a
/// question could be on its way just then, and Go sends no POST twice, so a user's write would be
/// refused.
const SILENCE: Duration = Duration::from_secs(120);
/// How long the body of a question may take.
const QUESTION: Duration = Duration::from_secs(30);
/// How long a handler may take; the API waits no longer than this.
const LIMIT: Duration = Duration::from_secs(30);
/// How long a stop waits for what is on its way to or from a caller. A handler has its whole time.
const HURRY: Duration = Duration::from_secs(5);
/// The longest question: the API sends an object and its old self.
const LONGEST: usize = 7 * 1024 * 1024;

/// What answers, by path.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) handlers: Arc<BTreeMap<String, Handler>>,
    pub(super) env: Env,
    pub(super) metrics: Metrics,
}

/// Answers one caller until it leaves, is silent for too long, or it is `closing`.
pub(super) async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    place: OwnedSemaphorePermit,
    certificate: Arc<Current>,
    site: Site,
    closing: CancellationToken,
) {
    let Some(acceptor) = certificate.acceptor().await else {
        return tracing::debug!("there is no certificate yet");
    };
    let env = site.env.clone();
    let greeted = env.timeout(HELLO, acceptor.accept(stream));
    let stream = match closing.run_until_cancelled(greeted).await {
        Some(Ok(Ok(stream))) => stream,
        Some(Ok(Err(error))) => return tracing::debug!(%error, "no handshake"),
        Some(Err(_)) | None => return,
    };
    let (answering, silent) = watch::channel(false);
    let (answering, places) = (Arc::new(answering), place.semaphore());
    let (closed, taken) = (closing.clone(), Arc::clone(places));
    let answer = move |request: Request<Incoming>| {
        let (site, closing) = (site.clone(), closed.clone());
        let (answering, places) = (Arc::clone(&answering), Arc::clone(&taken));
        async move {
            answering.send_replace(true);
            let mut response = site.respond(request, &closing).await;
            if are_scarce(&places) {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            answering.send_replace(false);
            Ok::<_, Infallible>(response)
        }
    };
    // Its own limit ends with the head of a question, and answers that nobody takes have none.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service_fn(answer));
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => Some(ended),
        () = patience(&env, silent.clone(), places) => None,
        () = closing.cancelled() => {
            // The question under way is answered, and no other is taken.
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                ended = connection.as_mut() => Some(ended),
                () = silence(&env, silent, HURRY) => None,
            }
        }
    };
    match ended {
        Some(Ok(())) => {}
        Some(Err(error)) => tracing::debug!(%error, "a connection ended"),
        None => tracing::debug!("a caller was silent for too long"),
    }
}

fn are_scarce(places: &Semaphore) -> bool {
    places.available_permits() < FREE
}

/// Ends when the caller was waited for long enough, which is soon where others may need its place and
/// it has not even asked.
async fn patience(env: &Env, mut answering: watch::Receiver<bool>, places: &Semaphore) {
    let has_asked = env.timeout(HELLO, answering.changed()).await.is_ok();
    if has_asked || !are_scarce(places) {
        silence(env, answering, SILENCE).await;
    }
}

/// Ends when the caller was not being answered for so long. Every answer begins the time anew, one
/// that was given between two looks, too.
async fn silence(env: &Env, mut answering: watch::Receiver<bool>, limit: Duration) {
    loop {
        let is_answering = *answering.borrow_and_update();
        let changed = answering.changed();
        if is_answering {
            let _ = changed.await;
        } else if env.timeout(limit, changed).await.is_err() {
            return;
        }
    }
}

impl Site {
    async fn respond(
        &self,
        request: Request<Incoming>,
        closing: &CancellationToken,
    ) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        let Some(handler) = self.handlers.get(&path) else {
            return plain(StatusCode::NOT_FOUND, format!("nothing answers at {path}"));
        };
        if request.method() != Method::POST {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only POST is understood".to_owned());
        }
        let body = Limited::new(request.into_body(), LONGEST).collect();
        let body = tokio::select! {
            biased;
            body = body => body,
            () = self.too_long(closing) => {
                let words = "the question did not arrive in time".to_owned();
                return plain(StatusCode::REQUEST_TIMEOUT, words);
            }
        };
        let body = match body {
            Ok(body) => body.to_bytes(),
            Err(error) => return plain(StatusCode::BAD_REQUEST, error.to_string()),
        };
        let (_asked, began) = (self.metrics.webhook.asked(&path), self.env.instant());
        let response = self.ask(&path, handler, body).await;
        let took = self.env.instant().saturating_duration_since(began);
        self.metrics.webhook.answered(&path, response.status(), took);
        response
    }

    /// Ends when a question has had its time, which is short when the server stops.
    async fn too_long(&self, closing: &CancellationToken) {
        let hurry = async {
            closing.cancelled().await;
            self.env.sleep(HURRY).await;
        };
        let _ = self.env.timeout(QUESTION, hurry).await;
    }

    /// An error, a panic and a handler that takes too long are no answer: the API does what the
    /// configuration's `failurePolicy` says.
    async fn ask(&self, path: &str, handler: &Handler, body: Bytes) -> Response<Full<Bytes>> {
        let guarded = AssertUnwindSafe(async { handler(body).await }).catch_unwind();
        let why = match self.env.timeout(LIMIT, guarded).await {
            Ok(Ok(Ok(answer))) => {
                let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
                let json = HeaderValue::from_static("application/json");
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
