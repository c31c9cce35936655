//! The key that signs the tokens of service accounts: ES256, published as a JSON Web Key.
//!
//! It signs and verifies bytes; what a token says is the business of its neighbours.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::directory::DataDirectory;
use crate::store::StorageError;

/// What stands before the point in the public key's DER form: an elliptic curve key on P-256.
const PUBLIC_KEY_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// The key cannot be made or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key that signs service account tokens cannot be used")]
pub struct SigningKeyError;

/// The key that signs the tokens of service accounts.
///
/// Its randomness is the system's even in a simulation, as that of certificates is: a token is
/// not part of what a simulation compares.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    id: String,
    pkcs8: Vec<u8>,
}

impl SigningKey {
    /// A fresh key.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn generate() -> Result<Self, SigningKeyError> {
        let made =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Self::from_pkcs8(made.map_err(|_| SigningKeyError)?.as_ref())
    }

    /// A key that was kept: PKCS #8 in DER form.
    ///
    /// # Errors
    /// When it is no P-256 key.
    pub fn from_pkcs8(bytes: &[u8]) -> Result<Self, SigningKeyError> {
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &SystemRandom::new());
        let pair = pair.map_err(|_| SigningKeyError)?;
        let digest =
            Sha256::new().chain_update(PUBLIC_KEY_PREFIX).chain_update(pair.public_key().as_ref());
        let id = URL_SAFE_NO_PAD.encode(digest.finalize());
        Ok(Self { pair, id, pkcs8: bytes.to_vec() })
    }

    /// The key that `directory` keeps, made when there is none yet: tokens outlive the process.
    ///
    /// # Errors
    /// When it cannot be read or kept.
    pub fn kept(directory: &DataDirectory) -> Result<Self, StorageError> {
        const NAME: &str = "service-account.key";
        let unusable = |error: SigningKeyError| {
            StorageError::damaged(directory.path().join(NAME), 0, error.to_string())
        };
        let make = || Self::generate().map(|key| STANDARD.encode(key.pkcs8())).map_err(unusable);
        let bytes = STANDARD.decode(directory.keep(NAME, make)?);
        Self::from_pkcs8(&bytes.map_err(|_| unusable(SigningKeyError))?).map_err(unusable)
    }

    /// What [`SigningKey::from_pkcs8`] reads; as secret as anything can be.
    #[must_use]
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// A compact JSON Web Signature over the claims.
    pub(crate) fn sign(&self, claims: &[u8]) -> Result<String, SigningKeyError> {
        let header = json!({"alg": "ES256", "kid": self.id}).to_string();
        let mut token =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.pair.sign(&SystemRandom::new(), token.as_bytes());
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature.map_err(|_| SigningKeyError)?));
        Ok(token)
    }

    /// The claims of a token that this key signed.
    pub(crate) fn verify(&self, token: &str) -> Option<Vec<u8>> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        if header["alg"] != "ES256" {
            return None;
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key());
        public.verify(signed.as_bytes(), &signature).ok()?;
        URL_SAFE_NO_PAD.decode(claims).ok()
    }

    /// The public half as a JSON Web Key.
    pub(crate) fn public(&self) -> Value {
        // An uncompressed point: one byte that says so, then both coordinates.
        let point = self.pair.public_key().as_ref();
        let (x, y) = point.get(1..).unwrap_or_default().split_at(point.len() / 2);
        json!({
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(x),
            "y": URL_SAFE_NO_PAD.encode(y),
        })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_believed_only_with_the_signature_of_this_key() {
        let (key, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
        let token = key.sign(b"claims").unwrap();
        assert_eq!(key.verify(&token).as_deref(), Some(&b"claims"[..]));
        assert_eq!(other.verify(&token), None);
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (header, _) = signed.split_once('.').unwrap();
        let forged = format!("{header}.{}.{signature}", URL_SAFE_NO_PAD.encode("other"));
        assert_eq!(key.verify(&forged), None);
        let unsigned = URL_SAFE_NO_PAD.encode(json!({"alg": "none"}).to_string());
        assert_eq!(key.verify(&format!("{unsigned}.{}.", URL_SAFE_NO_PAD.encode("claims"))), None);
    }

    #[test]
    fn a_kept_key_reads_the_tokens_it_signed_before() {
        let key = SigningKey::generate().unwrap();
        let token = key.sign(b"claims").unwrap();
        let kept = SigningKey::from_pkcs8(key.pkcs8()).unwrap();
        assert!(kept.verify(&token).is_some());
        assert_eq!(kept.public(), key.public());
    }
}
