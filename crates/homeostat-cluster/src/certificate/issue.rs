//! Certificates: the subject and the key of a request, signed.
//!
//! `rcgen` makes certificates, too, but keeps of several organizations only the last, and
//! organizations are a user's groups. So the subject is taken over as it was written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use yasna::models::ObjectIdentifier;
use yasna::tags::{TAG_GENERALIZEDTIME, TAG_UTCTIME};
use yasna::{DERWriter, DERWriterSeq, Tag};

use super::authority::{AuthorityError, CertificateAuthority};
use super::request::Request;

const ECDSA_WITH_SHA256: &[u64] = &[1, 2, 840, 10045, 4, 3, 2];
const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
const BASIC_CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const AUTHORITY_KEY: &[u64] = &[2, 5, 29, 35];
const EXTENDED_USAGE: &[u64] = &[2, 5, 29, 37];

/// Bits from the left.
const DIGITAL_SIGNATURE: u8 = 0b1000_0000;
const KEY_ENCIPHERMENT: u8 = 0b0010_0000;
const SERVER_AUTH: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 2];

/// How long a certificate is valid that does not ask for less.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 365);
const SHORTEST: SignedDuration = SignedDuration::from_mins(10);
/// Clocks differ: a certificate is valid a little before it is made.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);
/// One that is valid for less than this lasts its full time after that; others lose the backdate.
const SHORT: SignedDuration = SignedDuration::from_hours(8);

/// From when to when a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Term {
    from: Timestamp,
    until: Timestamp,
}

impl Term {
    /// The term of a certificate made now that was asked for with so many seconds.
    pub(super) fn of(now: Timestamp, seconds: Option<i32>) -> Self {
        let asked = seconds.map_or(LONGEST, |seconds| SignedDuration::from_secs(seconds.into()));
        let lasts = asked.clamp(SHORTEST, LONGEST);
        let from = now.saturating_sub(BACKDATE).unwrap_or(now);
        let begin = if lasts < SHORT { now } else { from };
        Self { from, until: begin.saturating_add(lasts).unwrap_or(Timestamp::MAX) }
    }
}

/// The certificate, as PEM.
pub(super) fn certificate(
    authority: &CertificateAuthority,
    request: &Request,
    usages: &[&str],
    term: Term,
    mut serial: [u8; 16],
) -> Result<String, AuthorityError> {
    // Positive, and never zero.
    serial[0] = serial[0] & 0x7f | 0x40;
    let body = yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_tagged(Tag::context(0), |writer| writer.write_u8(2));
            writer.next().write_bigint_bytes(&serial, true);
            algorithm(writer.next());
            writer.next().write_der(&authority.subject);
            writer.next().write_sequence(|writer| {
                time(writer.next(), term.from);
                time(writer.next(), term.until);
            });
            writer.next().write_der(&request.subject);
            writer.next().write_der(&request.public_key);
            writer.next().write_tagged(Tag::context(3), |writer| {
                writer.write_sequence(|writer| extensions(writer, authority, request, usages));
            });
        });
    });
    let signature = authority.sign(&body)?;
    let der = yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_der(&body);
            algorithm(writer.next());
            writer.next().write_bitvec_bytes(&signature, signature.len() * 8);
        });
    });
    Ok(pem(&der))
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}

fn oid(parts: &[u64]) -> ObjectIdentifier {
    ObjectIdentifier::from_slice(parts)
}

fn algorithm(writer: DERWriter<'_>) {
    writer.write_sequence(|writer| writer.next().write_oid(&oid(ECDSA_WITH_SHA256)));
}

/// Two digits for the year until 2049, four after that.
fn time(writer: DERWriter<'_>, time: Timestamp) {
    let year = time.strftime("%Y").to_string();
    let (tag, form) = if year.as_str() < "2050" {
        (TAG_UTCTIME, "%y%m%d%H%M%SZ")
    } else {
        (TAG_GENERALIZEDTIME, "%Y%m%d%H%M%SZ")
    };
    let text = time.strftime(form).to_string();
    writer.write_tagged_implicit(tag, |writer| writer.write_bytes(text.as_bytes()));
}

fn extensions(
    writer: &mut DERWriterSeq<'_>,
    authority: &CertificateAuthority,
    request: &Request,
    usages: &[&str],
) {
    let bit = |usage: &str, bit: u8| if usages.contains(&usage) { bit } else { 0 };
    let bits =
        bit("digital signature", DIGITAL_SIGNATURE) | bit("key encipherment", KEY_ENCIPHERMENT);
    if bits != 0 {
        let length = 8 - bits.trailing_zeros() as usize;
        let value = yasna::construct_der(|writer| writer.write_bitvec_bytes(&[bits], length));
        extension(writer, KEY_USAGE, true, &value);
    }
    let purposes = [("server auth", SERVER_AUTH), ("client auth", CLIENT_AUTH)];
    let purposes: Vec<_> = purposes.iter().filter(|(usage, _)| usages.contains(usage)).collect();
    let value = yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            for (_, purpose) in &purposes {
                writer.next().write_oid(&oid(purpose));
            }
        });
    });
    if !purposes.is_empty() {
        extension(writer, EXTENDED_USAGE, false, &value);
    }
    let nobody = yasna::construct_der(|writer| writer.write_sequence(|_| {}));
    extension(writer, BASIC_CONSTRAINTS, true, &nobody);
    if let Some(id) = &authority.key_id {
        let value = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                let id = |writer: DERWriter<'_>| writer.write_bytes(id);
                writer.next().write_tagged_implicit(Tag::context(0), id);
            });
        });
        extension(writer, AUTHORITY_KEY, false, &value);
    }
    if let Some(names) = &request.names {
        extension(writer, ALTERNATIVE_NAMES, false, names);
    }
}

fn extension(writer: &mut DERWriterSeq<'_>, id: &[u64], critical: bool, value: &[u8]) {
    writer.next().write_sequence(|writer| {
        writer.next().write_oid(&oid(id));
        if critical {
            writer.next().write_bool(true);
        }
        writer.next().write_bytes(value);
    });
}
