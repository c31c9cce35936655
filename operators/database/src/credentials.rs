//! The administrator of a Database: the password is made once and kept for as long as its Secret is
//! there.

use operator_credentials::Credentials;
use sha2::{Digest, Sha256};

use crate::{DatabaseSpec, PORT};

/// The administrator's name; the first start of the server makes the role.
const USERNAME: &str = "postgres";

/// What the Secret says.
pub(crate) fn administrator(spec: &DatabaseSpec, host: &str, password: &str) -> Credentials {
    Credentials {
        host: host.to_owned(),
        port: PORT,
        username: USERNAME.to_owned(),
        password: password.to_owned(),
        database: spec.database_name.clone(),
    }
}

/// Eight digits that change with the password and are of no use for finding it.
pub(crate) fn mark(uid: &str, password: &str) -> String {
    let digest = Sha256::digest(format!("{uid} {password}"));
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_changes_with_the_password_only() {
        assert_eq!(mark("1", "a"), mark("1", "a"));
        assert_ne!(mark("1", "a"), mark("1", "b"));
        assert_eq!(mark("1", "a").len(), 8);
    }
}
