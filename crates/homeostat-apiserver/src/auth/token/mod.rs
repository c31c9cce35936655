//! Tokens of service accounts: who signs them, what they say, and whom they prove.

mod claims;
mod key;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub(crate) use claims::{Bound, Claims, Reference};
pub use key::{SigningKey, SigningKeyError};

use super::rbac::quoted;
use super::user::User;
use crate::registry::Registry;

/// Who issues tokens, and whom they are for unless they say otherwise.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";
/// How many tokens are remembered as genuine; checking a signature costs more than all the rest.
const REMEMBERED: usize = 1024;

/// Issues tokens and recognises them.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    key: OnceLock<Arc<SigningKey>>,
    /// By their hash, so that how long a look-up takes tells nothing.
    genuine: Mutex<BTreeMap<[u8; 32], Arc<Claims>>>,
}

/// Why a token proves nobody.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is not one of ours.
    Foreign,
    /// It is one of ours, but.
    Invalid(String),
}

impl Tokens {
    /// Tokens signed by that key, or by a fresh one when it is first needed.
    pub(crate) fn new(key: Option<Arc<SigningKey>>) -> Self {
        Self { key: key.map_or_else(OnceLock::new, OnceLock::from), genuine: Mutex::default() }
    }

    fn key(&self) -> Result<&Arc<SigningKey>, SigningKeyError> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let fresh = Arc::new(SigningKey::generate()?);
        Ok(self.key.get_or_init(|| fresh))
    }

    /// The token that says so.
    pub(crate) fn issue(&self, claims: &Claims) -> Result<String, SigningKeyError> {
        let body = serde_json::to_vec(claims).map_err(|_| SigningKeyError)?;
        self.key()?.sign(&body)
    }

    /// The user whom a token proves to one of `audiences`, and to which of them.
    pub(crate) fn user(
        &self,
        registry: &Registry,
        token: &str,
        audiences: &[String],
    ) -> Result<(User, Vec<String>), Refused> {
        let claims = self.genuine(token)?;
        let meant: Vec<String> =
            claims.aud.iter().filter(|audience| audiences.contains(audience)).cloned().collect();
        if meant.is_empty() {
            return Err(Refused::Invalid(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted(&claims.aud),
                quoted(audiences)
            )));
        }
        let user = claims.user(registry).map_err(Refused::Invalid)?;
        Ok((user, meant))
    }

    fn genuine(&self, token: &str) -> Result<Arc<Claims>, Refused> {
        let mut genuine = self.genuine.lock().unwrap_or_else(PoisonError::into_inner);
        if token.matches('.').count() != 2 {
            return Err(Refused::Foreign);
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        if let Some(claims) = genuine.get(&hash) {
            return Ok(claims.clone());
        }
        let body = self.key().ok().and_then(|key| key.verify(token));
        let claims = body.and_then(|body| serde_json::from_slice::<Claims>(&body).ok());
        let claims = claims.filter(|claims| claims.iss == ISSUER).map(Arc::new);
        let claims = claims.ok_or_else(|| {
            Refused::Invalid("go-jose/go-jose: error in cryptographic primitive".to_owned())
        })?;
        if genuine.len() >= REMEMBERED {
            genuine.clear();
        }
        genuine.insert(hash, claims.clone());
        Ok(claims)
    }

    /// `/openid/v1/jwks`: the keys with which anybody can check a token.
    pub(crate) fn published(&self) -> Result<Value, SigningKeyError> {
        Ok(json!({"keys": [self.key()?.public()]}))
    }

    /// `/.well-known/openid-configuration`: where to find those keys.
    pub(crate) fn discovery(host: &str) -> Value {
        json!({
            "issuer": ISSUER,
            "jwks_uri": format!("https://{host}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }
}
