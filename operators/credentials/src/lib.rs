//! What a credentials Secret of a PostgreSQL server holds: `username`, `password`, `host`, `port`,
//! `database` and a `uri` made of them. The Database operator writes such Secrets, the
//! LogicalDatabase operator reads and writes them. Pure: it never connects anywhere, and never
//! shows a password.

use std::collections::BTreeMap;
use std::fmt;

use homeostat::Env;
use homeostat::k8s_openapi::ByteString;
use homeostat::k8s_openapi::api::core::v1::Secret;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// The length of a password: 32 letters and digits are about 190 bits.
const PASSWORD_LENGTH: usize = 32;

/// A Secret that lacks something.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("Secret {secret} has no usable key {key:?}")]
pub struct Unusable {
    secret: String,
    key: &'static str,
}

/// Where a server is, and who one is there.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name or address of the server.
    pub host: String,
    /// The port it listens on.
    pub port: u16,
    /// The role to log in as.
    pub username: String,
    /// Its password.
    pub password: String,
    /// The database to log in to.
    pub database: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, username, database, .. } = self;
        write!(f, "{username}@{host}:{port}/{database}")
    }
}

impl Credentials {
    /// Reads a Secret. The database is `postgres` where it names none.
    ///
    /// # Errors
    /// When another key is missing, empty or not what it should be.
    pub fn from_secret(secret: &Secret) -> Result<Self, Unusable> {
        let unusable = |key| {
            let secret = secret.metadata.name.clone().unwrap_or_default();
            Unusable { secret, key }
        };
        let read = |key| text(secret, key).ok_or_else(|| unusable(key));
        Ok(Self {
            host: read("host")?,
            port: read("port")?.parse().map_err(|_| unusable("port"))?,
            username: read("username")?,
            password: read("password")?,
            database: text(secret, "database").unwrap_or_else(|| "postgres".to_owned()),
        })
    }

    /// The keys of the Secret.
    #[must_use]
    pub fn data(&self) -> BTreeMap<String, ByteString> {
        [
            ("username", self.username.clone()),
            ("password", self.password.clone()),
            ("host", self.host.clone()),
            ("port", self.port.to_string()),
            ("database", self.database.clone()),
            ("uri", self.uri()),
        ]
        .map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())))
        .into()
    }

    /// `host:port`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn uri(&self) -> String {
        let Self { host, port, username, password, database } = self;
        // Somebody may have put a password of their own there.
        let quoted = utf8_percent_encode(password, NON_ALPHANUMERIC);
        format!("postgresql://{username}:{quoted}@{host}:{port}/{database}")
    }
}

/// The password in that Secret, if it holds one.
#[must_use]
pub fn password_in(secret: &Secret) -> Option<String> {
    text(secret, "password")
}

/// A new password.
#[must_use]
pub fn new_password(env: &Env) -> String {
    env.random_alphanumeric(PASSWORD_LENGTH)
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get(key)?.0;
    String::from_utf8(bytes.clone()).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(password: &str) -> Credentials {
        Credentials {
            host: "127.96.0.7".to_owned(),
            port: 5432,
            username: "postgres".to_owned(),
            password: password.to_owned(),
            database: "app".to_owned(),
        }
    }

    fn secret(data: BTreeMap<String, ByteString>) -> Secret {
        Secret { data: Some(data), ..Secret::default() }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let written = credentials("secret");
        let data = written.data();
        assert_eq!(data["uri"].0, b"postgresql://postgres:secret@127.96.0.7:5432/app");
        assert_eq!(Credentials::from_secret(&secret(data)), Ok(written));
    }

    #[test]
    fn a_password_with_signs_does_not_break_the_uri() {
        let data = credentials("p@ss/word").data();
        assert_eq!(data["uri"].0, b"postgresql://postgres:p%40ss%2Fword@127.96.0.7:5432/app");
        assert_eq!(password_in(&secret(data)).as_deref(), Some("p@ss/word"));
    }

    #[test]
    fn an_unusable_secret_is_refused_by_the_key() {
        let mut data = credentials("secret").data();
        data.insert("port".to_owned(), ByteString(b"five".to_vec()));
        let refused = Credentials::from_secret(&secret(data)).unwrap_err();
        assert!(refused.to_string().ends_with("has no usable key \"port\""), "{refused}");
    }

    #[test]
    fn a_password_is_never_shown() {
        assert_eq!(format!("{:?}", credentials("secret")), "postgres@127.96.0.7:5432/app");
    }
}
