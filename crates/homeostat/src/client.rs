//! The client that reconciles use: every request through it has a time limit.
//!
//! A layer around the manager's client, so that what a reconcile sends by itself (through
//! [`crate::Context::client`]) is held to it too. Watches do not come through here.

use std::time::Duration;

use kube::client::Body;

use crate::Env;
use crate::error::{BoxError, Error};

/// A client whose requests must be answered (to the end of the header) within `limit`.
pub(crate) fn limited(client: kube::Client, env: Env, limit: Duration) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, env) = (client.clone(), env.clone());
        async move {
            match env.timeout(limit, client.send(request)).await {
                Ok(answer) => answer.map_err(BoxError::from),
                Err(_) => Err(BoxError::from(Error::NoAnswer(limit))),
            }
        }
    });
    kube::Client::new(service, namespace)
}
