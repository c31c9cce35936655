//! An authority and the certificate it signed: when they are good, and what takes their place when
//! they no longer are. It decides by the time it is told and never asks anybody.

use std::collections::{BTreeMap, BTreeSet};
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
/// So many names that only others want stay in a certificate: more than there are replicas at a time,
/// and few enough for a handshake. Where each restart brings its own, the oldest go.
const FOREIGN: usize = 64;

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

    /// Papers that are good now, and when they are to be renewed; the old ones if they will do, for
    /// names that nobody asks for here, too: replicas of two releases may want different ones.
    pub(super) fn renewed(
        old: Option<Self>,
        terms: &Terms<'_>,
        env: &Env,
    ) -> Result<(Self, Timestamp), String> {
        let now = env.now();
        let authority = old.as_ref().and_then(Self::authority);
        let authority = authority.filter(|seen| seen.due > now);
        let wanted = terms.wanted();
        let mut names = Vec::from_iter(wanted.iter().cloned());
        if let (Some(papers), Some(authority)) = (&old, &authority)
            && let Some(seen) = papers.certificate_of(authority)
            && seen.due > now
        {
            if wanted.iter().all(|name| seen.names.contains(name)) {
                return Ok((papers.clone(), seen.due.min(authority.due)));
            }
            // Whoever wants the other names would take ours away in turn, and we theirs for ever.
            let foreign = seen.names.into_iter().filter(|name| !wanted.contains(name));
            names.extend(foreign.take(FOREIGN));
        }
        let failed = |error: rcgen::Error| format!("no certificate could be made: {error}");
        let authority_due = authority.as_ref().map_or(Timestamp::MAX, |seen| seen.due);
        let certify =
            |authority: &str, key: &str| sign(authority, key, names, terms, env).map_err(failed);
        let papers = match (old, authority) {
            (Some(Self { bundle, authority_key, .. }), Some(authority)) => {
                let signed = certify(&authority.pem, &authority_key)?;
                Self { bundle, authority_key, certificate: signed.0, key: signed.1 }
            }
            (old, _) => {
                let (pem, authority_key) = found(terms, env).map_err(failed)?;
                let signed = certify(&pem, &authority_key)?;
                let before = old.and_then(|old| first_pem(&old.bundle).map(str::to_owned));
                let bundle = pem + &before.unwrap_or_default();
                Self { bundle, authority_key, certificate: signed.0, key: signed.1 }
            }
        };
        let lifetime = i64::try_from(terms.lifetime.as_secs()).unwrap_or(0);
        Ok((papers, due(seconds(now), seconds(now) + lifetime).min(authority_due)))
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

    /// The certificate, if that authority signed it and its key is here.
    fn certificate_of(&self, authority: &Seen) -> Option<Seen> {
        let seen = Seen::read(&self.certificate, &self.key)?;
        (seen.issuer == authority.subject).then_some(seen)
    }
}

impl Terms<'_> {
    /// The names as a certificate tells them: addresses have many spellings and one of them there.
    fn wanted(&self) -> BTreeSet<String> {
        let told = |name: &String| {
            name.parse::<IpAddr>().map_or_else(|_| name.clone(), |address| address.to_string())
        };
        self.names.iter().map(told).collect()
    }
}

/// What a certificate says.
struct Seen {
    pem: String,
    subject: String,
    issuer: String,
    /// Those wanted last come first.
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
        let names = names.filter_map(name).collect();
        let validity = certificate.validity();
        let (from, until) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        // The hour that is given to other clocks is no part of its life.
        let made = from.saturating_add(EARLIER.as_secs().cast_signed());
        Some(Self {
            pem: pem.to_owned(),
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            names,
            is_authority: certificate.is_ca(),
            due: due(made, until),
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

/// When a third of the time from `made` to `until` (in seconds) is left.
fn due(made: i64, until: i64) -> Timestamp {
    let third = until.saturating_sub(made).max(0) / 3;
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
    names: Vec<String>,
    terms: &Terms<'_>,
    env: &Env,
) -> Result<(String, String), rcgen::Error> {
    let issuer = Issuer::from_ca_cert_pem(authority, KeyPair::from_pem(authority_key)?)?;
    let key = KeyPair::generate()?;
    let mut parameters = parameters(names, terms.lifetime, env)?;
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
        renewed_for(90 * DAY, old, names, env)
    }

    fn renewed_for(
        lifetime: Duration,
        old: Option<&Papers>,
        names: &[&str],
        env: &Env,
    ) -> (Papers, Timestamp) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Papers::renewed(old.cloned(), &Terms { names: &names, lifetime }, env).unwrap()
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

    #[tokio::test(start_paused = true)]
    async fn papers_are_kept_for_two_thirds_of_their_life_however_short_it_is() {
        let env = Env::simulated(1, "2026-01-01T00:00:00Z".parse().unwrap());
        for seconds in [15, 600, 1800, 6 * 3600, 90 * 24 * 3600] {
            let life = Duration::from_secs(seconds);
            let (first, due) = renewed_for(life, None, &["a"], &env);
            let (same, still_due) = renewed_for(life, Some(&first), &["a"], &env);
            assert!(same == first, "{seconds} s: renewed at once");
            assert_eq!((due, still_due), (env.now() + life * 2 / 3, due), "{seconds} s");
            env.sleep(life * 2 / 3 - Duration::from_secs(1)).await;
            assert!(renewed_for(life, Some(&first), &["a"], &env).0 == first, "{seconds} s");
            env.sleep(Duration::from_secs(1)).await;
            assert!(renewed_for(life, Some(&first), &["a"], &env).0 != first, "{seconds} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn replicas_that_want_different_names_are_content_with_the_same_papers() {
        let env = Env::simulated(1, "2026-01-01T00:00:00Z".parse().unwrap());
        let (old_release, new_release) = (["a", "b"], ["b", "0:0::1"]);
        let (first, _) = renewed(None, &old_release, &env);
        let (wider, _) = renewed(Some(&first), &new_release, &env);
        assert!(wider != first);
        assert!(renewed(Some(&wider), &old_release, &env).0 == wider, "they take turns");
        assert!(renewed(Some(&wider), &new_release, &env).0 == wider);
        // What nobody wants any more goes when the papers are renewed in any case.
        env.sleep(61 * DAY).await;
        let (narrow, _) = renewed(Some(&wider), &new_release, &env);
        let seen = Seen::read(&narrow.certificate, &narrow.key).unwrap();
        assert_eq!(seen.names, ["::1", "b"]);
    }

    #[test]
    fn names_that_come_with_every_restart_go_again() {
        let env = Env::simulated(1, "2026-01-01T00:00:00Z".parse().unwrap());
        let pod = |number: usize| format!("10.0.0.{number}");
        let (mut papers, _) = renewed(None, &["web", &pod(0)], &env);
        for restart in 1..=2 * FOREIGN {
            papers = renewed(Some(&papers), &["web", &pod(restart)], &env).0;
        }
        let names = Seen::read(&papers.certificate, &papers.key).unwrap().names;
        let latest = (FOREIGN..=2 * FOREIGN).map(pod);
        let mut wanted = BTreeSet::from_iter(latest);
        wanted.insert("web".to_owned());
        assert_eq!(BTreeSet::from_iter(names), wanted);
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
