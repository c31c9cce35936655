//! The Secret of a LogicalDatabase. Pure: what is known in, an object out.

use homeostat::k8s_openapi::api::core::v1::Secret;
use homeostat::labels;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use operator_credentials::Credentials;

use crate::{LogicalDatabase, OPERATOR};

pub(crate) fn secret_name(object: &LogicalDatabase) -> String {
    format!("{}-credentials", object.name_any())
}

pub(crate) fn secret(object: &LogicalDatabase, role: &Credentials) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(secret_name(object)),
            labels: Some(labels::recommended("logical-database", &object.name_any(), OPERATOR)),
            ..ObjectMeta::default()
        },
        data: Some(role.data()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}
