//! What a node answers over HTTP: logs, exec, attach and port-forward.
//!
//! The paths are those of a kubelet, so that an API server can forward requests by rewriting the
//! path alone:
//!
//! ```text
//! GET /containerLogs/{namespace}/{pod}/{container}?follow&tailLines&sinceTime&…
//! GET /exec/{namespace}/{pod}/{container}?command=…&stdin&stdout&stderr&tty   (WebSocket or SPDY/3.1)
//! GET /attach/{namespace}/{pod}/{container}?stdout&stderr                     (WebSocket or SPDY/3.1)
//! GET /portForward/{namespace}/{pod}?ports=…                                  (WebSocket or SPDY/3.1)
//! ```

mod attach;
mod channel;
mod exec;
mod forward;
mod log;
mod query;
mod relay;
mod spdy;
mod streams;
mod tunnel;
mod upgrade;
mod wire;

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use tower::BoxError;

use super::directory::{Present, Runs};
use super::host::Host;
use query::Query;

/// The body of every answer.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// The node's HTTP service; cheap to clone.
#[derive(Debug, Clone)]
pub struct NodeService {
    host: Arc<Host>,
}

/// Why a request is refused: status and words.
type Refusal = (StatusCode, String);

impl NodeService {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self { host }
    }

    /// Answers a request. Upgrades are answered here too: the request must carry hyper's
    /// `OnUpgrade` extension.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body> {
        match self.route(request).await {
            Ok(response) => response,
            Err((status, words)) => {
                let mut response = Response::new(full(words + "\n"));
                *response.status_mut() = status;
                response
            }
        }
    }

    async fn route<B>(&self, request: Request<B>) -> Result<Response<Body>, Refusal> {
        let path = request.uri().path().to_owned();
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts.as_slice() {
            ["containerLogs", namespace, pod, container] => {
                let runs = self.container(namespace, pod, container)?;
                log::answer(&self.host.env, &runs, (pod, container), &query).await
            }
            ["exec", namespace, pod, container] => {
                let runs = self.container(namespace, pod, container)?;
                exec::exec(request, &runs, container, &query)
            }
            ["attach", namespace, pod, container] => {
                let runs = self.container(namespace, pod, container)?;
                attach::answer(request, &runs, container, &query)
            }
            ["portForward", namespace, pod] => {
                forward::answer(request, self, (namespace, pod), &query)
            }
            _ => Err((StatusCode::NOT_FOUND, "404 page not found".into())),
        }
    }

    fn pod(&self, namespace: &str, name: &str) -> Result<Present, Refusal> {
        let missing = || {
            (StatusCode::NOT_FOUND, format!("pod \"{namespace}/{name}\" does not run on this node"))
        };
        self.host.directory.find(namespace, name).ok_or_else(missing)
    }

    fn container(&self, namespace: &str, pod: &str, name: &str) -> Result<Runs, Refusal> {
        let present = self.pod(namespace, pod)?;
        present.containers.get(name).cloned().ok_or_else(|| {
            (StatusCode::BAD_REQUEST, format!("container {name:?} in pod {pod:?} is not available"))
        })
    }
}

/// A body that is all there.
fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never| match never {}).boxed_unsync()
}
