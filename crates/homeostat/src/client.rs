//! The client that reconciles use: every request through it has a time limit, and a write passes
//! only while this process leads. All of them are counted.
//!
//! A layer around the manager's client, so that what a reconcile sends by itself (through
//! [`crate::Context::client`]) is held to it too. Watches do not come through here.

use std::time::Duration;

use http::Method;
use kube::client::Body;

use crate::Env;
use crate::error::{BoxError, Error};
use crate::lease::Fence;
use crate::metrics::Metrics;

/// A client whose requests must be answered (to the end of the header) within `limit`, and whose
/// writes stop at a closed `fence`.
pub(crate) fn guarded(
    client: kube::Client,
    env: Env,
    limit: Duration,
    fence: Fence,
    metrics: Metrics,
) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let allowed = reads || fence.is_open();
        let (client, env, metrics) = (client.clone(), env.clone(), metrics.clone());
        let method = request.method().clone();
        async move {
            if !allowed {
                return Err(BoxError::from(Error::NotLeader));
            }
            let answer = env.timeout(limit, client.send(request)).await;
            let code = answer.as_ref().ok().and_then(|answer| answer.as_ref().ok());
            metrics.request(&method, code.map(http::Response::status));
            match answer {
                Ok(answer) => answer.map_err(BoxError::from),
                Err(_) => Err(BoxError::from(Error::NoAnswer(limit))),
            }
        }
    });
    kube::Client::new(service, namespace)
}
