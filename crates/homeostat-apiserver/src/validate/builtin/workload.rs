//! Workloads: a selector that finds the Pods of a template, and what may change later.

use serde_json::Value;

use super::pod;
use super::report::{Report, at, list, text};
use super::scaling::{count_or_share, is_nothing};
use super::volume_claim;
use crate::go::internal::form;
use crate::validate::name;

pub(super) const SELECTOR: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";

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

pub(super) fn deployment(value: &Value, old: Option<&Value>, report: &mut Report) {
    workload(value, &DEPLOYMENT, &[], report);
    report.immutable(value, old, "/spec/selector");
    report.not_negative(value, "/spec/replicas");
    report.not_negative(value, "/spec/minReadySeconds");
    report.not_negative(value, "/spec/revisionHistoryLimit");
    report.not_negative(value, "/spec/progressDeadlineSeconds");
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
        let shown = form("io.k8s.api.apps.v1.DeploymentStrategy", at(value, "/spec/strategy"));
        report.unsupported("spec.strategy", &shown, &["Recreate", "RollingUpdate"]);
    }
    if strategy == "Recreate" && !rolling.is_null() {
        let detail = "may not be specified when strategy `type` is 'Recreate'";
        report.forbidden("spec.strategy.rollingUpdate", detail);
    }
    if strategy == "RollingUpdate" {
        let (unavailable, surge) = (at(rolling, "/maxUnavailable"), at(rolling, "/maxSurge"));
        let path = "spec.strategy.rollingUpdate.maxUnavailable";
        count_or_share(unavailable, path, Some(100), report);
        count_or_share(surge, "spec.strategy.rollingUpdate.maxSurge", None, report);
        if is_nothing(unavailable) && is_nothing(surge) {
            report.invalid(path, unavailable.clone(), "may not be 0 when `maxSurge` is 0");
        }
    }
}

pub(super) fn replica_set(value: &Value, old: Option<&Value>, report: &mut Report) {
    workload(value, &DEPLOYMENT, &[], report);
    report.immutable(value, old, "/spec/selector");
    report.not_negative(value, "/spec/replicas");
    report.not_negative(value, "/spec/minReadySeconds");
}

pub(super) fn daemon_set(value: &Value, old: Option<&Value>, report: &mut Report) {
    workload(value, &DAEMON_SET, &[], report);
    report.immutable(value, old, "/spec/selector");
    report.not_negative(value, "/spec/minReadySeconds");
    let strategy = text(value, "/spec/updateStrategy/type");
    if !matches!(strategy, "RollingUpdate" | "OnDelete") {
        let given = at(value, "/spec/updateStrategy");
        let shown = form("io.k8s.api.apps.v1.DaemonSetUpdateStrategy", given);
        report.unsupported("spec.updateStrategy", &shown, &["RollingUpdate", "OnDelete"]);
    }
    let rolling = at(value, "/spec/updateStrategy/rollingUpdate");
    if strategy == "RollingUpdate" && !rolling.is_null() {
        let (unavailable, surge) = (at(rolling, "/maxUnavailable"), at(rolling, "/maxSurge"));
        let path = "spec.updateStrategy.rollingUpdate.maxUnavailable";
        let path_of_surge = "spec.updateStrategy.rollingUpdate.maxSurge";
        count_or_share(unavailable, path, Some(100), report);
        count_or_share(surge, path_of_surge, Some(100), report);
        match (is_nothing(unavailable), is_nothing(surge)) {
            (true, true) => report.required(path, "cannot be 0 when maxSurge is 0"),
            (false, false) => {
                let why = "may not be set when maxUnavailable is non-zero";
                report.invalid(path_of_surge, surge.clone(), why);
            }
            _ => {}
        }
    }
    report.not_negative(value, "/spec/revisionHistoryLimit");
}

