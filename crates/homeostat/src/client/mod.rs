//! The way to the API: connections ([`connect`], [`from_env`]), and the client that work is done with.
//!
//! Every request of a manager is counted and has a span. One of a reconcile or of a runnable has a
//! time limit, too, and is sent again where that is safe; a write passes only while this process
//! leads. What the API warns of is in the log. That client is a layer around the manager's, so that
//! what a reconcile sends by itself (through [`crate::Context::client`]) is held to it too. Whoever
//! works without a manager has the same of [`patient`].

mod access;
mod ahead;
#[cfg(test)]
mod alive;
mod busy;
mod connections;
mod counted;
mod limited;
mod reach;
mod retry;
#[cfg(test)]
mod tests;
mod transport;
mod warning;
mod way;

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kube::client::Body;

use crate::Env;
use crate::error::{BoxError, Error};
use crate::lease::Fence;

pub use access::from_env;
pub(crate) use access::{config_from_env, config_of_context, config_of_file};
pub(crate) use busy::{in_words, told_to_wait};
pub(crate) use counted::counted;
pub(crate) use reach::is_told;
use retry::Fate;
pub(crate) use retry::{LONGEST_WAIT, retry_after};
pub use transport::connect;
pub(crate) use warning::Warnings;

/// How long a request may take unless somebody says otherwise.
const REQUEST: Duration = Duration::from_secs(30);

/// The same client for work of your own: what reconciles and runnables have anyway.
///
/// Each request must be answered (to the end of the header) within 30 s. Until then it is sent again,
/// up to four times, with a growing pause: a read when the server is busy, away or has lost it; a
/// write only when it cannot have been carried out, since it never left, or the server has turned it
/// away (429) and says when to come back, which counts for reads as well. What the API warns of is in
/// the log, once each.
///
/// Informers are to be given the client itself: watches begin again by themselves.
///
/// ```
/// use homeostat::client;
/// use homeostat::k8s_openapi::api::core::v1::ConfigMap;
/// use homeostat::kube::api::{Api, PostParams};
/// use serde_json::json;
///
/// # homeostat_testing::on_cluster(async |cluster| {
/// # let (client, env) = (cluster.client.clone(), cluster.env.clone());
/// # let namespace = &*cluster.namespace;
/// let client = client::patient(client, env);
/// let configs: Api<ConfigMap> = Api::namespaced(client, namespace);
/// let config = serde_json::from_value(json!({ "metadata": { "name": "a" } })).unwrap();
/// configs.create(&PostParams::default(), &config).await.unwrap();
/// # });
/// ```
#[must_use]
pub fn patient(client: kube::Client, env: Env) -> kube::Client {
    let fence = Fence::open(env.clone());
    while_open(client, env, fence)
}

/// The same; writes stop at a closed `fence`.
pub(crate) fn while_open(client: kube::Client, env: Env, fence: Fence) -> kube::Client {
    guarded(client, env, REQUEST, fence, Warnings::new(true))
}

/// A client whose requests must be answered (to the end of the header) within `limit`, and whose
/// writes stop at a closed `fence`. What the API warns of goes to `warnings`.
pub(crate) fn guarded(
    client: kube::Client,
    env: Env,
    limit: Duration,
    fence: Fence,
    warnings: Warnings,
) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let guard = Guard { client, env, limit, fence, warnings: Arc::new(warnings) };
    let service = tower::service_fn(move |request| {
        let guard = guard.clone();
        async move { guard.send(request).await }
    });
    kube::Client::new(service, namespace)
}

#[derive(Clone)]
struct Guard {
    client: kube::Client,
    env: Env,
    limit: Duration,
    fence: Fence,
    warnings: Arc<Warnings>,
}

impl Guard {
    async fn send(&self, request: http::Request<Body>) -> Result<http::Response<Body>, BoxError> {
        let answer = self.env.timeout(self.limit, self.send_until_told(request)).await;
        let answer = answer.unwrap_or_else(|_| Err(BoxError::from(Error::NoAnswer(self.limit))));
        if let Ok(answer) = &answer {
            self.warnings.tell(answer.headers());
        }
        answer
    }

    /// Sends a request, again where [`retry`] says so and there is time for it.
    async fn send_until_told(
        &self,
        request: http::Request<Body>,
    ) -> Result<http::Response<Body>, BoxError> {
        // `None` for a limit beyond all time.
        let deadline = self.env.instant().checked_add(self.limit);
        let (parts, mut body) = request.into_parts();
        let mut sent = 0;
        loop {
            if !retry::is_read(&parts.method) && !self.fence.is_open() {
                return Err(BoxError::from(Error::NotLeader));
            }
            let copy = body.try_clone();
            let answer = self.client.send(http::Request::from_parts(parts.clone(), body)).await;
            sent += 1;
            let delay = self.delay(&parts.method, sent, &answer);
            let (Some(copy), Some(delay)) = (copy, delay) else {
                return answer.map_err(BoxError::from);
            };
            let next = self.env.instant().checked_add(delay);
            if deadline.is_some_and(|deadline| next.is_none_or(|next| next >= deadline)) {
                return answer.map_err(BoxError::from);
            }
            tracing::debug!(method = %parts.method, uri = %parts.uri, ?delay, "sent again soon");
            self.env.sleep(delay).await;
            body = copy;
        }
    }

    fn delay(
        &self,
        method: &Method,
        sent: u32,
        answer: &Result<http::Response<Body>, kube::Error>,
    ) -> Option<Duration> {
        let fate = Fate::of(answer);
        // The dice are thrown only for what is repeated: a run without trouble stays as it was.
        retry::again(method, sent, fate, 0.0)?;
        retry::again(method, sent, fate, self.env.random_unit())
    }
}
