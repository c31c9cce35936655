//! How far a rollout may stray from the wanted number of Pods. Pure.

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::portion::{self, Round};

/// Whether the old Pods go before the new ones come.
pub(super) fn is_recreate(spec: &DeploymentSpec) -> bool {
    spec.strategy.as_ref().and_then(|s| s.type_.as_deref()) == Some("Recreate")
}

/// What was asked for, of `total`; a quarter when nothing was.
fn resolve(value: Option<&IntOrString>, total: i32, round: Round) -> i32 {
    let quarter = IntOrString::String("25%".into());
    portion::of(total, value.unwrap_or(&quarter), round)
}

/// How many Pods there may be above the wanted number.
pub(super) fn max_surge(spec: &DeploymentSpec) -> i32 {
    if is_recreate(spec) {
        return 0;
    }
    let rolling = spec.strategy.as_ref().and_then(|s| s.rolling_update.as_ref());
    resolve(rolling.and_then(|r| r.max_surge.as_ref()), spec.replicas.unwrap_or(1), Round::Up)
}

/// How many of the wanted Pods may be unavailable; 1 when neither this nor the surge allows a step.
pub(super) fn max_unavailable(spec: &DeploymentSpec) -> i32 {
    let total = spec.replicas.unwrap_or(1);
    if is_recreate(spec) || total == 0 {
        return 0;
    }
    let rolling = spec.strategy.as_ref().and_then(|s| s.rolling_update.as_ref());
    let value = resolve(rolling.and_then(|r| r.max_unavailable.as_ref()), total, Round::Down);
    if value == 0 && max_surge(spec) == 0 { 1 } else { value.min(total) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn percentages_round_in_favour_of_availability() {
        let spec: DeploymentSpec =
            serde_json::from_value(json!({"replicas": 3, "selector": {}, "template": {}})).unwrap();
        assert_eq!((max_surge(&spec), max_unavailable(&spec)), (1, 0));
    }
}
