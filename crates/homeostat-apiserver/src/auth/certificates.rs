//! A certificate authority that lives as long as the server or its data directory, and the one
//! certificate it signs at each start.

use homeostat_env::Env;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SerialNumber,
};

use crate::store::StorageError;

/// No identity could be made.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// No certificate could be made.
    #[error("no certificate could be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The one that is kept cannot be read, or none can be kept.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Names every server answers to.
const NAMES: &[&str] = &[
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Second octets of the ranges that Services of clusters on a host's loopback have.
const SERVICE_RANGES: std::ops::RangeInclusive<u8> = 96..=126;

pub(super) struct Issued {
    pub(super) ca_pem: String,
    /// DER.
    pub(super) certificate: Vec<u8>,
    /// DER, PKCS #8.
    pub(super) key: Vec<u8>,
}

/// Who signs.
pub(super) struct Authority {
    pem: String,
    key: KeyPair,
}

impl Authority {
    pub(super) fn generate(env: &Env) -> Result<Self, IdentityError> {
        let key = KeyPair::generate()?;
        let mut parameters = Self::parameters()?;
        parameters.serial_number = Some(serial(env));
        let pem = parameters.self_signed(&key)?.pem();
        Ok(Self { pem, key })
    }

    /// The certificate and the key, to be kept where nobody else can read them.
    pub(super) fn to_text(&self) -> String {
        format!("{}{}", self.pem, self.key.serialize_pem())
    }

    pub(super) fn from_text(text: &str) -> Result<Self, IdentityError> {
        let at = text.find("-----BEGIN PRIVATE KEY-----").unwrap_or(text.len());
        Ok(Self { pem: text[..at].to_owned(), key: KeyPair::from_pem(&text[at..])? })
    }

    /// The same at every start: those who know the certificate know its name and key.
    fn parameters() -> Result<CertificateParams, IdentityError> {
        let mut parameters = CertificateParams::new(Vec::new())?;
        parameters.distinguished_name.push(DnType::CommonName, "homeostat");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Ok(parameters)
    }
}

pub(super) fn issue(
    env: &Env,
    authority: Authority,
    names: &[&str],
) -> Result<Issued, IdentityError> {
    let ca_pem = authority.pem;
    let authority = Issuer::new(Authority::parameters()?, authority.key);
    let key = KeyPair::generate()?;
    let names = NAMES.iter().chain(names).map(|name| (*name).to_owned());
    // The Service `kubernetes` has the first address of whichever range the Services are in.
    let names = names.chain(SERVICE_RANGES.map(|range| format!("127.{range}.0.1")));
    let mut server = CertificateParams::new(names.collect::<Vec<_>>())?;
    server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    server.serial_number = Some(serial(env));
    let certificate = server.signed_by(&key, &authority)?;
    Ok(Issued { ca_pem, certificate: certificate.der().to_vec(), key: key.serialize_der() })
}

fn serial(env: &Env) -> SerialNumber {
    // A serial number is positive: the highest bit stays clear.
    SerialNumber::from(env.random_u64() >> 1)
}
