//! CSIDrivers: what is not for everybody yet.

use serde_json::Value;

use super::{Hooks, NONE};

/// A field that kube-apiserver takes only where somebody turned it on.
const OFF: &str = "preventPodSchedulingIfMissing";

pub(super) const HOOKS: Hooks = Hooks {
    create: |_, _, driver| {
        forget(driver);
        Ok(())
    },
    update: |_, _, _, driver| {
        forget(driver);
        Ok(())
    },
    ..NONE
};

fn forget(driver: &mut Value) {
    if let Some(spec) = driver.get_mut("spec").and_then(Value::as_object_mut) {
        spec.shift_remove(OFF);
    }
}
