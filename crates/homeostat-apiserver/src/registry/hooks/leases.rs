//! Leases: what is not for everybody yet.

use serde_json::Value;

use super::{Hooks, NONE};

/// Fields that kube-apiserver takes only where somebody turned them on.
const OFF: [&str; 2] = ["preferredHolder", "strategy"];

pub(super) const HOOKS: Hooks = Hooks {
    create: |_, _, lease| {
        forget(lease);
        Ok(())
    },
    update: |_, _, _, lease| {
        forget(lease);
        Ok(())
    },
    ..NONE
};

fn forget(lease: &mut Value) {
    if let Some(spec) = lease.get_mut("spec").and_then(Value::as_object_mut) {
        OFF.iter().for_each(|field| drop(spec.shift_remove(*field)));
    }
}
