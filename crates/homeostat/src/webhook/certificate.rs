//! The certificate of the webhook server: given once, kept in files that somebody renews, or made
//! by the server for itself.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use homeostat_env::Env;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::papers::Papers;
use super::self_signed::SelfSigned;
use crate::error::{Error, Result};

/// The files are not looked at more often than this.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Where the certificate and its key come from.
#[derive(Clone)]
pub struct Certificate(Origin);

#[derive(Clone)]
enum Origin {
    Pem { certificate: Vec<u8>, key: Vec<u8> },
    Files { certificate: PathBuf, key: PathBuf },
    SelfSigned(SelfSigned),
}

impl Certificate {
    /// Certificate chain and key as PEM text, good for as long as the process runs.
    pub fn pem(certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        Self(Origin::Pem { certificate: certificate.into(), key: key.into() })
    }

    /// Certificate chain and key in PEM files. They are read at the start and again when they have
    /// changed and somebody connects, so that a renewed certificate needs no restart; one that
    /// cannot be read leaves the last good one in use and shows in the readiness.
    pub fn files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self(Origin::Files { certificate: certificate.into(), key: key.into() })
    }

    /// A certificate that the server makes for itself, keeps in a Secret, renews, and tells to the
    /// configurations that are to trust it.
    #[must_use]
    pub fn self_signed(certificate: SelfSigned) -> Self {
        Self(Origin::SelfSigned(certificate))
    }

    /// `tls.crt` and `tls.key` in a folder, as a mounted Secret has them; see [`Self::files`].
    pub fn folder(folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref();
        Self::files(folder.join("tls.crt"), folder.join("tls.key"))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Origin::Pem { .. } => f.write_str("Certificate"),
            Origin::Files { certificate, .. } => {
                write!(f, "Certificate({})", certificate.display())
            }
            Origin::SelfSigned(own) => own.fmt(f),
        }
    }
}

/// The certificate in use.
pub(super) struct Current {
    origin: Origin,
    env: Env,
    state: Mutex<State>,
}

struct State {
    /// `None` until the API gives the server its papers.
    acceptor: Option<TlsAcceptor>,
    changed: Option<SystemTime>,
    looked: Instant,
    problem: Option<String>,
    /// Where it comes from, if the server made it for itself.
    papers: Option<Papers>,
}

impl Current {
    /// The certificate that is there. One that is kept by an API which is away comes later.
    ///
    /// # Errors
    /// When it cannot be read or made.
    pub(super) async fn load(
        certificate: Certificate,
        client: &kube::Client,
        env: Env,
    ) -> Result<Self> {
        let Certificate(origin) = certificate;
        let changed = changed(&origin).await;
        let (mut papers, mut problem) = (None, None);
        let acceptor = match &origin {
            Origin::SelfSigned(own) => match own.papers(client, &env).await {
                Ok((own, _)) => {
                    let own = papers.insert(own);
                    Some(tls(own.certificate.as_bytes(), own.key.as_bytes()))
                }
                Err(error) if error.may_pass() => {
                    problem = Some(error.chain());
                    None
                }
                Err(error) => return Err(error),
            },
            given => Some(acceptor(given).await),
        };
        let acceptor = acceptor.transpose().map_err(Error::terminal)?;
        let state = State { acceptor, changed, looked: env.instant(), problem, papers };
        Ok(Self { origin, env, state: Mutex::new(state) })
    }

    /// The certificate for the next connection: the renewed one if there is one; `None` while the
    /// server has none yet.
    pub(super) async fn acceptor(&self) -> Option<TlsAcceptor> {
        let now = self.env.instant();
        let before = self.with(|state| {
            let due = now.saturating_duration_since(state.looked) >= LOOK_EVERY;
            due.then(|| {
                state.looked = now;
                state.changed
            })
        });
        if let Some(before) = before {
            let changed = changed(&self.origin).await;
            if changed != before {
                let fresh = acceptor(&self.origin).await;
                self.with(|state| match fresh {
                    Ok(acceptor) => {
                        (state.acceptor, state.changed, state.problem) =
                            (Some(acceptor), changed, None);
                        tracing::info!("the certificate was renewed");
                    }
                    Err(problem) => {
                        tracing::warn!(problem, "the certificate stays as it was");
                        state.problem = Some(problem);
                    }
                });
            }
        }
        self.with(|state| state.acceptor.clone())
    }

