//! The certificate in use, and what is wrong with its renewal. Files are looked at when somebody
//! connects or asks for the readiness, and never otherwise: nothing here runs by itself.

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use homeostat_env::Env;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::certificate::{Certificate, Origin, Pem};
use super::papers::Papers;
use super::self_signed::SelfSigned;
use crate::cache::{Informer, SourceState};
use crate::error::{Error, Result};

/// The files are not looked at more often than this.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The certificate in use.
pub(super) struct Current {
    origin: Origin,
    env: Env,
    state: Mutex<State>,
}

struct State {
    /// `None` until the API gives the server its papers.
    acceptor: Option<TlsAcceptor>,
    /// What the files had when they were last good. Of other origins no key is kept here.
    used: Option<Pem>,
    looked: Instant,
    problem: Option<String>,
    /// Where it comes from, if the server made it for itself.
    papers: Option<Papers>,
    /// Who tells that those papers, or whoever is to trust them, have changed.
    followed: Vec<Informer>,
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
        let (mut papers, mut problem) = (None, None);
        let first = match &origin {
            Origin::SelfSigned(own) => match own.papers(client, &env).await {
                Ok(kept) => Some(papers.insert(kept.papers).pem()),
                Err(error) if error.may_pass() => {
                    problem = Some(error.chain());
                    None
                }
                Err(error) => return Err(error),
            },
            Origin::Given(pem) => Some(pem.clone()),
            // Nothing else is under way yet that a slow disk could hold up.
            Origin::Files { certificate, key } => {
                Some(Pem::read(certificate, key).map_err(Error::terminal)?)
            }
        };
        let acceptor = first.as_ref().map(Pem::acceptor).transpose().map_err(Error::terminal)?;
        let used = first.filter(|_| matches!(origin, Origin::Files { .. }));
        let (looked, followed) = (env.instant(), Vec::new());
        let state = State { acceptor, used, looked, problem, papers, followed };
        Ok(Self { origin, env, state: Mutex::new(state) })
    }

    /// The certificate for the next connection: the renewed one if there is one; `None` while the
    /// server has none yet.
    pub(super) async fn acceptor(self: &Arc<Self>) -> Option<TlsAcceptor> {
        if self.is_due() {
            // A disk may be slow, and this thread serves other connections.
            let current = Arc::clone(self);
            drop(tokio::task::spawn_blocking(move || current.look()).await);
        }
        self.with(|state| state.acceptor.clone())
    }

    /// Whether the files have not been looked at for a while; who hears so is to look.
    fn is_due(&self) -> bool {
        let now = self.env.instant();
        matches!(self.origin, Origin::Files { .. })
            && self.with(|state| {
                let is_due = now.saturating_duration_since(state.looked) >= LOOK_EVERY;
                if is_due {
                    state.looked = now;
                }
                is_due
            })
    }

    /// Uses what the files have, if it can be used and is not in use. Times of files say too little:
    /// old files may come back as they were, and one of the two may be older than the other.
    fn look(&self) {
        let Origin::Files { certificate, key } = &self.origin else { return };
        let read = Pem::read(certificate, key);
        self.with(|state| {
            let fresh = read.and_then(|pem| {
                let is_used = state.used.as_ref() == Some(&pem);
                (!is_used).then(|| pem.acceptor().map(|acceptor| (acceptor, pem))).transpose()
            });
            match fresh {
                Ok(None) => state.problem = None,
                Ok(Some((acceptor, pem))) => {
                    (state.acceptor, state.used) = (Some(acceptor), Some(pem));
                    state.problem = None;
                    tracing::info!("the certificate was renewed");
                }
                Err(problem) => {
                    if state.problem.as_ref() != Some(&problem) {
                        tracing::warn!(problem, "the certificate stays as it was");
                    }
                    state.problem = Some(problem);
                }
            }
        });
    }

    /// What the server makes for itself.
    pub(super) fn self_signed(&self) -> Option<&SelfSigned> {
        match &self.origin {
            Origin::SelfSigned(own) => Some(own),
            Origin::Given(_) | Origin::Files { .. } => None,
        }
    }

    /// Uses those from the next connection on.
    pub(super) fn renew(&self, papers: Papers) -> Result<(), String> {
        let acceptor = papers.pem().acceptor()?;
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

    /// Without these nobody hears what changes, so their troubles are the renewal's.
    pub(super) fn follow(&self, informers: Vec<Informer>) {
        self.with(|state| state.followed = informers);
    }

    /// What is wrong with the renewal. Files are looked at here, too, because nobody connects to a
    /// server that is not ready: one bad renewal would otherwise be the end of it. They are two
    /// small files in a while, so whoever asks waits for them.
    pub(super) fn problem(&self) -> Option<String> {
        if self.is_due() {
            self.look();
        }
        let (problem, followed) =
            self.with(|state| (state.problem.clone(), state.followed.clone()));
        let now = self.env.instant();
        let pending = followed.iter().filter_map(|informer| match informer.state() {
            SourceState::Pending(why) if informer.is_cut_off(now) => {
                Some(format!("not followed: {why}"))
            }
            _ => None,
        });
        let problems: Vec<String> = problem.into_iter().chain(pending).collect();
        (!problems.is_empty()).then(|| problems.join(", "))
    }

    fn with<R>(&self, look: impl FnOnce(&mut State) -> R) -> R {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
