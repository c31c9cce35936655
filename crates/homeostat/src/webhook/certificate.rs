//! The certificate of the webhook server, as its user names it: given once, kept in files that
//! somebody renews, or made by the server for itself. It never decides when to look again.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::self_signed::SelfSigned;

/// Where the certificate and its key come from.
#[derive(Clone)]
pub struct Certificate(pub(super) Origin);

#[derive(Clone)]
pub(super) enum Origin {
    Given(Pem),
    Files { certificate: PathBuf, key: PathBuf },
    SelfSigned(SelfSigned),
}

impl Certificate {
    /// Certificate chain and key as PEM text, good for as long as the process runs.
    pub fn pem(certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        Self(Origin::Given(Pem { certificate: certificate.into(), key: key.into() }))
    }

    /// Certificate chain and key in PEM files. They are read at the start, and again when somebody
    /// connects or asks for the readiness, so that a renewed certificate needs no restart; one that
    /// cannot be used leaves the last good one in use and shows in the readiness until the files are
    /// good again.
    pub fn files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self(Origin::Files { certificate: certificate.into(), key: key.into() })
    }

    /// A certificate that the server makes for itself, keeps in a Secret, renews, and tells to the
    /// configurations that are to trust it.
    #[must_use]
    pub fn self_signed(certificate: SelfSigned) -> Self {
        Self(Origin::SelfSigned(certificate))
    }

    /// `tls.crt` and `tls.key` in a folder, as a mounted Secret has them; see [`Self::files`].
    pub fn folder(folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref();
        Self::files(folder.join("tls.crt"), folder.join("tls.key"))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Origin::Given(_) => f.write_str("Certificate"),
            Origin::Files { certificate, .. } => {
                write!(f, "Certificate({})", certificate.display())
            }
            Origin::SelfSigned(own) => own.fmt(f),
        }
    }
}

/// A certificate chain and its key as PEM text. It holds a secret and is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pem {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

impl Pem {
    /// What two files have.
    ///
    /// # Errors
    /// Which of them cannot be read, and why.
    pub(super) fn read(certificate: &Path, key: &Path) -> Result<Self, String> {
        let read = |path: &Path| {
            let text = std::fs::read(path);
            text.map_err(|error| format!("{} cannot be read: {error}", path.display()))
        };
        Ok(Self { certificate: read(certificate)?, key: read(key)? })
    }

    /// What shows the certificate to those who connect. It offers HTTP/1.1 alone.
    ///
    /// # Errors
    /// Why the certificate cannot be used.
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, String> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("the certificate cannot be read: {error}"))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| format!("the key of the certificate cannot be read: {error}"))?;
        let config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
                .map_err(|error| format!("the certificate cannot be used: {error}"))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
