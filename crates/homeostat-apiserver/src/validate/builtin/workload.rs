//! Workloads: a selector that finds the Pods of a template, and what may change later.

use serde_json::{Value, json};

use super::pod;
use super::report::{Report, at, list, text};
use super::status;
use crate::validate::name;

/// Spec fields of a StatefulSet that an update may change.
const STATEFUL_SET_MUTABLE: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// What the status of ReplicaSets and ReplicationControllers counts.
const REPLICA_PARTS: &[&str] = &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];

pub(super) fn deployment(value: &Value, old: Option<&Value>, report: &mut Report) {
    workload(value, "deployment", &[], report);
    report.immutable(value, old, "/spec/selector");
    report.not_negative(value, "/spec/replicas");
    report.not_negative(value, "/spec/minReadySeconds");
    report.not_negative(value, "/spec/revisionHistoryLimit");
    let deadline = at(value, "/spec/progressDeadlineSeconds").as_i64();
    let least = at(value, "/spec/minReadySeconds").as_i64().unwrap_or_default();
    if let Some(deadline) = deadline.filter(|deadline| *deadline <= least) {
        report.invalid(
            "spec.progressDeadlineSeconds",
            deadline,
            "must be greater than minReadySeconds",
        );
    }
    let strategy = text(value, "/spec/strategy/type");
    let rolling = at(value, "/spec/strategy/rollingUpdate");
    if !matches!(strategy, "Recreate" | "RollingUpdate") {
        let shown = match rolling {
            Value::Null => Value::Null,
            rolling => json!({
                "MaxUnavailable": at(rolling, "/maxUnavailable"),
                "MaxSurge": at(rolling, "/maxSurge"),
            }),
        };
        let shown = json!({"Type": strategy, "RollingUpdate": shown});
        report.unsupported("spec.strategy", &shown, &["Recreate", "RollingUpdate"]);
    }
    if strategy == "Recreate" && !rolling.is_null() {
        let detail = "may not be specified when strategy `type` is 'Recreate'";
        report.forbidden("spec.strategy.rollingUpdate", detail);
    }
    if is_zero(at(rolling, "/maxUnavailable")) && is_zero(at(rolling, "/maxSurge")) {
        let path = "spec.strategy.rollingUpdate.maxUnavailable";
        report.invalid(
            path,
            at(rolling, "/maxUnavailable").clone(),
            "may not be 0 when `maxSurge` is 0",
        );
    }
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    status::counts(value, &parts, &["unavailableReplicas", "terminatingReplicas"], report);
}

fn is_zero(value: &Value) -> bool {
    value.as_i64() == Some(0) || matches!(value.as_str(), Some("0" | "0%"))
}

pub(super) fn replica_set(value: &Value, old: Option<&Value>, report: &mut Report) {
    // kube-apiserver says so, too
    workload(value, "deployment", &[], report);
    report.immutable(value, old, "/spec/selector");
    report.not_negative(value, "/spec/replicas");
    report.not_negative(value, "/spec/minReadySeconds");
    status::counts(value, REPLICA_PARTS, &["terminatingReplicas"], report);
}

pub(super) fn daemon_set(value: &Value, old: Option<&Value>, report: &mut Report) {
    workload(value, "daemonset", &[], report);
    report.immutable(value, old, "/spec/selector");
    report.not_negative(value, "/spec/minReadySeconds");
    let strategy = text(value, "/spec/updateStrategy/type");
    if !matches!(strategy, "RollingUpdate" | "OnDelete") {
        // the API shows its own names for the fields here
        let rolling = at(value, "/spec/updateStrategy/rollingUpdate").clone();
        let rolling = match rolling {
            Value::Null => Value::Null,
            rolling => json!({
                "MaxUnavailable": at(&rolling, "/maxUnavailable"),
                "MaxSurge": at(&rolling, "/maxSurge"),
            }),
        };
        let shown = json!({"Type": strategy, "RollingUpdate": rolling});
        report.unsupported("spec.updateStrategy", &shown, &["RollingUpdate", "OnDelete"]);
    }
    let rolling = at(value, "/spec/updateStrategy/rollingUpdate");
    let none = |field: &str| is_zero(rolling.get(field).unwrap_or(&json!(0)));
    if strategy == "RollingUpdate"
        && !rolling.is_null()
        && none("maxUnavailable")
        && none("maxSurge")
    {
        let path = "spec.updateStrategy.rollingUpdate.maxUnavailable";
        report.required(path, "cannot be 0 when maxSurge is 0");
    }
    let counts = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    ];
    status::not_negative(value, &counts, report);
}

