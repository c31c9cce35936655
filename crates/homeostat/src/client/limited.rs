//! A limit on how long a connection may take to come about: name, proxy and TLS included.
//!
//! A request that waits for its connection has not been sent, so whatever it is it may be sent
//! again: the limit says so, and the limit on the answer would not.

use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use tower::{BoxError, Service};

use super::ahead::Ahead;
use super::way::Way;
use crate::Env;

/// How long.
pub(super) const CONNECT: Duration = Duration::from_secs(10);

/// The way to a server and the TLS at its end, within the limit.
#[derive(Clone)]
pub(super) struct Limited {
    pub(super) env: Env,
    pub(super) connector: HttpsConnector<Way>,
}

impl Service<Uri> for Limited {
    type Response = MaybeHttpsStream<TokioIo<Ahead>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let (env, connecting) = (self.env.clone(), self.connector.call(server));
        let late = || BoxError::from(format!("no connection came about within {CONNECT:?}"));
        async move { env.timeout(CONNECT, connecting).await.unwrap_or_else(|_| Err(late())) }
            .boxed()
    }
}