pub(super) fn stateful_set(value: &Value, old: Option<&Value>, report: &mut Report) {
    let templates = list(value, "/spec/volumeClaimTemplates");
    let mut claims: Vec<&str> =
        templates.iter().map(|claim| text(claim, "/metadata/name")).collect();
    claims.sort_unstable();
    claims.dedup();
    // What cannot change is judged when it is new.
    for (index, claim) in templates.iter().enumerate().filter(|_| old.is_none()) {
        let path = format!("spec.volumeClaimTemplates[{index}].spec");
        volume_claim::spec(at(claim, "/spec"), &path, report);
    }
    for field in ["whenDeleted", "whenScaled"] {
        let policy = at(value, "/spec/persistentVolumeClaimRetentionPolicy").get(field);
        if let Some(policy) = policy {
            let path = format!("spec.persistentVolumeClaimRetentionPolicy.{field}");
            report.known(&path, policy, &["Retain", "Delete"]);
        }
    }
    workload(value, &STATEFUL_SET, &claims, report);
    report.not_negative(value, "/spec/ordinals/start");
    report.not_negative(value, "/spec/replicas");
    report.not_negative(value, "/spec/minReadySeconds");
    let policy = text(value, "/spec/podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        report.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'");
    }
    let service = text(value, "/spec/serviceName");
    if !service.is_empty() && old.is_none() {
        report.dns_label("spec.serviceName", service);
    }
    let strategy = text(value, "/spec/updateStrategy/type");
    let rolling = at(value, "/spec/updateStrategy/rollingUpdate");
    if strategy == "RollingUpdate" {
        report.not_negative(value, "/spec/updateStrategy/rollingUpdate/partition");
    }
    if strategy == "OnDelete" && !rolling.is_null() {
        let shown = form("io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy", rolling);
        let detail = "only allowed for updateStrategy 'RollingUpdate'";
        report.invalid("spec.updateStrategy.rollingUpdate", shown, detail);
    }
    if !matches!(strategy, "RollingUpdate" | "OnDelete") {
        let given = at(value, "/spec/updateStrategy");
        let shown = form("io.k8s.api.apps.v1.StatefulSetUpdateStrategy", given);
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

/// The spec of a StatefulSet without what may change.
fn fixed_part(value: &Value) -> Value {
    let mut spec = at(value, "/spec").clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|name, _| !STATEFUL_SET_MUTABLE.contains(&name.as_str()));
    }
    spec
}

pub(super) fn replication_controller(value: &Value, _: Option<&Value>, report: &mut Report) {
    report.not_negative(value, "/spec/replicas");
    report.not_negative(value, "/spec/minReadySeconds");
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
    pod::template(at(value, "/spec/template"), "spec.template", report);
    only_always(value, "ReplicationController", report);
}

/// What the rules call a workload, and where they differ.
struct Words {
    /// Who does not take an empty selector.
    selector: &'static str,
    /// Who knows no deadline.
    deadline: &'static str,
    /// What is said of the whole selector when a part of it is wrong; nothing if that is enough.
    malformed: Option<&'static str>,
}

/// ReplicaSets are taken for Deployments, and the other way round.
const DEPLOYMENT: Words = Words {
    selector: "deployment",
    deadline: "ReplicaSet",
    malformed: Some("invalid label selector"),
};
const DAEMON_SET: Words = Words { selector: "daemonset", deadline: "DaemonSet", malformed: None };
const STATEFUL_SET: Words =
    Words { selector: "statefulset", deadline: "StatefulSet", malformed: Some("") };

/// What Deployments, ReplicaSets, StatefulSets and DaemonSets share.
fn workload(value: &Value, words: &Words, claims: &[&str], report: &mut Report) {
    let selector = at(value, "/spec/selector");
    let size = |pointer: &str| match at(selector, pointer) {
        Value::Object(map) => map.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    let labels = at(value, "/spec/template/metadata/labels");
    let stranger = "`selector` does not match template `labels`";
    if selector.is_null() {
        if words.selector != "daemonset" {
            report.required("spec.selector", "");
        }
        report.invalid("spec.template.metadata.labels", form("map[]string", labels), stranger);
    } else if size("/matchLabels") + size("/matchExpressions") == 0 {
        let why = format!("empty selector is invalid for {}", words.selector);
        report.invalid("spec.selector", selector.clone(), why);
    } else {
        let before = report.errors.len();
        self::selector(selector, "spec.selector", report);
        if report.errors.len() > before {
            // Nothing can be selected with it.
            if let Some(why) = words.malformed {
                report.invalid("spec.selector", form(SELECTOR, selector), why);
                if words.selector == "statefulset" {
                    only_always(value, words.deadline, report);
                }
                return;
            }
        } else if !selects(selector, labels) {
            report.invalid("spec.template.metadata.labels", form("map[]string", labels), stranger);
        }
    }
    let (template, path) = (at(value, "/spec/template"), "spec.template");
    if words.selector == "statefulset" {
        pod::replica_template(template, path, claims, report);
        pod::labels_and_annotations(template, path, report);
    } else {
        pod::template(template, path, report);
    }
    only_always(value, words.deadline, report);
}

/// Pods that somebody replaces neither end by themselves nor have to.
fn only_always(value: &Value, word: &str, report: &mut Report) {
    let spec = at(value, "/spec/template/spec");
    let policy = text(spec, "/restartPolicy");
    if policy != "Always" {
        report.unsupported("spec.template.spec.restartPolicy", &policy.into(), &["Always"]);
    }
    if spec.get("activeDeadlineSeconds").is_some() {
        let why = format!("activeDeadlineSeconds in {word} is not Supported");
        report.forbidden("spec.template.spec.activeDeadlineSeconds", &why);
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
