//! ServiceAccounts: of the Secrets they name, only the name is kept.

use serde_json::Value;

use super::{Hooks, NONE};

pub(super) const HOOKS: Hooks = Hooks {
    create: |_, _, account| {
        keep_names(account);
        Ok(())
    },
    update: |_, _, _, account| {
        keep_names(account);
        Ok(())
    },
    ..NONE
};

fn keep_names(account: &mut Value) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten().filter_map(Value::as_object_mut) {
        secret.retain(|field, _| field == "name");
    }
}
