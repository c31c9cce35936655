//! Client certificates: the user that a certificate of the server's authority names.
//!
//! Every connection is asked for one and none is refused for what it shows, because a request may
//! prove its user in another way. A certificate is judged when the first request comes; how long
//! it holds, at every request.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use sha2::{Digest as _, Sha256};
use x509_parser::der_parser::oid;

use super::User;
use super::user::AUTHENTICATED;

/// What tells two certificates of one user apart.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// Asks for a certificate and leaves it to the requests to have it judged.
#[derive(Debug)]
pub(crate) struct AskFor {
    judge: Arc<dyn ClientCertVerifier>,
}

impl AskFor {
    /// Certificates that the authority signed for clients.
    pub(crate) fn signed_by(ca_pem: &str) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
            roots.add(certificate.map_err(|error| Error::General(error.to_string()))?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let judge = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        Ok(Self { judge })
    }

    /// What a connection has shown.
    pub(crate) fn shown(&self, chain: &[CertificateDer<'static>]) -> Shown {
        Shown { chain: chain.to_vec(), judge: Arc::clone(&self.judge), verdict: OnceLock::new() }
    }
}

impl ClientCertVerifier for AskFor {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.judge.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.judge.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.judge.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.judge.supported_verify_schemes()
    }
}

/// The certificate of one connection, and those it stands on.
#[derive(Debug)]
pub(crate) struct Shown {
    chain: Vec<CertificateDer<'static>>,
    judge: Arc<dyn ClientCertVerifier>,
    verdict: OnceLock<Result<Holder, String>>,
}

/// Whom a certificate is for.
#[derive(Debug)]
struct Holder {
    /// None when it names nobody.
    user: Option<Arc<User>>,
    /// In seconds since 1970.
    until: i64,
}

impl Shown {
    /// The user, none when the certificate names nobody, or why it does not count.
    pub(crate) fn user(&self, now: Timestamp) -> Result<Option<Arc<User>>, String> {
        let holder = self.verdict.get_or_init(|| self.judge(now)).as_ref().map_err(Clone::clone)?;
        if now.as_second() > holder.until {
            return Err("the certificate has expired".to_owned());
        }
        Ok(holder.user.clone())
    }

    fn judge(&self, now: Timestamp) -> Result<Holder, String> {
        let (first, rest) = self.chain.split_first().ok_or("no certificate")?;
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        self.judge.verify_client_cert(first, rest, time).map_err(|error| error.to_string())?;
        named_by(first)
    }
}

/// The common name is the user, organizations are the groups.
fn named_by(certificate: &[u8]) -> Result<Holder, String> {
    let (_, parsed) =
        x509_parser::parse_x509_certificate(certificate).map_err(|error| error.to_string())?;
    let until = parsed.validity().not_after.timestamp();
    let subject = parsed.subject();
    // Of several common names the last counts.
    let name = subject.iter_common_name().last().and_then(|name| name.as_str().ok());
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(Holder { user: None, until });
    };
    let mut user = User::new(name, subject.iter_organization().filter_map(|o| o.as_str().ok()));
    let uids: Vec<_> = subject.iter_by_oid(&oid!(1.3.6.1.4.1.57683.2)).collect();
    user.uid = match uids.as_slice() {
        [] => String::new(),
        [uid] => {
            uid.as_str().ok().filter(|uid| !uid.is_empty()).ok_or("its UID is not text")?.to_owned()
        }
        _ => return Err("it has more than one UID".to_owned()),
    };
    let digest: String = Sha256::digest(certificate).iter().map(|b| format!("{b:02x}")).collect();
    user.extra.insert(CREDENTIAL.to_owned(), vec![format!("X509SHA256={digest}")]);
    user.join(AUTHENTICATED);
    Ok(Holder { user: Some(Arc::new(user)), until })
}
