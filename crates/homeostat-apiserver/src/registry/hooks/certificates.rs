//! CertificateSigningRequests: who asks is on record, and what was asked for stays as it is.

use serde_json::{Value, json};

use super::{Hooks, NONE};

/// What only the server says about the one who asks.
const REQUESTER: [&str; 4] = ["username", "uid", "groups", "extra"];

pub(super) const HOOKS: Hooks = Hooks {
    asked: |user, object| {
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
        let user = user.to_value();
        for field in REQUESTER {
            match user.get(field) {
                Some(said) => drop(spec.insert(field.to_owned(), said.clone())),
                None => drop(spec.shift_remove(field)),
            }
        }
        object["status"] = json!({});
    },
    update: |_, _, live, object| {
        object["spec"] = live["spec"].clone();
        Ok(())
    },
    ..NONE
};
