//! How a connection comes about: straight, or through the proxy that a kubeconfig names.

use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use super::ahead::{Ahead, Secured};
use crate::error::{Error, Result};

/// A way to a server.
#[derive(Clone)]
pub(super) enum Way {
    Straight(HttpConnector),
    /// The proxy is asked to connect, and passes on what it does not understand.
    Tunnel(Tunnel<HttpConnector>),
    /// The same, and nobody on the way to the proxy hears what it is asked, or with whose word.
    Secured(Tunnel<HttpsConnector<HttpConnector>>),
    Socks(SocksV5<HttpConnector>),
}

impl Way {
    /// The way to the server of `config`: through its proxy unless one of the hosts in `except` (as
    /// `$NO_PROXY` has them) is meant.
    pub(super) fn to(
        config: &kube::Config,
        except: &str,
        connector: HttpConnector,
    ) -> Result<Self> {
        let Some(proxy) = &config.proxy_url else { return Ok(Self::Straight(connector)) };
        let scheme = proxy.scheme_str().unwrap_or_default();
        if !matches!(scheme, "http" | "https" | "socks5" | "socks5h") {
            return Err(Error::terminal(format!(
                "a proxy of the kind `{scheme}` is not understood: only http, https and socks5 are"
            )));
        }
        let matcher = Matcher::builder().all(proxy.to_string()).no(except).build();
        let Some(proxy) = matcher.intercept(&config.cluster_url) else {
            return Ok(Self::Straight(connector));
        };
        Ok(match scheme {
            "http" => Self::Tunnel(tunnel(&proxy, connector)),
            "https" => {
                let builder = HttpsConnectorBuilder::new().with_tls_config(proxy_tls(config)?);
                let secured = builder.https_only().enable_http1().wrap_connector(connector);
                Self::Secured(tunnel(&proxy, secured))
            }
            _ => {
                // Names are for the proxy to find out: this host may not know them.
                let socks = SocksV5::new(proxy.uri().clone(), connector);
                Self::Socks(match proxy.raw_auth() {
                    Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
                    None => socks,
                })
            }
        })
    }
}

fn tunnel<C>(proxy: &Intercept, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.basic_auth() {
        Some(who) => tunnel.with_auth(who.clone()),
        None => tunnel,
    }
}

/// The TLS spoken with a proxy. It is trusted if this host trusts it, or if the cluster's own
/// authority vouches for it, which is all that kubectl asks for. The certificate that stands for the
/// user is for the cluster alone.
fn proxy_tls(config: &kube::Config) -> Result<ClientConfig> {
    if config.accept_invalid_certs {
        let mut nobody = config.clone();
        nobody.auth_info = kube::config::AuthInfo::default();
        return Ok(nobody.rustls_client_config()?);
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let clusters = config.root_cert.iter().flatten().cloned().map(CertificateDer::from);
    roots.add_parsable_certificates(clusters);
    Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

impl Service<Uri> for Way {
    type Response = TokioIo<Ahead>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<TokioIo<Ahead>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Straight(way) => way.poll_ready(context).map_err(BoxError::from),
            Self::Tunnel(way) => way.poll_ready(context).map_err(BoxError::from),
            Self::Secured(way) => way.poll_ready(context).map_err(BoxError::from),
            Self::Socks(way) => way.poll_ready(context).map_err(BoxError::from),
        }
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self {
            Self::Straight(way) => way.call(server).map(|made| Ok(plain(made?))).boxed(),
            Self::Tunnel(way) => way.call(server).map(|made| Ok(plain(made?))).boxed(),
            Self::Secured(way) => way.call(server).map(|made| Ok(secured(made?))).boxed(),
            Self::Socks(way) => way.call(server).map(|made| Ok(plain(made?))).boxed(),
        }
    }
}

fn plain(stream: TokioIo<TcpStream>) -> TokioIo<Ahead> {
    TokioIo::new(Ahead::plain(stream.into_inner()))
}

fn secured(stream: Secured) -> TokioIo<Ahead> {
    TokioIo::new(Ahead::secured(stream))
}
