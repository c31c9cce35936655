//! The Secret of a Database: made once, its password kept for as long as the Secret is there.

use std::collections::BTreeMap;

use homeostat::k8s_openapi::ByteString;
use homeostat::k8s_openapi::api::core::v1::Secret;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

/// The administrator's name; the first start of the server makes the role.
pub(crate) const USERNAME: &str = "postgres";

/// The length of a password: 32 letters and digits are about 190 bits.
pub(crate) const PASSWORD_LENGTH: usize = 32;

/// The password in that Secret, if it holds one.
pub(crate) fn password_in(secret: &Secret) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get("password")?.0;
    String::from_utf8(bytes.clone()).ok().filter(|password| !password.is_empty())
}

/// Eight digits that change with the password and are of no use for finding it.
pub(crate) fn mark(uid: &str, password: &str) -> String {
    let digest = Sha256::digest(format!("{uid} {password}"));
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// The keys of the Secret.
pub(crate) fn data(
    password: &str,
    host: &str,
    port: i32,
    database: &str,
) -> BTreeMap<String, ByteString> {
    // Somebody may have put a password of their own there.
    let quoted = utf8_percent_encode(password, NON_ALPHANUMERIC);
    let uri = format!("postgresql://{USERNAME}:{quoted}@{host}:{port}/{database}");
    [
        ("username", USERNAME.to_owned()),
        ("password", password.to_owned()),
        ("host", host.to_owned()),
        ("port", port.to_string()),
        ("database", database.to_owned()),
        ("uri", uri),
    ]
    .map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uri_is_made_of_the_other_keys() {
        let data = data("secret", "127.96.0.7", 5432, "app");
        assert_eq!(data["uri"].0, b"postgresql://postgres:secret@127.96.0.7:5432/app");
    }

    #[test]
    fn a_password_with_signs_does_not_break_the_uri() {
        let data = data("p@ss/word", "h", 5432, "app");
        assert_eq!(data["uri"].0, b"postgresql://postgres:p%40ss%2Fword@h:5432/app");
        assert_eq!(data["password"].0, b"p@ss/word");
    }

    #[test]
    fn the_mark_changes_with_the_password_only() {
        assert_eq!(mark("1", "a"), mark("1", "a"));
        assert_ne!(mark("1", "a"), mark("1", "b"));
        assert_eq!(mark("1", "a").len(), 8);
    }
}
