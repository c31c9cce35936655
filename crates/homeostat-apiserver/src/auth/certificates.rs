//! A certificate authority that lives as long as the server, and the one certificate it signs.

use homeostat_env::Env;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SerialNumber,
};

/// No identity could be made.
#[derive(Debug, thiserror::Error)]
#[error("no certificate could be made: {0}")]
pub struct IdentityError(#[from] rcgen::Error);

/// Names every server answers to.
const NAMES: &[&str] = &[
    "localhost",
    "127.0.0.1",
    "::1",
    "127.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

pub(super) struct Issued {
    pub(super) ca_pem: String,
    /// DER.
    pub(super) certificate: Vec<u8>,
    /// DER, PKCS #8.
    pub(super) key: Vec<u8>,
}

pub(super) fn issue(env: &Env, names: &[&str]) -> Result<Issued, IdentityError> {
    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::new(Vec::new())?;
    ca.distinguished_name.push(DnType::CommonName, "homeostat");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    ca.serial_number = Some(serial(env));
    let ca_pem = ca.self_signed(&ca_key)?.pem();
    let authority = Issuer::new(ca, ca_key);

    let key = KeyPair::generate()?;
    let names = NAMES.iter().chain(names).map(|name| (*name).to_owned());
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
