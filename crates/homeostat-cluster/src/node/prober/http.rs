//! `httpGet`: a GET that is answered with 2xx or 3xx, over HTTP or HTTPS.

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;

use http::header::HOST;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{USER_AGENT, port};

/// No more of an answer's body is read.
const LONGEST_ANSWER: usize = 10 * 1024;

pub(in crate::node) async fn get(
    get: &HTTPGetAction,
    container: &Container,
    ip: Ipv4Addr,
) -> Result<(), String> {
    let host = get.host.clone().filter(|host| !host.is_empty()).unwrap_or_else(|| ip.to_string());
    let port = port(&get.port, container)?;
    let secure = get.scheme.as_deref() == Some("HTTPS");
    let scheme = if secure { "https" } else { "http" };
    let path = get.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
    let url = format!("{scheme}://{host}:{port}{path}");
    let status = ask(get, &host, port, path, secure).await;
    let status = status.map_err(|error| format!("Get {url:?}: {error}"))?;
    if status.is_success() || status.is_redirection() {
        return Ok(());
    }
    Err(format!("HTTP probe failed with statuscode: {}", status.as_u16()))
}

async fn ask(
    get: &HTTPGetAction,
    host: &str,
    port: u16,
    path: &str,
    secure: bool,
) -> Result<http::StatusCode, Box<dyn Error + Send + Sync>> {
    let mut request = http::Request::get(path);
    request = request.header("user-agent", USER_AGENT).header("connection", "close");
    for header in get.http_headers.iter().flatten() {
        request = request.header(&header.name, &header.value);
    }
    if !request.headers_ref().is_some_and(|headers| headers.contains_key(HOST)) {
        request = request.header(HOST, format!("{host}:{port}"));
    }
    let request = request.body(Empty::new())?;
    let stream = TcpStream::connect((host, port)).await?;
    if secure {
        let name = ServerName::try_from(host.to_owned())?;
        let stream = TlsConnector::from(Arc::new(config()?)).connect(name, stream).await?;
        return answer(stream, request).await;
    }
    answer(stream, request).await
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: http::Request<Empty<bytes::Bytes>>,
) -> Result<http::StatusCode, Box<dyn Error + Send + Sync>> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(connection));
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    // Read to the end so that the program does not see a broken pipe.
    let _ = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await;
    drop(connection);
    Ok(status)
}

/// A client that talks to whoever answers: a probe asks whether a program is well, not who it is.
fn config() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone());
    let config = config.with_safe_default_protocol_versions()?.dangerous();
    Ok(config.with_custom_certificate_verifier(Arc::new(Anyone(provider))).with_no_client_auth())
}

#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// A server whose certificate nobody vouches for, and which answers each request with `status`.
    async fn server(status: u16) -> u16 {
        let own = rcgen::generate_simple_self_signed(["somebody.else".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![own.cert.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut head = [0; 1024];
                let _ = stream.read(&mut head).await;
                let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        port
    }

    #[tokio::test]
    async fn a_program_that_speaks_tls_is_asked_without_looking_at_its_certificate() {
        for (status, well) in [(200, true), (301, true), (500, false)] {
            let port = server(status).await;
            let action = json!({ "port": port, "scheme": "HTTPS", "path": "/healthz" });
            let action: HTTPGetAction = serde_json::from_value(action).unwrap();
            let answer = get(&action, &Container::default(), Ipv4Addr::LOCALHOST).await;
            assert_eq!(answer.is_ok(), well, "{status}: {answer:?}");
        }
    }
}
