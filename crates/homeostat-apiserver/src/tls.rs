//! Serving over TLS: one task per connection, HTTP/1.1 (with upgrades) and HTTP/2.

use std::sync::Arc;
use std::time::Duration;

use homeostat_env::Env;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

use crate::advertise::advertise;
use crate::auth::{AskFor, Identity, Outside};
use crate::server::Server;

/// A client that does not finish its handshake in this time is dropped.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// A client that does not send a request's head in this time is dropped, also one that is idle.
const REQUEST_HEAD: Duration = Duration::from_secs(60);
/// A client of HTTP/2 that is silent for so long is asked whether it is still there …
const PING: Duration = Duration::from_secs(30);
/// … and dropped when it does not answer in this time.
const PONG: Duration = Duration::from_secs(15);
/// More connections than these wait to be accepted until others end.
const MOST_CONNECTIONS: usize = 8192;
/// Pause after the system refuses to accept, usually for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The identity does not make a TLS server.
    #[error("the server's certificate cannot be used: {0}")]
    Tls(#[from] rustls::Error),
}

impl Server {
    /// Serves until dropped; dropping ends every connection.
    ///
    /// # Errors
    /// Only before serving begins, when the identity cannot be used.
    pub async fn serve_tls(
        &self,
        listener: TcpListener,
        identity: Identity,
    ) -> Result<(), ServeError> {
        let certificates = Arc::new(AskFor::signed_by(&identity.access().ca_pem)?);
        let config = tls_config(&identity, Arc::clone(&certificates))?;
        let acceptor = Acceptor { tls: TlsAcceptor::from(Arc::new(config)), certificates };
        self.identify(Arc::new(identity));
        if let Ok(address) = listener.local_addr() {
            self.registry().serve_at(address);
            advertise(self.registry(), address);
        }
        let env = self.registry().env.clone();
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                Some(_) = connections.join_next() => {}
                accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        let _ = stream.set_nodelay(true);
                        let (server, acceptor) = (self.clone(), acceptor.clone());
                        connections.spawn(connection(server, acceptor, env.clone(), stream));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        env.sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }
}

/// Shakes hands, and judges what is shown.
#[derive(Clone)]
struct Acceptor {
    tls: TlsAcceptor,
    certificates: Arc<AskFor>,
}

fn tls_config(
    identity: &Identity,
    certificates: Arc<AskFor>,
) -> Result<rustls::ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = CertificateDer::from(identity.certificate.clone());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(identity.key.clone()));
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(certificates)
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

async fn connection(server: Server, acceptor: Acceptor, env: Env, stream: TcpStream) {
    let stream = match env.timeout(HANDSHAKE, acceptor.tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => return tracing::debug!("a TLS handshake took too long"),
    };
    let chain = stream.get_ref().1.peer_certificates();
    let certificate = chain.map(|chain| Arc::new(acceptor.certificates.shown(chain)));
    let outside = Outside { certificate };
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(outside.clone());
        server.clone().call(request)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(REQUEST_HEAD);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PONG);
    let served = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}
