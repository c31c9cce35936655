//! A connection with TLS to a server on this machine, for whoever speaks by himself.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A connection that offers to speak `protocol`, or leaves that open.
pub(crate) async fn connect(
    ca: &str,
    address: SocketAddr,
    protocol: Option<&[u8]>,
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocol.into_iter().map(<[u8]>::to_vec).collect();
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect("localhost".try_into().unwrap(), stream).await
}
