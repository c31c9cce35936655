//! Tokens of service accounts: who signs them, what they say, and whom they prove.

mod claims;
mod key;

use std::collections::{BTreeMap, VecDeque};
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
    genuine: Mutex<Genuine>,
}

/// Tokens that were found to be genuine, the latest of them.
#[derive(Debug, Default)]
struct Genuine {
    /// By their hash, so that how long a look-up takes tells nothing.
    claims: BTreeMap<[u8; 32], Arc<Claims>>,
    /// Since when they are known, the oldest first.
    order: VecDeque<[u8; 32]>,
}

impl Genuine {
    fn remember(&mut self, hash: [u8; 32], claims: Arc<Claims>) {
        if self.claims.insert(hash, claims).is_some() {
            // Two have verified it at the same time.
            return;
        }
        self.order.push_back(hash);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.claims.remove(&oldest);
        }
    }
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
        self.genuine_by(token, |token| self.key().ok()?.verify(token))
    }

    /// The claims of a token whose body `verify` gives. Nobody waits meanwhile: whoever sends
    /// rubbish would hold up all others.
    fn genuine_by(
        &self,
        token: &str,
        verify: impl FnOnce(&str) -> Option<Vec<u8>>,
    ) -> Result<Arc<Claims>, Refused> {
        if token.matches('.').count() != 2 {
            return Err(Refused::Foreign);
        }
        let known = || self.genuine.lock().unwrap_or_else(PoisonError::into_inner);
        let hash: [u8; 32] = Sha256::digest(token).into();
        let found = known().claims.get(&hash).cloned();
        if let Some(claims) = found {
            return Ok(claims);
        }
        let body = verify(token);
        let claims = body.and_then(|body| serde_json::from_slice::<Claims>(&body).ok());
        let claims = claims.filter(|claims| claims.iss == ISSUER).map(Arc::new);
        let claims = claims.ok_or_else(|| {
            Refused::Invalid("go-jose/go-jose: error in cryptographic primitive".to_owned())
        })?;
        known().remember(hash, claims.clone());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn token(tokens: &Tokens, number: usize) -> String {
        let claims = Claims {
            aud: vec![ISSUER.to_owned()],
            exp: 0,
            iat: 0,
            iss: ISSUER.to_owned(),
            jti: number.to_string(),
            bound: Bound::default(),
            nbf: 0,
            sub: String::new(),
        };
        tokens.issue(&claims).unwrap()
    }

    #[test]
    fn nobody_waits_while_a_token_is_verified() {
        let tokens = Tokens::default();
        let known = token(&tokens, 0);
        tokens.genuine(&known).unwrap();
        let refused = tokens.genuine_by("a.b.c", |_| {
            assert!(tokens.genuine.try_lock().is_ok(), "others are held up");
            assert_eq!(tokens.genuine(&known).unwrap().jti, "0");
            None
        });
        assert!(matches!(refused, Err(Refused::Invalid(_))));
    }

    #[test]
    fn a_token_too_many_makes_the_oldest_be_verified_again_and_no_other() {
        let tokens = Tokens::default();
        let all: Vec<String> = (0..=REMEMBERED).map(|number| token(&tokens, number)).collect();
        for token in &all {
            tokens.genuine(token).unwrap();
        }
        let is_verified_again = |token: &str| {
            let mut verified = false;
            let _ = tokens.genuine_by(token, |_| {
                verified = true;
                None
            });
            verified
        };
        assert!(is_verified_again(&all[0]));
        assert!(!all[1..].iter().any(|token| is_verified_again(token)));
    }
}
