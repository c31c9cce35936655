//! The conditions of a Deployment's status: found, set, refreshed. Pure, over the list itself.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DeploymentCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The condition of that type.
pub(super) fn find<'a>(
    conditions: &'a [DeploymentCondition],
    kind: &str,
) -> Option<&'a DeploymentCondition> {
    conditions.iter().find(|c| c.type_ == kind)
}

/// Sets a condition; one with the same status and reason stays untouched.
pub(super) fn set(
    conditions: &mut Vec<DeploymentCondition>,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let before = find(conditions, kind);
    if before.is_some_and(|c| c.status == status && c.reason.as_deref() == Some(reason)) {
        return;
    }
    put(conditions, kind, status, reason, message, now);
}

/// Sets `Progressing` to True with a fresh update time, whatever it was: this is what moves the
/// deadline.
pub(super) fn refresh(
    conditions: &mut Vec<DeploymentCondition>,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    put(conditions, "Progressing", "True", reason, message, now);
}

fn put(
    conditions: &mut Vec<DeploymentCondition>,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let unchanged_since = find(conditions, kind)
        .filter(|c| c.status == status)
        .and_then(|c| c.last_transition_time.clone());
    let condition = DeploymentCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(Time(now)),
        last_transition_time: unchanged_since.or(Some(Time(now))),
    };
    match conditions.iter_mut().find(|c| c.type_ == kind) {
        Some(place) => *place = condition,
        None => conditions.push(condition),
    }
}
