//! How a connection comes about: straight, or through the proxy that a kubeconfig names.

use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use super::ahead::Ahead;
use crate::error::{Error, Result};

/// A way to a server.
#[derive(Clone)]
pub(super) enum Way {
    Straight(HttpConnector),
    /// The proxy is asked to connect, and passes on what it does not understand.
    Tunnel(Tunnel<HttpConnector>),
    Socks(SocksV5<HttpConnector>),
}

impl Way {
    /// The way to `server`: through `proxy` unless one of the hosts in `except` (as `$NO_PROXY` has
    /// them) is meant.
    pub(super) fn to(
        server: &Uri,
        proxy: Option<&Uri>,
        except: &str,
        connector: HttpConnector,
    ) -> Result<Self> {
        let Some(proxy) = proxy else { return Ok(Self::Straight(connector)) };
        let scheme = proxy.scheme_str().unwrap_or_default();
        if !matches!(scheme, "http" | "socks5" | "socks5h") {
            return Err(Error::terminal(format!(
                "a proxy of the kind `{scheme}` is not understood: only http and socks5 are"
            )));
        }
        let matcher = Matcher::builder().all(proxy.to_string()).no(except).build();
        let Some(proxy) = matcher.intercept(server) else { return Ok(Self::Straight(connector)) };
        Ok(if scheme == "http" {
            let tunnel = Tunnel::new(proxy.uri().clone(), connector);
            Self::Tunnel(match proxy.basic_auth() {
                Some(who) => tunnel.with_auth(who.clone()),
                None => tunnel,
            })
        } else {
            // Names are for the proxy to find out: this host may not know them.
            let socks = SocksV5::new(proxy.uri().clone(), connector);
            Self::Socks(match proxy.raw_auth() {
                Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
                None => socks,
            })
        })
    }
}

impl Service<Uri> for Way {
    type Response = TokioIo<Ahead>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<TokioIo<Ahead>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Straight(way) => way.poll_ready(context).map_err(BoxError::from),
            Self::Tunnel(way) => way.poll_ready(context).map_err(BoxError::from),
            Self::Socks(way) => way.poll_ready(context).map_err(BoxError::from),
        }
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self {
            Self::Straight(way) => way.call(server).map(|made| Ok(ahead(made?))).boxed(),
            Self::Tunnel(way) => way.call(server).map(|made| Ok(ahead(made?))).boxed(),
            Self::Socks(way) => way.call(server).map(|made| Ok(ahead(made?))).boxed(),
        }
    }
}

fn ahead(stream: TokioIo<TcpStream>) -> TokioIo<Ahead> {
    TokioIo::new(Ahead::new(stream.into_inner()))
}
