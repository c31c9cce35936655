//! A server of webhooks over HTTPS for tests: every request is given to a function, which says what
//! becomes of it. It knows no reviews.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;

/// What a webhook does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// It answers: the code and the body, which is JSON or says to be.
    Text(u16, String),
    /// It answers with words.
    #[allow(dead_code, reason = "not every test has a webhook that does")]
    Words(u16, String),
    /// It ends the connection.
    #[allow(dead_code, reason = "not every test has a webhook that does")]
    HangUp,
    /// It never answers.
    #[allow(dead_code, reason = "not every test has a webhook that does")]
    Silence,
}

/// Where webhooks are served, and the certificate of their authority in base64.
pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) ca: String,
}

/// Serves webhooks for as long as the process lives.
pub(crate) async fn serve(
    reply: impl Fn(&http::request::Parts, &[u8]) -> Reply + Send + Sync + 'static,
) -> Served {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let reply = Arc::new(reply);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, reply) = (acceptor.clone(), reply.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let answer = service_fn(async |request: http::Request<hyper::body::Incoming>| {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.unwrap().to_bytes();
                    let answered = |code: u16, media: &str, text: String| {
                        let response = http::Response::builder().status(code);
                        let response = response.header("content-type", media);
                        response.body(Full::new(Bytes::from(text))).map_err(std::io::Error::other)
                    };
                    match reply(&head, &body) {
                        Reply::Text(code, text) => answered(code, "application/json", text),
                        Reply::Words(code, text) => answered(code, "text/plain", text),
                        Reply::HangUp => Err(std::io::ErrorKind::ConnectionAborted.into()),
                        Reply::Silence => std::future::pending().await,
                    }
                });
                let http = hyper::server::conn::http1::Builder::new();
                drop(http.serve_connection(TokioIo::new(stream), answer).await);
            });
        }
    });
    Served { url, ca: STANDARD.encode(certificate.pem()) }
}