    /// What the server makes for itself.
    pub(super) fn self_signed(&self) -> Option<&SelfSigned> {
        match &self.origin {
            Origin::SelfSigned(own) => Some(own),
            Origin::Pem { .. } | Origin::Files { .. } => None,
        }
    }

    /// Uses those from the next connection on.
    pub(super) fn renew(&self, papers: Papers) -> Result<(), String> {
        let acceptor = tls(papers.certificate.as_bytes(), papers.key.as_bytes())?;
        self.with(|state| (state.acceptor, state.papers) = (Some(acceptor), Some(papers)));
        Ok(())
    }

    /// Whether who trusts the certificate in use trusts that of `papers`, or will soon trust neither.
    pub(super) fn is_no_worse(&self, papers: &Papers) -> bool {
        let now = self.env.now();
        self.with(|state| {
            let used = state.papers.as_ref();
            used.is_none_or(|used| used.bundle == papers.bundle || used.ends_soon(now))
        })
    }

    pub(super) fn set_problem(&self, problem: Option<String>) {
        self.with(|state| state.problem = problem);
    }

    /// What is wrong with the renewal.
    pub(super) fn problem(&self) -> Option<String> {
        self.with(|state| state.problem.clone())
    }

    fn with<R>(&self, look: impl FnOnce(&mut State) -> R) -> R {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// When the files last changed.
async fn changed(origin: &Origin) -> Option<SystemTime> {
    let Origin::Files { certificate, key } = origin else { return None };
    let mut newest = None;
    for path in [certificate, key] {
        let metadata = tokio::fs::metadata(path).await.ok();
        newest = newest.max(metadata.and_then(|metadata| metadata.modified().ok()));
    }
    newest
}

async fn acceptor(origin: &Origin) -> Result<TlsAcceptor, String> {
    let (certificate, key) = match origin {
        Origin::Pem { certificate, key } => (certificate.clone(), key.clone()),
        Origin::Files { certificate, key } => (read(certificate).await?, read(key).await?),
        Origin::SelfSigned(_) => return Err("it is not known yet".to_owned()),
    };
    tls(&certificate, &key)
}

fn tls(certificate: &[u8], key: &[u8]) -> Result<TlsAcceptor, String> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the certificate cannot be read: {error}"))?;
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| format!("the key of the certificate cannot be read: {error}"))?;
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| format!("the certificate cannot be used: {error}"))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn read(path: &Path) -> Result<Vec<u8>, String> {
    let text = tokio::fs::read(path).await;
    text.map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn write(folder: &Path, minute: u64, certificate: &str, key: &str) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(60 * minute);
        for (name, text) in [("tls.crt", certificate), ("tls.key", key)] {
            std::fs::write(folder.join(name), text).unwrap();
            let file = std::fs::File::options().write(true).open(folder.join(name)).unwrap();
            file.set_modified(time).unwrap();
        }
    }

    /// A client that is not asked.
    fn nobody() -> kube::Client {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(crate::error::BoxError::from("nobody"))
        });
        kube::Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_certificate_is_used_and_a_broken_one_is_not() {
        let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
        let folder = tempfile::tempdir().unwrap();
        let made = || {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            (made.cert.pem(), made.signing_key.serialize_pem())
        };
        let (first, second) = (made(), made());
        write(folder.path(), 1, &first.0, &first.1);
        let (nobody, folder_of) = (nobody(), Certificate::folder(folder.path()));
        let current = Current::load(folder_of, &nobody, env.clone()).await.unwrap();
        let config = async || Arc::as_ptr(current.acceptor().await.unwrap().config());
        let before = config().await;
        write(folder.path(), 2, "nonsense", "nonsense");
        assert_eq!(config().await, before, "not looked at yet");
        env.sleep(LOOK_EVERY).await;
        assert_eq!(config().await, before, "the last good one");
        assert!(current.problem().unwrap().contains("key of the certificate cannot be read"));
        write(folder.path(), 3, &second.0, &second.1);
        env.sleep(LOOK_EVERY).await;
        assert_ne!(config().await, before);
        assert_eq!(current.problem(), None);
    }
}
