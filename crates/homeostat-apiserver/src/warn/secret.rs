//! Secrets that hold a certificate: whether its key belongs to it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use serde_json::Value;
use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::ber::parse_ber_any;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::text;

pub(super) fn of_secret(secret: &Value, warnings: &mut Vec<String>) {
    if text(secret, "/type") == "kubernetes.io/tls" {
        let data = |key: &str| {
            let written = secret["data"].get(key).and_then(Value::as_str).unwrap_or_default();
            blocks(&STANDARD.decode(written).unwrap_or_default())
        };
        let problem = problem(&data("tls.crt"), &data("tls.key"));
        warnings.extend(problem);
    }
}

/// The blocks of a PEM document; what comes after a broken one is not read.
fn blocks(pem: &[u8]) -> Vec<Pem> {
    Pem::iter_from_buffer(pem).map_while(Result::ok).collect()
}

/// The names of the blocks that are not what was looked for.
fn skipped(blocks: &[Pem]) -> String {
    let names: Vec<&str> = blocks.iter().map(|block| block.label.as_str()).collect();
    format!("[{}]", names.join(" "))
}

fn is_key(block: &Pem) -> bool {
    block.label == "PRIVATE KEY" || block.label.ends_with(" PRIVATE KEY")
}

/// Why the first certificate and the first key are no pair, in the words of Go's library.
fn problem(certificates: &[Pem], keys: &[Pem]) -> Option<String> {
    match pair(certificates, keys) {
        Ok((certificate, _)) if !is_sequence(certificate) => {
            Some("x509: malformed certificate".to_owned())
        }
        Ok((certificate, key)) => {
            mismatch(certificate, key).map(|problem| format!("tls: {problem}"))
        }
        Err(problem) => Some(format!("tls: {problem}")),
    }
}

/// What is in the two blocks that count.
fn pair<'a>(certificates: &'a [Pem], keys: &'a [Pem]) -> Result<(&'a [u8], &'a [u8]), String> {
    let Some(certificate) = certificates.iter().find(|block| block.label == "CERTIFICATE") else {
        return Err(match certificates {
            [] => "failed to find any PEM data in certificate input".to_owned(),
            [one] if one.label.ends_with("PRIVATE KEY") => {
                "failed to find certificate PEM data in certificate input, but did find a private \
                 key; PEM inputs may have been switched"
                    .to_owned()
            }
            others => format!(
                "failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM \
                 blocks of the following types: {}",
                skipped(others)
            ),
        });
    };
    let Some(key) = keys.iter().find(|block| is_key(block)) else {
        return Err(match keys {
            [] => "failed to find any PEM data in key input".to_owned(),
            [one] if one.label == "CERTIFICATE" => {
                "found a certificate rather than a key in the PEM for the private key".to_owned()
            }
            others => format!(
                "failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after \
                 skipping PEM blocks of the following types: {}",
                skipped(others)
            ),
        });
    };
    Ok((&certificate.contents, &key.contents))
}

/// What cannot be read here for another reason than its form is not spoken of.
fn mismatch(certificate: &[u8], key: &[u8]) -> Option<&'static str> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    match public_half(key) {
        Half::Malformed => Some("failed to parse private key"),
        Half::Unknown => None,
        Half::Known(own) => {
            let (_, own) = SubjectPublicKeyInfo::from_der(&own).ok()?;
            let certified = certificate.public_key();
            if own.algorithm.algorithm != certified.algorithm.algorithm {
                return Some("private key type does not match public key type");
            }
            let same = own.subject_public_key == certified.subject_public_key;
            (!same).then_some("private key does not match public key")
        }
    }
}

fn is_sequence(der: &[u8]) -> bool {
    parse_ber_any(der).is_ok_and(|(_, found)| found.header.is_constructed())
}

/// The public half of a private key.
enum Half {
    Malformed,
    /// Of a sort or size that is not carried out here.
    Unknown,
    Known(Vec<u8>),
}

fn public_half(der: &[u8]) -> Half {
    let forms: [PrivateKeyDer<'_>; 3] = [
        PrivatePkcs1KeyDer::from(der).into(),
        PrivatePkcs8KeyDer::from(der).into(),
        PrivateSec1KeyDer::from(der).into(),
    ];
    let key = forms.iter().find_map(|form| any_supported_type(form).ok());
    match key.and_then(|key| Some(key.public_key()?.as_ref().to_vec())) {
        Some(public) => Half::Known(public),
        None if is_sequence(der) => Half::Unknown,
        None => Half::Malformed,
    }
}
