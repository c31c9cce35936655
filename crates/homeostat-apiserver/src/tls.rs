//! Serving over TLS: one task per connection, HTTP/1.1 (with upgrades) and HTTP/2.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use homeostat_env::Env;
use http::{Response, Version};
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

use crate::advertise::advertise;
use crate::auth::{AskFor, Identity, Outside};
use crate::greeting::{Greeted, Greeting};
use crate::http::{Body, IsWatch};
use crate::patience::{Patient, Unread};
use crate::server::Server;

/// A client that does not finish its handshake in this time is dropped.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// A client that does not send a request's head in this time is dropped, also one that is idle, and
/// one that does not say which HTTP it speaks.
const REQUEST_HEAD: Duration = Duration::from_secs(60);
/// A client of HTTP/2 that is silent for so long is asked whether it is still there …
const PING: Duration = Duration::from_secs(30);
/// … and dropped when it does not answer in this time.
const PONG: Duration = Duration::from_secs(15);
/// As many bytes of headers as kube-apiserver takes: selectors can be long.
const LARGEST_HEAD: u32 = 1024 * 1024;
/// More connections than these wait to be accepted until others end.
const MOST_CONNECTIONS: usize = 8192;
/// How long clients may take to hear that the server ends: requests under way are answered.
const FAREWELL: Duration = Duration::from_secs(1);
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
    /// Serves until dropped; dropping breaks every connection.
    ///
    /// # Errors
    /// Only before serving begins, when the identity cannot be used.
    pub async fn serve_tls(
        &self,
        listener: TcpListener,
        identity: Identity,
    ) -> Result<(), ServeError> {
        self.serve_tls_until(listener, identity, std::future::pending()).await
    }

    /// The same until `end`, and then ends every connection in good order: nobody is accepted any
    /// more, requests under way are answered, watches are over, and clients are told that nothing was
    /// cut off. Whoever has not heard that within a second is not waited for.
    ///
    /// # Errors
    /// As [`Server::serve_tls`].
    pub async fn serve_tls_until(
        &self,
        listener: TcpListener,
        identity: Identity,
        end: impl Future<Output = ()>,
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
        let (over, ending) = watch::channel(false);
        tokio::pin!(end);
        loop {
            tokio::select! {
                biased;
                () = &mut end => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        let _ = stream.set_nodelay(true);
                        let (server, acceptor) = (self.clone(), acceptor.clone());
                        let ending = Ending(ending.clone());
                        connections.spawn(connection(server, acceptor, env.clone(), stream, ending));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        env.sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        // Before anybody hears of the end: who connects anew is refused, and not left waiting.
        drop(listener);
        over.send_replace(true);
        let all = async { while connections.join_next().await.is_some() {} };
        let _ = env.timeout(FAREWELL, all).await;
        Ok(())
    }
}

/// Tells a connection that the server ends.
#[derive(Clone)]
struct Ending(watch::Receiver<bool>);

impl Ending {
    async fn begins(mut self) {
        // A server that was dropped ends too.
        let _ = self.0.wait_for(|over| *over).await;
    }

    /// The same answer; one that goes on and on is over when the server is.
    fn ends(self, answer: Response<Body>) -> Response<Body> {
        answer.map(|body| match body.size_hint().exact() {
            Some(_) => body,
            None => {
                let frames = BodyStream::new(body).take_until(Box::pin(self.begins()));
                StreamBody::new(frames).boxed_unsync()
            }
        })
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

async fn connection(
    server: Server,
    acceptor: Acceptor,
    env: Env,
    stream: TcpStream,
    ending: Ending,
) {
    let carries_watch = Arc::<AtomicBool>::default();
    let stream = Patient::new(stream, &env, &carries_watch);
    let stream = match env.timeout(HANDSHAKE, acceptor.tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => return tracing::debug!("a TLS handshake took too long"),
    };
    let chain = stream.get_ref().1.peer_certificates();
    let certificate = chain.map(|chain| Arc::new(acceptor.certificates.shown(chain)));
    let outside = Outside { certificate };
    let unread = Arc::<Unread>::default();
    let (told, watched, clock) = (ending.clone(), unread.clone(), env.clone());
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(outside.clone());
        let shares = request.version() == Version::HTTP_2;
        let (answer, told) = (server.clone().call(request), told.clone());
        let (carries_watch, watched) = (carries_watch.clone(), watched.clone());
        let clock = clock.clone();
        async move {
            let answer = told.ends(answer.await?);
            let is_watch = answer.extensions().get::<IsWatch>().is_some();
            carries_watch.store(is_watch && !shares, Ordering::Relaxed);
            Ok::<_, Infallible>(if is_watch && shares {
                answer.map(|body| watched.guard(body, &clock))
            } else {
                answer
            })
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(REQUEST_HEAD);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PONG);
    builder.http2().max_header_list_size(LARGEST_HEAD);
    let (stream, greeting) = Greeted::new(stream);
    let served = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(served);
    let served = tokio::select! {
        biased;
        served = &mut served => served,
        () = is_silent(&env, &greeting) => return tracing::debug!("a client never began to speak"),
        never = unread.let_go(&env) => match never {},
        () = ending.begins() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Ends when the client has said nothing that tells what it speaks, in the time of a request's head.
async fn is_silent(env: &Env, greeting: &Greeting) {
    env.sleep(REQUEST_HEAD).await;
    if greeting.has_begun() {
        std::future::pending::<()>().await;
    }
}
