//! A client whose requests are counted and have spans, whoever sends them: reconciles, caches,
//! events, the lease. Counts what was sent, so each try of a request that is repeated; never
//! changes, repeats or ends one.

use http::{Method, StatusCode};
use kube::client::Body;
use tokio::time::Instant;
use tracing::Instrument;

use crate::Env;
use crate::error::BoxError;
use crate::metrics::Metrics;

/// The same client, counted in `metrics`. A watch counts when it is answered, not when it ends.
pub(crate) fn counted(client: kube::Client, env: Env, metrics: Metrics) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, method) = (client.clone(), request.method().clone());
        let path = request.uri().path();
        let span = tracing::debug_span!("request", %method, path, status = tracing::field::Empty);
        let told = span.clone();
        let (env, metrics, begin) = (env.clone(), metrics.clone(), env.instant());
        let mut count = Count { env, metrics, method, begin, status: None };
        let exchange = async move {
            let answer = client.send(request).await.map_err(BoxError::from)?;
            count.answered(answer.status());
            told.record("status", answer.status().as_u16());
            Ok::<_, BoxError>(answer)
        };
        exchange.instrument(span)
    });
    kube::Client::new(service, namespace)
}

/// One request. It counts when it is over, also when nobody waited for its answer to the end.
struct Count {
    env: Env,
    metrics: Metrics,
    method: Method,
    begin: Instant,
    status: Option<StatusCode>,
}

impl Count {
    fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        let took = self.env.instant().saturating_duration_since(self.begin);
        self.metrics.request(&self.method, self.status, took);
    }
}
