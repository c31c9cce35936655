//! Who may call: a fresh authority, one admin with a token, and the kubeconfig that carries both.
//!
//! Calls inside the process are trusted; calls through TLS must show the token. There is no
//! authorization beyond that yet.

mod certificates;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use homeostat_env::Env;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request};

use crate::status::Status;

pub use certificates::IdentityError;

/// What a client needs to reach the server.
#[derive(Clone)]
pub struct Access {
    /// The certificate of the authority that signed the server's, as PEM.
    pub ca_pem: String,
    /// The admin's bearer token.
    pub token: String,
}

/// What the server shows to clients, and what it expects of them.
#[derive(Clone)]
pub struct Identity {
    access: Access,
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

impl Identity {
    /// A fresh authority, a certificate for `localhost`, 127.0.0.1, the in-cluster names and
    /// `names`, and a random token.
    ///
    /// # Errors
    /// When a name cannot be in a certificate or no key can be made.
    pub fn generate(env: &Env, names: &[&str]) -> Result<Self, IdentityError> {
        let certificates::Issued { ca_pem, certificate, key } = certificates::issue(env, names)?;
        let mut secret = [0_u8; 32];
        env.fill_random(&mut secret);
        let token = URL_SAFE_NO_PAD.encode(secret);
        Ok(Self { access: Access { ca_pem, token }, certificate, key })
    }

    /// What a client needs.
    #[must_use]
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Refuses a request from outside that does not show the token. Probes may always ask how the
    /// server is, and anybody which version it speaks.
    pub(crate) fn admit<B>(&self, request: &Request<B>) -> Result<(), Status> {
        let path = request.uri().path();
        let public = ["/healthz", "/livez", "/readyz", "/version"];
        if public.iter().any(|open| path == *open || path.starts_with(&format!("{open}/"))) {
            return Ok(());
        }
        match bearer(request.headers()) {
            Some(token) if same(token.as_bytes(), self.access.token.as_bytes()) => Ok(()),
            _ => Err(Status::unauthorized()),
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Compares in a time that does not tell how much of a guess is right.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

impl Access {
    /// A kubeconfig for the admin of the server at `url`.
    #[must_use]
    pub fn kubeconfig(&self, url: &str) -> String {
        let authority = STANDARD.encode(&self.ca_pem);
        let token = &self.token;
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: homeostat
  cluster:
    server: {url}
    certificate-authority-data: {authority}
users:
- name: admin
  user:
    token: {token}
contexts:
- name: homeostat
  context:
    cluster: homeostat
    user: admin
    namespace: default
current-context: homeostat
"
        )
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}
