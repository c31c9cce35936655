//! The Secret of a LogicalDatabase. Pure: what is known in, an object out.

use homeostat::k8s_openapi::ByteString;
use homeostat::k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::server::Address;
use crate::{LogicalDatabase, OPERATOR};

/// The length of a password: 32 letters and digits are about 190 bits.
pub(crate) const PASSWORD_LENGTH: usize = 32;

pub(crate) fn secret_name(object: &LogicalDatabase) -> String {
    format!("{}-credentials", object.name_any())
}

pub(crate) fn secret(object: &LogicalDatabase, role: &Address) -> Secret {
    let Address { host, port, username, password, database } = role;
    // Somebody may have put a password of their own there.
    let quoted = utf8_percent_encode(password, NON_ALPHANUMERIC);
    let uri = format!("postgresql://{username}:{quoted}@{host}:{port}/{database}");
    let data = [
        ("username", username.clone()),
        ("password", password.clone()),
        ("host", host.clone()),
        ("port", port.to_string()),
        ("database", database.clone()),
        ("uri", uri),
    ];
    let labels = [
        ("app.kubernetes.io/name", "logical-database".to_owned()),
        ("app.kubernetes.io/instance", object.name_any()),
        ("app.kubernetes.io/managed-by", OPERATOR.to_owned()),
    ];
    Secret {
        metadata: ObjectMeta {
            name: Some(secret_name(object)),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into()),
            ..ObjectMeta::default()
        },
        data: Some(
            data.map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).into(),
        ),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}
