//! Connections to a real cluster: HTTP/2 where the server knows it, HTTP/1.1 where not, watches
//! apart from the rest, a limit on every wait.

use std::time::Duration;

use http::{Request, Response, header};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use kube::client::{Body, ConfigExt};
use tower::{BoxError, ServiceBuilder};

use super::connections::{Connections, Counted, Protocol};
use super::limited::{CONNECT, Limited};
use super::reach::Reach;
use super::way::Way;
use crate::Env;
use crate::error::{Error, Result};

/// How long the server may take to begin its answer; requests of reconciles have shorter limits.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a connection may be silent before the system asks whether the other end is still there,
/// how long it waits for each answer, and how often it asks: a minute in all, as [`Connections`] allow
/// by themselves over HTTP/2. HTTP/1.1 has nothing else that would notice.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;

/// A client for the cluster that `config` names; nothing is connected yet.
///
/// Requests share HTTP/2 connections (HTTP/1.1 where the server knows nothing else), watches have
/// connections of their own, so that neither waits for the other. A connection must come about
/// within 10 s and an answer begin within 60 s; a connection whose other end has gone is noticed
/// within a minute. That the server cannot be reached is told in the log once, and once that it can
/// be again. Nothing is sent twice by this client itself: requests of reconciles are, where that is
/// safe, and those of [`patient`](super::patient).
///
/// The proxy that `config` names (`proxy-url`, or `$HTTPS_PROXY` where it does not say) is used for
/// everything, except for hosts in `$NO_PROXY`; it may be an `http`, an `https` or a `socks5` one,
/// with a user and a password in its URL. An `https` one is trusted if this host or the cluster's
/// own authority vouches for it.
///
/// # Errors
/// When the certificates or credentials of `config` cannot be used, or its proxy is of another kind.
pub fn connect(config: &kube::Config, env: Env) -> Result<kube::Client> {
    let except = ["NO_PROXY", "no_proxy"].into_iter().find_map(|name| std::env::var(name).ok());
    connect_except(config, env, &except.unwrap_or_default())
}

/// The same; hosts in `except` are reached without the proxy.
pub(super) fn connect_except(
    config: &kube::Config,
    env: Env,
    except: &str,
) -> Result<kube::Client> {
    let namespace = config.default_namespace.clone();
    let limited = |connector| Limited { env: env.clone(), connector };
    let http_only = limited(connector(config, except, Protocol::One)?);
    let any = limited(connector(config, except, Protocol::Any)?);
    let roads = Roads {
        env,
        reach: Reach::of(&config.cluster_url),
        requests: Connections::new(any.clone(), Protocol::Any),
        watches: Connections::new(any, Protocol::Any),
        upgrades: Connections::new(http_only, Protocol::One),
    };
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .service(tower::service_fn(move |request| {
            let roads = roads.clone();
            async move { roads.send(request).await }
        }));
    Ok(kube::Client::new(service, namespace))
}

/// The connections by what they are for.
#[derive(Clone)]
struct Roads {
    env: Env,
    reach: Reach,
    requests: Connections,
    watches: Connections,
    /// What becomes another protocol (exec, port-forward) cannot do so within HTTP/2.
    upgrades: Connections,
}

impl Roads {
    async fn send(&self, request: Request<Body>) -> Result<Response<Counted>, BoxError> {
        let road = if request.headers().contains_key(header::UPGRADE) {
            &self.upgrades
        } else if is_endless(request.uri()) {
            &self.watches
        } else {
            &self.requests
        };
        match self.env.timeout(ANSWER, road.send(request)).await {
            Ok(Ok(answer)) => {
                self.reach.answered();
                Ok(answer)
            }
            Ok(Err(error)) => Err(self.reach.failed(error)),
            Err(_) => Err(BoxError::from(Error::NoAnswer(ANSWER))),
        }
    }
}

/// Whether the answer has no end of its own: a watch, or a log that is followed.
fn is_endless(uri: &http::Uri) -> bool {
    let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    query.into_iter().any(|(name, value)| {
        matches!(&*name, "watch" | "follow") && matches!(&*value, "true" | "1")
    })
}

fn connector(
    config: &kube::Config,
    except: &str,
    protocol: Protocol,
) -> Result<HttpsConnector<Way>> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    // Of several addresses of a host, each gets its part of the time.
    http.set_connect_timeout(Some(CONNECT));
    http.set_keepalive(Some(KEEPALIVE));
    http.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    http.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    let way = Way::to(config, except, http)?;
    let tls = config.rustls_client_config()?;
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    let builder = match &config.tls_server_name {
        Some(name) => {
            let name = name.clone().try_into().map_err(Error::terminal)?;
            builder.with_server_name_resolver(FixedServerNameResolver::new(name))
        }
        None => builder,
    };
    Ok(match protocol {
        Protocol::Any => builder.enable_all_versions().wrap_connector(way),
        Protocol::One => builder.enable_http1().wrap_connector(way),
    })
}