pub(super) fn stateful_set(value: &Value, old: Option<&Value>, report: &mut Report) {
    let claims: Vec<&str> = list(value, "/spec/volumeClaimTemplates")
        .iter()
        .map(|claim| text(claim, "/metadata/name"))
        .collect();
    workload(value, "statefulset", &claims, report);
    report.not_negative(value, "/spec/replicas");
    report.not_negative(value, "/spec/minReadySeconds");
    let policy = text(value, "/spec/podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        report.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'");
    }
    report.not_negative(value, "/spec/updateStrategy/rollingUpdate/partition");
    let service = text(value, "/spec/serviceName");
    if !service.is_empty() {
        report.dns_label("spec.serviceName", service);
    }
    let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    status::counts(value, &parts, &[], report);
    let strategy = text(value, "/spec/updateStrategy/type");
    let rolling = at(value, "/spec/updateStrategy/rollingUpdate");
    if strategy == "OnDelete" && !rolling.is_null() {
        let shown = json!({
            "Partition": at(rolling, "/partition").as_i64().unwrap_or_default(),
            "MaxUnavailable": at(rolling, "/maxUnavailable"),
        });
        let detail = "only allowed for updateStrategy 'RollingUpdate'";
        report.invalid("spec.updateStrategy.rollingUpdate", shown, detail);
    }
    if !matches!(strategy, "RollingUpdate" | "OnDelete") {
        let rolling = match rolling {
            Value::Null => Value::Null,
            rolling => json!({
                "Partition": at(rolling, "/partition").as_i64().unwrap_or_default(),
                "MaxUnavailable": at(rolling, "/maxUnavailable"),
            }),
        };
        let shown = json!({"Type": strategy, "RollingUpdate": rolling});
        report.invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'");
    }
    if let Some(old) = old
        && fixed_part(value) != fixed_part(old)
    {
        report.forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
             'minReadySeconds' are forbidden",
        );
    }
}

/// The spec of a StatefulSet without what may change; the status of claim templates is noise.
fn fixed_part(value: &Value) -> Value {
    let mut spec = at(value, "/spec").clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|name, _| !STATEFUL_SET_MUTABLE.contains(&name.as_str()));
    }
    for claim in
        spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten()
    {
        if let Some(claim) = claim.as_object_mut() {
            claim.shift_remove("status");
        }
    }
    spec
}

pub(super) fn replication_controller(value: &Value, _: Option<&Value>, report: &mut Report) {
    report.not_negative(value, "/spec/replicas");
    report.not_negative(value, "/spec/minReadySeconds");
    status::counts(value, REPLICA_PARTS, &[], report);
    if at(value, "/spec/selector").as_object().is_none_or(serde_json::Map::is_empty) {
        report.required("spec.selector", "");
    }
    if at(value, "/spec/template").is_null() {
        report.required("spec.template", "");
        return;
    }
    let labels = at(value, "/spec/template/metadata/labels");
    let selector = at(value, "/spec/selector").as_object();
    if selector.into_iter().flatten().any(|(key, wanted)| labels.get(key) != Some(wanted)) {
        let detail = "`selector` does not match template `labels`";
        report.invalid("spec.template.metadata.labels", labels.clone(), detail);
    }
    pod::template(at(value, "/spec/template"), "spec.template", &[], report);
    always_restarts(value, report);
}

/// What Deployments, ReplicaSets, StatefulSets and DaemonSets share.
fn workload(value: &Value, word: &str, claims: &[&str], report: &mut Report) {
    let selector = at(value, "/spec/selector");
    let size = |pointer: &str| match at(selector, pointer) {
        Value::Object(map) => map.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    let labels = at(value, "/spec/template/metadata/labels");
    let stranger = "`selector` does not match template `labels`";
    if selector.is_null() {
        if word != "daemonset" {
            report.required("spec.selector", "");
        }
        report.invalid("spec.template.metadata.labels", labels.clone(), stranger);
    } else if size("/matchLabels") + size("/matchExpressions") == 0 {
        report.invalid(
            "spec.selector",
            selector.clone(),
            format!("empty selector is invalid for {word}"),
        );
    } else {
        self::selector(selector, "spec.selector", report);
        if !selects(selector, labels) {
            report.invalid("spec.template.metadata.labels", labels.clone(), stranger);
        }
    }
    pod::template(at(value, "/spec/template"), "spec.template", claims, report);
    always_restarts(value, report);
}

fn always_restarts(value: &Value, report: &mut Report) {
    let policy = text(value, "/spec/template/spec/restartPolicy");
    if matches!(policy, "OnFailure" | "Never") {
        report.one_of("spec.template.spec.restartPolicy", policy, &["Always"]);
    }
}

/// A label selector is well-formed.
pub(super) fn selector(selector: &Value, path: &str, report: &mut Report) {
    report.labels(at(selector, "/matchLabels"), &format!("{path}.matchLabels"));
    for (index, rule) in list(selector, "/matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let has_values = !list(rule, "/values").is_empty();
        match text(rule, "/operator") {
            "In" | "NotIn" if !has_values => report.required(
                format!("{path}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            ),
            "Exists" | "DoesNotExist" if has_values => report.forbidden(
                format!("{path}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                report.invalid(format!("{path}.operator"), other, "not a valid selector operator");
            }
        }
        let key = text(rule, "/key");
        for problem in name::qualified(key) {
            report.invalid(format!("{path}.key"), key, problem);
        }
        for (index, value) in list(rule, "/values").iter().filter_map(Value::as_str).enumerate() {
            for problem in name::label_value(value) {
                report.invalid(format!("{path}.values[{index}]"), value, problem);
            }
        }
    }
}

pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    let equal = at(selector, "/matchLabels").as_object().into_iter().flatten();
    let rule_holds = |rule: &Value| {
        let found = labels.get(text(rule, "/key"));
        let listed = found.is_some_and(|value| list(rule, "/values").contains(value));
        match text(rule, "/operator") {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            _ => true,
        }
    };
    equal.into_iter().all(|(key, wanted)| labels.get(key) == Some(wanted))
        && list(selector, "/matchExpressions").iter().all(rule_holds)
}
