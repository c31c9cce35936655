//! Secrets that hold a certificate: whether its key belongs to it.

mod key;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use key::{Half, is_on_unknown_curve, public_half};
use serde_json::Value;
use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::ber::parse_ber_any;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;

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

/// The blocks of a PEM document; what comes after a broken one is not read, nor are headers.
fn blocks(pem: &[u8]) -> Vec<Pem> {
    let lines = pem.split_inclusive(|byte| *byte == b'\n');
    let plain: Vec<u8> =
        lines.filter(|line| !line.contains(&b':') && *line != b"\n").flatten().copied().collect();
    Pem::iter_from_buffer(&plain).map_while(Result::ok).collect()
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
        Ok((certificate, key)) => mismatch(certificate, key),
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
fn mismatch(certificate: &[u8], key: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let certified = certificate.public_key();
    if is_on_unknown_curve(certified) {
        return Some("x509: unsupported elliptic curve".to_owned());
    }
    let problem = match public_half(key) {
        Half::Malformed => "failed to parse private key",
        Half::NotForSigning => "found unknown private key type in PKCS#8 wrapping",
        Half::Unknown => return None,
        Half::Known(algorithm, public) => {
            if algorithm != certified.algorithm.algorithm.as_bytes() {
                "private key type does not match public key type"
            } else if public != certified.subject_public_key.data.as_ref() {
                "private key does not match public key"
            } else {
                return None;
            }
        }
    };
    Some(format!("tls: {problem}"))
}

fn is_sequence(der: &[u8]) -> bool {
    parse_ber_any(der).is_ok_and(|(_, found)| found.header.is_constructed())
}
