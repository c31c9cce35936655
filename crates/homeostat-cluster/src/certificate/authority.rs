//! The authority that signs: its certificate and its key.

use std::fmt;

use rcgen::{KeyPair, PublicKeyData as _, SigningKey as _};
use x509_parser::extensions::ParsedExtension;
use x509_parser::pem::parse_x509_pem;

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The text holds no certificate.
    #[error("the authority's certificate cannot be read: {0}")]
    Certificate(String),
    /// The text holds no key, or the certificate is not of it.
    #[error("the authority's key cannot be used: {0}")]
    Key(String),
}

/// Whoever signs the certificates of clients and nodes. Who has it can be anybody.
#[derive(Clone)]
pub struct CertificateAuthority {
    /// DER.
    pub(super) subject: Vec<u8>,
    pub(super) key_id: Option<Vec<u8>>,
    /// PEM.
    key: String,
}

impl CertificateAuthority {
    /// The authority whose certificate and private key are in the text, one after the other, as
    /// PEM. The key is one of the curve P-256.
    ///
    /// # Errors
    /// [`AuthorityError`] when one of them is missing, cannot be read, or they are not a pair.
    pub fn from_pem(text: &str) -> Result<Self, AuthorityError> {
        let unreadable = |error: &dyn fmt::Display| AuthorityError::Certificate(error.to_string());
        let (_, block) = parse_x509_pem(text.as_bytes()).map_err(|error| unreadable(&error))?;
        let certificate = block.parse_x509().map_err(|error| unreadable(&error))?;
        let at = text.find("-----BEGIN PRIVATE KEY-----").unwrap_or(text.len());
        let unusable = |error: &dyn fmt::Display| AuthorityError::Key(error.to_string());
        let key = KeyPair::from_pem(&text[at..]).map_err(|error| unusable(&error))?;
        if *key.algorithm() != rcgen::PKCS_ECDSA_P256_SHA256 {
            return Err(unusable(&"it is not of the curve P-256"));
        }
        if certificate.public_key().raw != key.subject_public_key_info() {
            return Err(unusable(&"the certificate is of another key"));
        }
        let mut extensions = certificate.extensions().iter();
        let key_id = extensions.find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        });
        let subject = certificate.subject().as_raw().to_vec();
        Ok(Self { subject, key_id, key: text[at..].to_owned() })
    }

    /// ECDSA with SHA-256, in DER.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, AuthorityError> {
        let signed = KeyPair::from_pem(&self.key).and_then(|key| key.sign(message));
        signed.map_err(|error| AuthorityError::Key(error.to_string()))
    }
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateAuthority").finish_non_exhaustive()
    }
}
