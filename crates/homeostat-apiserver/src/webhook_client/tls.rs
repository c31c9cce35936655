//! One POST over TLS: the default way to webhooks. Nothing is kept open between calls.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;

use super::{WebhookAddress, WebhookAnswer, WebhookConnector, WebhookReply};

/// The longest reply that is read.
const LONGEST_REPLY: usize = 8 * 1024 * 1024;

/// Connects to where the address says.
#[derive(Debug, Default)]
pub(crate) struct TlsConnector;

impl WebhookConnector for TlsConnector {
    fn post(&self, address: WebhookAddress, body: Bytes) -> BoxFuture<'static, WebhookReply> {
        post(address, body).boxed()
    }
}

async fn post(address: WebhookAddress, body: Bytes) -> WebhookReply {
    let WebhookAddress { connect, server_name, path, ca, .. } = address;
    let stream = TcpStream::connect(&connect).await.map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            _ => error.to_string(),
        };
        format!("dial tcp {connect}: connect: {why}")
    })?;
    let _ = stream.set_nodelay(true);
    let connector = tokio_rustls::TlsConnector::from(Arc::new(trusting(&ca)?));
    let name = ServerName::try_from(server_name.clone()).map_err(|error| error.to_string())?;
    let stream = connector
        .connect(name, stream)
        .await
        .map_err(|error| format!("tls: failed to verify certificate: x509: {error}"))?;
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
    tokio::select! {
        biased;
        reply = exchange => reply,
        ended = connection => match ended {
            Ok(()) => Err("EOF".to_owned()),
            Err(error) => Err(error.to_string()),
        },
    }
}

fn trusting(ca: &[u8]) -> Result<rustls::ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
