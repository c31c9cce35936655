//! How far a rollout may stray from the wanted number of Pods. Pure.

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Whether the old Pods go before the new ones come.
pub(super) fn is_recreate(spec: &DeploymentSpec) -> bool {
    spec.strategy.as_ref().and_then(|s| s.type_.as_deref()) == Some("Recreate")
}

/// Resolves a number or percentage of `total`, a quarter when nothing is said; a percentage rounds up or down.
pub(crate) fn resolve(value: Option<&IntOrString>, total: i32, round_up: bool) -> i32 {
    match value {
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let product = percent * i64::from(total);
            let rounded = if round_up { (product + 99) / 100 } else { product / 100 };
            i32::try_from(rounded).unwrap_or(i32::MAX)
        }
        None => resolve(Some(&IntOrString::String("25%".into())), total, round_up),
    }
}

/// How many Pods there may be above the wanted number.
pub(super) fn max_surge(spec: &DeploymentSpec) -> i32 {
    if is_recreate(spec) {
        return 0;
    }
    let rolling = spec.strategy.as_ref().and_then(|s| s.rolling_update.as_ref());
    resolve(rolling.and_then(|r| r.max_surge.as_ref()), spec.replicas.unwrap_or(1), true)
}

/// How many of the wanted Pods may be unavailable; 1 when neither this nor the surge allows a step.
pub(super) fn max_unavailable(spec: &DeploymentSpec) -> i32 {
    let total = spec.replicas.unwrap_or(1);
    if is_recreate(spec) || total == 0 {
        return 0;
    }
    let rolling = spec.strategy.as_ref().and_then(|s| s.rolling_update.as_ref());
    let value = resolve(rolling.and_then(|r| r.max_unavailable.as_ref()), total, false);
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
