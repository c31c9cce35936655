//! One POST over TLS: the default way to webhooks. Nothing is kept open between calls.

use std::pin::pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;

use super::{WebhookAddress, WebhookAnswer, WebhookConnector, WebhookReply};
use crate::dial;

/// The longest reply that is read.
const LONGEST_REPLY: usize = 8 * 1024 * 1024;

/// Connects to where the address says.
#[derive(Debug, Default)]
pub(crate) struct TlsConnector {
    /// Who is trusted where nobody says whom: this host's authorities, read when first needed.
    known: OnceLock<Arc<RootCertStore>>,
}

impl TlsConnector {
    /// The authorities of a bundle; an empty one leaves the choice to this host.
    fn authorities(&self, bundle: &[u8]) -> Result<Arc<RootCertStore>, String> {
        if bundle.is_empty() {
            let known = self.known.get_or_init(|| Arc::new(dial::authorities_of_this_host()));
            return Ok(Arc::clone(known));
        }
        dial::authorities_in(bundle).map(Arc::new)
    }
}

impl WebhookConnector for TlsConnector {
    fn post(&self, address: WebhookAddress, body: Bytes) -> BoxFuture<'static, WebhookReply> {
        let authorities = self.authorities(&address.ca);
        async move { post(address, authorities?, body).await }.boxed()
    }
}

async fn post(
    address: WebhookAddress,
    authorities: Arc<RootCertStore>,
    body: Bytes,
) -> WebhookReply {
    let WebhookAddress { connect, server_name, path, .. } = address;
    let stream = dial::tcp(&connect).await?;
    let stream = dial::tls(dial::trusting(authorities)?, &server_name, stream).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let request = http::Request::post(path)
        .header(HOST, &server_name)
        .header(USER_AGENT, "kube-apiserver-admission")
        .header(ACCEPT, "application/json, */*")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body))
        .map_err(|error| error.to_string())?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let code = response.status().as_u16();
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|ty| ty.to_str().ok());
        let media_type = media_type.unwrap_or_default().to_owned();
        let limited = Limited::new(response.into_body(), LONGEST_REPLY);
        let read = limited.collect().await.map_err(|error| error.to_string())?;
        Ok(WebhookAnswer { code, media_type, body: read.to_bytes() })
    };
    let mut exchange = pin!(exchange);
    let ended = tokio::select! {
        biased;
        reply = &mut exchange => return reply,
        ended = connection => ended,
    };
    // One that hangs up with its last word has answered.
    exchange.await.map_err(|_: String| ended.map_or_else(|why| why.to_string(), |()| "EOF".into()))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A webhook that agrees with everybody and hangs up; gives where it is, and its certificate.
    async fn webhook() -> (WebhookAddress, rcgen::Certificate) {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
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
        let connect = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n{}") {
                    request.push(stream.read_u8().await.unwrap());
                }
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes";
                stream.write_all(answer).await.unwrap();
                stream.shutdown().await.unwrap();
            }
        });
        let address = WebhookAddress {
            url: format!("https://{connect}/"),
            connect,
            server_name: "localhost".to_owned(),
            path: "/".to_owned(),
            ca: Vec::new(),
        };
        (address, certificate)
    }

    #[tokio::test]
    async fn a_webhook_without_a_bundle_is_called_if_this_host_trusts_it() {
        let (address, certificate) = webhook().await;
        let mut roots = RootCertStore::empty();
        let stranger = TlsConnector { known: Arc::new(roots.clone()).into() };
        let refused = stranger.post(address.clone(), Bytes::from("{}")).await.unwrap_err();
        assert!(refused.contains("failed to verify certificate"), "{refused}");

        roots.add(certificate.der().clone()).unwrap();
        let known = TlsConnector { known: Arc::new(roots).into() };
        let reply = known.post(address.clone(), Bytes::from("{}")).await.unwrap();
        assert_eq!((reply.code, reply.body.as_ref()), (200, b"yes".as_slice()));

        // A bundle decides alone.
        let (_, other) = webhook().await;
        let misled = WebhookAddress { ca: other.pem().into_bytes(), ..address };
        known.post(misled, Bytes::from("{}")).await.unwrap_err();
    }

    #[tokio::test]
    async fn a_webhook_that_hangs_up_with_its_last_word_has_answered() {
        let (address, certificate) = webhook().await;
        let address = WebhookAddress { ca: certificate.pem().into_bytes(), ..address };
        let connector = TlsConnector::default();
        for _ in 0..50 {
            let reply = connector.post(address.clone(), Bytes::from("{}")).await.unwrap();
            assert_eq!(reply.body.as_ref(), b"yes");
        }
    }
}
