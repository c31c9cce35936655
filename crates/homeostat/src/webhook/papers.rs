//! An authority and the certificate it signed: when they are good, and what takes their place when
//! they no longer are. It decides by the time it is told and never asks anybody.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use homeostat_env::Env;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SerialNumber,
};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::certificate::Pem;

/// Clocks differ: a certificate is good from a little before it was made.
const EARLIER: Duration = Duration::from_secs(3600);
/// An authority lives so many times as long as the certificates it signs.
const AUTHORITY_LIVES: u32 = 4;

/// What the Secret keeps.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Papers {
    /// Whom callers are to trust: the authority, and the one before it while it may be in use.
    pub(super) bundle: String,
    authority_key: String,
    pub(super) certificate: String,
    pub(super) key: String,
}

/// What papers must be like.
pub(super) struct Terms<'a> {
    /// The host names and addresses of the server.
    pub(super) names: &'a [String],
    /// How long a certificate is good.
    pub(super) lifetime: Duration,
}

impl Papers {
    pub(super) fn read(data: &BTreeMap<String, ByteString>) -> Option<Self> {
        let text = |name: &str| String::from_utf8(data.get(name)?.0.clone()).ok();
        Some(Self {
            bundle: text("ca.crt")?,
            authority_key: text("ca.key")?,
            certificate: text("tls.crt")?,
            key: text("tls.key")?,
        })
    }

    /// The fields of a Secret of the type `kubernetes.io/tls`, and the authority's beside them.
    pub(super) fn write(&self) -> BTreeMap<String, ByteString> {
        let Self { bundle, authority_key, certificate, key } = self;
        let fields = [
            ("ca.crt", bundle),
            ("ca.key", authority_key),
            ("tls.crt", certificate),
            ("tls.key", key),
        ];
        let bytes = |text: &String| ByteString(text.clone().into_bytes());
        fields.into_iter().map(|(name, text)| (name.to_owned(), bytes(text))).collect()
    }

    /// What the server shows.
    pub(super) fn pem(&self) -> Pem {
        let bytes = |text: &String| text.clone().into_bytes();
        Pem { certificate: bytes(&self.certificate), key: bytes(&self.key) }
    }

    /// Papers that are good now, and when they are to be renewed; the old ones if they will do.
    pub(super) fn renewed(
        old: Option<Self>,
        terms: &Terms<'_>,
        env: &Env,
    ) -> Result<(Self, Timestamp), String> {
        let now = env.now();
        let authority = old.as_ref().and_then(Self::authority);
        let authority = authority.filter(|seen| seen.due > now);
        if let (Some(papers), Some(authority)) = (&old, &authority)
            && let Some(due) = papers.certificate_due(authority, terms)
            && due > now
        {
            return Ok((papers.clone(), due.min(authority.due)));
        }
        let failed = |error: rcgen::Error| format!("no certificate could be made: {error}");
        let papers = match (old, authority) {
            (Some(Self { bundle, authority_key, .. }), Some(authority)) => {
                let signed = sign(&authority.pem, &authority_key, terms, env).map_err(failed)?;
                Self { bundle, authority_key, certificate: signed.0, key: signed.1 }
            }
            (old, _) => {
                let (pem, authority_key) = found(terms, env).map_err(failed)?;
                let signed = sign(&pem, &authority_key, terms, env).map_err(failed)?;
                let before = old.and_then(|old| first_pem(&old.bundle).map(str::to_owned));
                let bundle = pem + &before.unwrap_or_default();
                Self { bundle, authority_key, certificate: signed.0, key: signed.1 }
            }
        };
        let due = due(now, seconds(now) + i64::try_from(terms.lifetime.as_secs()).unwrap_or(0));
        Ok((papers, due))
    }

    /// Whether the certificate is good for hardly any longer.
    pub(super) fn ends_soon(&self, now: Timestamp) -> bool {
        let ends = Seen::read(&self.certificate, &self.key).map(|seen| seen.until);
        ends.is_none_or(|ends| ends < seconds(now) + EARLIER.as_secs().cast_signed())
    }

    /// The authority, if it is one and its key is here.
    fn authority(&self) -> Option<Seen> {
        let pem = first_pem(&self.bundle)?;
        let seen = Seen::read(pem, &self.authority_key)?;
        seen.is_authority.then_some(seen)
    }

    /// When the certificate is to be renewed; `None` when it will not do at all.
    fn certificate_due(&self, authority: &Seen, terms: &Terms<'_>) -> Option<Timestamp> {
        let seen = Seen::read(&self.certificate, &self.key)?;
        let mut wanted = terms.names.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        (seen.issuer == authority.subject && seen.names == wanted).then_some(seen.due)
    }
}

/// What a certificate says.
struct Seen {
    pem: String,
    subject: String,
    issuer: String,
    names: Vec<String>,
    is_authority: bool,
    /// When a third of its life is left.
    due: Timestamp,
    /// When it ends, in seconds.
    until: i64,
}

