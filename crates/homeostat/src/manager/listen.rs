//! `/healthz`, `/readyz` and `/metrics` over HTTP, for probes and scrapers.
//!
//! One small listener without TLS: it tells how the process is and takes nothing in.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::health::Observer;
use crate::Env;
use crate::error::{Error, Result};
use crate::metrics::process;

/// How long a caller may take to say what it wants.
const HEADER: Duration = Duration::from_secs(10);
/// What Prometheus calls the format of the metrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A listener that answers until it is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) address: SocketAddr,
    accept: JoinHandle<Option<Infallible>>,
    stop: DropGuard,
}

impl Listening {
    /// Answers nobody any more, and gives the address back.
    pub(super) async fn close(self) {
        drop(self.stop);
        drop(self.accept.await);
    }
}

/// Takes the address; nothing is answered before [`Bound::serve`].
pub(super) async fn bind(address: SocketAddr) -> Result<Bound> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Error::transient(format!("{address} cannot be listened on: {error}")))?;
    Ok(Bound { address: listener.local_addr().map_err(Error::transient)?, listener })
}

/// An address that is ours.
#[derive(Debug)]
pub(super) struct Bound {
    address: SocketAddr,
    listener: TcpListener,
}

impl Bound {
    /// Answers from what an observer sees, once there is one: at the beginning a start is under way.
    pub(super) fn serve(self, env: Env, observer: Arc<OnceLock<Observer>>) -> Listening {
        let (Self { address, listener }, stop) = (self, CancellationToken::new());
        let accept = async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let observer = Arc::clone(&observer);
                        let answer = move |request: Request<hyper::body::Incoming>| {
                            let answer =
                                respond(request.method(), request.uri().path(), observer.get());
                            async move { Ok::<_, Infallible>(answer) }
                        };
                        let connection = http1::Builder::new()
                            .timer(TokioTimer::new())
                            .header_read_timeout(HEADER)
                            .serve_connection(TokioIo::new(stream), service_fn(answer));
                        drop(tokio::spawn(connection));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a caller could not be heard");
                        env.sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        };
        let accept = tokio::spawn(stop.clone().run_until_cancelled_owned(accept));
        Listening { address, accept, stop: stop.drop_guard() }
    }
}

/// The answer to a request.
fn respond(method: &Method, path: &str, observer: Option<&Observer>) -> Response<Full<Bytes>> {
    let text = "text/plain; charset=utf-8";
    let (status, kind, body) = match path {
        _ if !matches!(*method, Method::GET | Method::HEAD) => {
            (StatusCode::METHOD_NOT_ALLOWED, text, "only GET is understood\n".to_owned())
        }
        // Whoever can answer lives.
        "/healthz" | "/livez" => (StatusCode::OK, text, "ok\n".to_owned()),
        "/readyz" | "/metrics" => match observer {
            None => (StatusCode::SERVICE_UNAVAILABLE, text, "not ok start: under way\n".to_owned()),
            Some(observer) if path == "/metrics" => {
                (StatusCode::OK, OPENMETRICS, process::text() + &observer.metrics())
            }
            Some(observer) => {
                let health = observer.health();
                let ready = health.is_ready();
                let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                (status, text, health.to_string())
            }
        },
        _ => (StatusCode::NOT_FOUND, text, "/healthz, /readyz or /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
