//! The public half of a private key, from its DER forms: PKCS #1, PKCS #8 and SEC 1.
//!
//! What TLS here can use, its library reads. The rest (short and long RSA keys, curves it does not
//! know) is read by hand: those keys carry their public half with them.

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use x509_parser::der_parser::ber::{Tag, parse_ber_any};
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::SubjectPublicKeyInfo;

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const X25519: &[u8] = &[0x2b, 0x65, 0x6e];
/// P-224, P-256, P-384 and P-521.
const CURVES: &[&[u8]] = &[
    &[0x2b, 0x81, 4, 0, 33],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7],
    &[0x2b, 0x81, 4, 0, 34],
    &[0x2b, 0x81, 4, 0, 35],
];

/// Whether a certified key is on a curve that nobody here knows.
pub(super) fn is_on_unknown_curve(key: &SubjectPublicKeyInfo<'_>) -> bool {
    let curve = key.algorithm.parameters.as_ref().map(|parameters| parameters.data);
    key.algorithm.algorithm.as_bytes() == EC && !curve.is_some_and(|curve| CURVES.contains(&curve))
}

/// What is known of a private key.
pub(super) enum Half {
    /// It is none.
    Malformed,
    /// It agrees on secrets and signs nothing.
    NotForSigning,
    /// It does not carry its public half.
    Unknown,
    /// Its algorithm (the bytes of the identifier) and its public half, as certificates have them.
    Known(Vec<u8>, Vec<u8>),
}

/// Reads a key in whichever form it is.
pub(super) fn public_half(der: &[u8]) -> Half {
    let forms: [PrivateKeyDer<'_>; 3] = [
        PrivatePkcs1KeyDer::from(der).into(),
        PrivatePkcs8KeyDer::from(der).into(),
        PrivateSec1KeyDer::from(der).into(),
    ];
    let key = forms.iter().find_map(|form| any_supported_type(form).ok());
    if let Some(public) = key.as_ref().and_then(|key| key.public_key())
        && let Ok((_, public)) = SubjectPublicKeyInfo::from_der(public.as_ref())
    {
        let algorithm = public.algorithm.algorithm.as_bytes().to_vec();
        return Half::Known(algorithm, public.subject_public_key.data.to_vec());
    }
    let read = rsa(der).or_else(|| wrapped(der)).or_else(|| elliptic(der, None));
    read.unwrap_or(Half::Malformed)
}

/// The element at the beginning: its tag, what is in it, and what comes after it.
fn element(der: &[u8]) -> Option<(Tag, &[u8], &[u8])> {
    let (rest, found) = parse_ber_any(der).ok()?;
    Some((found.tag(), found.data, rest))
}

fn expect(der: &[u8], tag: Tag) -> Option<(&[u8], &[u8])> {
    element(der).filter(|found| found.0 == tag).map(|(_, content, rest)| (content, rest))
}

/// PKCS #1: after the version come the two numbers of the public half.
fn rsa(der: &[u8]) -> Option<Half> {
    let (key, _) = expect(der, Tag::Sequence)?;
    let (_, numbers) = expect(key, Tag::Integer)?;
    let (_, rest) = expect(numbers, Tag::Integer)?;
    let (_, rest) = expect(rest, Tag::Integer)?;
    expect(rest, Tag::Integer)?;
    let public = &numbers[..numbers.len() - rest.len()];
    Some(Half::Known(RSA.to_vec(), sequence(public)))
}

/// PKCS #8: an algorithm, and a key in the form that it has.
fn wrapped(der: &[u8]) -> Option<Half> {
    let (key, _) = expect(der, Tag::Sequence)?;
    let (_, rest) = expect(key, Tag::Integer)?;
    let (algorithm, rest) = expect(rest, Tag::Sequence)?;
    let (inner, _) = expect(rest, Tag::OctetString)?;
    let (identifier, parameters) = expect(algorithm, Tag::Oid)?;
    match identifier {
        RSA => rsa(inner),
        EC => elliptic(inner, Some(expect(parameters, Tag::Oid)?.0)),
        X25519 => Some(Half::NotForSigning),
        _ => None,
    }
}

/// SEC 1: the secret number, then the curve and the public half if they are there.
fn elliptic(der: &[u8], named: Option<&[u8]>) -> Option<Half> {
    let (key, _) = expect(der, Tag::Sequence)?;
    let (_, rest) = expect(key, Tag::Integer)?;
    let (_, mut rest) = expect(rest, Tag::OctetString)?;
    let (mut curve, mut point) = (named, None);
    while let Some((tag, content, after)) = element(rest) {
        match tag.0 {
            0 => curve = curve.or_else(|| expect(content, Tag::Oid).map(|found| found.0)),
            // The first byte says how many bits of the last one do not count.
            1 => point = expect(content, Tag::BitString).and_then(|found| found.0.get(1..)),
            _ => {}
        }
        rest = after;
    }
    if !CURVES.contains(&curve?) {
        return None;
    }
    Some(point.map_or(Half::Unknown, |point| Half::Known(EC.to_vec(), point.to_vec())))
}

fn sequence(content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let mut der = vec![0x30];
    match length {
        [short @ 0..0x80] => der.push(*short),
        long => {
            der.push(0x80 | u8::try_from(long.len()).unwrap_or_default());
            der.extend(long);
        }
    }
    der.extend(content);
    der
}