impl Seen {
    /// `None` when it cannot be read, or the key is another's.
    fn read(pem: &str, key: &str) -> Option<Self> {
        let (_, block) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).ok()?;
        let (_, certificate) = X509Certificate::from_der(&block.contents).ok()?;
        let key = KeyPair::from_pem(key).ok()?;
        if key.der_bytes() != &*certificate.public_key().subject_public_key.data {
            return None;
        }
        let alternative = certificate.subject_alternative_name().ok()?;
        let names = alternative.iter().flat_map(|names| &names.value.general_names);
        let mut names: Vec<String> = names.filter_map(name).collect();
        names.sort_unstable();
        let validity = certificate.validity();
        let (from, until) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        Some(Self {
            pem: pem.to_owned(),
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            names,
            is_authority: certificate.is_ca(),
            due: due(Timestamp::from_second(from).ok()?, until),
            until,
        })
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let sixteen = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            four.or_else(|_| sixteen()).ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

/// When a third of the time from `from` to `until` (in seconds) is left.
fn due(from: Timestamp, until: i64) -> Timestamp {
    let third = (until - seconds(from)) / 3;
    Timestamp::from_second(until.saturating_sub(third)).unwrap_or(Timestamp::MAX)
}

fn seconds(time: Timestamp) -> i64 {
    time.as_second()
}

/// The first of several PEM blocks.
fn first_pem(text: &str) -> Option<&str> {
    const END: &str = "-----END CERTIFICATE-----";
    let end = text.find(END)? + END.len();
    Some(text[..end].trim_start()).filter(|pem| !pem.is_empty())
}

/// A new authority: its certificate and its key.
fn found(terms: &Terms<'_>, env: &Env) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut parameters = parameters(Vec::new(), terms.lifetime * AUTHORITY_LIVES, env)?;
    // Named after its number: who issued a certificate is known by name.
    let name = format!("homeostat webhooks {:016x}", env.random_u64());
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok((parameters.self_signed(&key)?.pem(), key.serialize_pem()))
}

/// A new certificate and its key.
fn sign(
    authority: &str,
    authority_key: &str,
    terms: &Terms<'_>,
    env: &Env,
) -> Result<(String, String), rcgen::Error> {
    let issuer = Issuer::from_ca_cert_pem(authority, KeyPair::from_pem(authority_key)?)?;
    let key = KeyPair::generate()?;
    let mut parameters = parameters(terms.names.to_vec(), terms.lifetime, env)?;
    let name = terms.names.first().cloned().unwrap_or_default();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.use_authority_key_identifier_extension = true;
    Ok((parameters.signed_by(&key, &issuer)?.pem(), key.serialize_pem()))
}

fn parameters(
    names: Vec<String>,
    lifetime: Duration,
    env: &Env,
) -> Result<CertificateParams, rcgen::Error> {
    let mut parameters = CertificateParams::new(names)?;
    let since_epoch = env.now().duration_since(Timestamp::UNIX_EPOCH).max(SignedDuration::ZERO);
    let now = rcgen::date_time_ymd(1970, 1, 1) + since_epoch.unsigned_abs();
    parameters.not_before = now - EARLIER;
    parameters.not_after = now + lifetime;
    // A serial number is positive: the highest bit stays clear.
    parameters.serial_number = Some(SerialNumber::from(env.random_u64() >> 1));
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn renewed(old: Option<&Papers>, names: &[&str], env: &Env) -> (Papers, Timestamp) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let terms = Terms { names: &names, lifetime: 90 * DAY };
        Papers::renewed(old.cloned(), &terms, env).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn papers_are_kept_until_a_third_of_their_life_is_left() {
        let env = Env::simulated(1, "2026-01-01T00:00:00Z".parse().unwrap());
        let names = ["127.0.0.1", "web.default.svc"];
        let (first, due) = renewed(None, &names, &env);
        assert!(Papers::read(&first.write()).as_ref() == Some(&first));
        env.sleep(59 * DAY).await;
        assert!(renewed(Some(&first), &names, &env).0 == first);
        assert!(due > env.now());

        env.sleep(2 * DAY).await;
        let (second, _) = renewed(Some(&first), &names, &env);
        assert!(second.bundle == first.bundle, "the authority stays");
        assert!(second.certificate != first.certificate);

        env.sleep(200 * DAY).await;
        let (third, _) = renewed(Some(&second), &names, &env);
        assert!(third.bundle.ends_with(first_pem(&second.bundle).unwrap()), "both are trusted");
        assert!(third.bundle.len() > second.bundle.len());
        env.sleep(250 * DAY).await;
        let (fourth, _) = renewed(Some(&third), &names, &env);
        assert!(!fourth.bundle.contains(first_pem(&first.bundle).unwrap()), "but no others");
    }

    #[test]
    fn papers_for_other_names_or_with_foreign_keys_will_not_do() {
        let env = Env::simulated(1, "2026-01-01T00:00:00Z".parse().unwrap());
        let (first, _) = renewed(None, &["a"], &env);
        let (wider, _) = renewed(Some(&first), &["a", "::1"], &env);
        assert!(wider.bundle == first.bundle && wider.certificate != first.certificate);
        assert!(renewed(Some(&wider), &["::1", "a"], &env).0 == wider);
        let (other, _) = renewed(None, &["a"], &env);
        let mixed = Papers { key: other.key.clone(), ..first.clone() };
        assert!(renewed(Some(&mixed), &["a"], &env).0.certificate != first.certificate);
        let foreign = Papers { authority_key: other.authority_key, ..first.clone() };
        assert!(renewed(Some(&foreign), &["a"], &env).0.bundle != first.bundle);
        let broken = Papers { bundle: "nonsense".into(), ..first };
        assert!(renewed(Some(&broken), &["a"], &env).0.bundle.starts_with("-----BEGIN"));
    }
}
