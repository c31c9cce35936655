//! Connections to the programs of users: TCP, and TLS that trusts a bundle or this host's
//! authorities. What goes wrong is told in Go's words.
//!
//! It keeps no connection, and knows nothing of what is said through one.

use std::io::ErrorKind;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A connection to `address`, a host and a port.
pub(crate) async fn tcp(address: &str) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(address).await.map_err(|error| {
        let why = match error.kind() {
            ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            _ => error.to_string(),
        };
        format!("dial tcp {address}: connect: {why}")
    })?;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Shakes hands with who is called `name`.
pub(crate) async fn tls(
    config: ClientConfig,
    name: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, String> {
    let name = ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::new(config));
    let shaken = connector.connect(name, stream).await;
    shaken.map_err(|error| format!("tls: failed to verify certificate: x509: {error}"))
}

/// The authorities of a PEM bundle.
pub(crate) fn authorities_in(bundle: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(roots)
}

/// The authorities that this host trusts. Reading them takes a while.
pub(crate) fn authorities_of_this_host() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// TLS with those whose certificate one of `roots` has signed.
pub(crate) fn trusting(roots: Arc<RootCertStore>) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
