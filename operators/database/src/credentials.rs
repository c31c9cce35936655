//! The Secret of a Database: made once, its password kept for ever.

use std::collections::BTreeMap;

use homeostat::k8s_openapi::ByteString;
use homeostat::k8s_openapi::api::core::v1::Secret;

/// The administrator's name; the first start of the server makes the role.
pub(crate) const USERNAME: &str = "postgres";

/// The length of a password: 32 letters and digits are about 190 bits.
pub(crate) const PASSWORD_LENGTH: usize = 32;

/// The password in that Secret, if it holds one.
pub(crate) fn password_in(secret: &Secret) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get("password")?.0;
    String::from_utf8(bytes.clone()).ok().filter(|password| !password.is_empty())
}

/// The keys of the Secret.
pub(crate) fn data(
    password: &str,
    host: &str,
    port: i32,
    database: &str,
) -> BTreeMap<String, ByteString> {
    let uri = format!("postgresql://{USERNAME}:{password}@{host}:{port}/{database}");
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
}
