//! Who calls: a fresh authority, an admin with a token, the kubeconfig that carries both,
//! certificates that the authority signed, and the tokens of service accounts.
//!
//! Calls inside the process are the admin's; calls through TLS are whose they prove to be. What
//! somebody may do is decided by roles and bindings, read from the store as it changes.

mod attributes;
mod authenticate;
mod certificates;
mod client_certificate;
mod impersonate;
pub(crate) mod protocol_token;
mod rbac;
mod token;
mod user;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use homeostat_env::Env;

use crate::directory::DataDirectory;
use crate::store::StorageError;

pub(crate) use attributes::Attributes;
pub(crate) use authenticate::{Outside, caller};
pub use certificates::IdentityError;
use certificates::{Authority, Issued};
pub(crate) use client_certificate::AskFor;
pub(crate) use rbac::{Rbac, RoleWrite, missing_rules};
pub(crate) use token::{Bound, Claims, ISSUER, Reference, Refused, Tokens};
pub use token::{SigningKey, SigningKeyError};
pub use user::User;
pub(crate) use user::{service_account_groups, service_account_name};

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
    authority: String,
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
        Self::issue(env, Authority::generate(env)?, new_token(env), names)
    }

    /// The authority and the token that `directory` keeps, made when there are none yet, with a
    /// fresh certificate as [`Identity::generate`] makes it.
    ///
    /// # Errors
    /// When they cannot be read or kept, or as [`Identity::generate`].
    pub fn kept(
        env: &Env,
        directory: &DataDirectory,
        names: &[&str],
    ) -> Result<Self, IdentityError> {
        const AUTHORITY: &str = "authority.pem";
        const TOKEN: &str = "token";
        let damaged = |name, what| StorageError::damaged(directory.path().join(name), 0, what);
        let make = || Ok::<_, IdentityError>(Authority::generate(env)?.to_text());
        let authority = Authority::from_text(&directory.keep(AUTHORITY, make)?);
        let authority = authority
            .map_err(|_| damaged(AUTHORITY, "it holds no certificate with its private key"))?;
        let token = directory.keep(TOKEN, || Ok::<_, IdentityError>(new_token(env)))?;
        // An empty one would let everybody in.
        if token.trim().is_empty() {
            return Err(damaged(TOKEN, "it is empty").into());
        }
        Self::issue(env, authority, token.trim().to_owned(), names)
    }

    fn issue(
        env: &Env,
        authority: Authority,
        token: String,
        names: &[&str],
    ) -> Result<Self, IdentityError> {
        let text = authority.to_text();
        let Issued { ca_pem, certificate, key } = certificates::issue(env, authority, names)?;
        Ok(Self { access: Access { ca_pem, token }, authority: text, certificate, key })
    }

    /// What a client needs.
    #[must_use]
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Certificate and private key of the authority, as PEM, for whoever signs certificates of
    /// clients. Whoever has it can be anybody.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Whether this is the admin's token.
    pub(crate) fn is_admin(&self, token: &str) -> bool {
        same(token.as_bytes(), self.access.token.as_bytes())
    }
}

fn new_token(env: &Env) -> String {
    let mut secret = [0_u8; 32];
    env.fill_random(&mut secret);
    URL_SAFE_NO_PAD.encode(secret)
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
