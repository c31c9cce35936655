//! Kinds that few people write by hand: runtimes of containers, and servers of more groups.

use serde_json::Value;

use super::place::Place;
use super::pod::tolerations;
use super::report::{Report, at, list, text};
use super::resources;
use crate::validate::name;

pub(super) fn runtime_class(value: &Value, old: Option<&Value>, report: &mut Report) {
    report.immutable(value, old, "/handler");
    report.dns_label("handler", text(value, "/handler"));
    resources::overhead(at(value, "/overhead/podFixed"), &Place::Root("overhead"), report);
    let scheduling = at(value, "/scheduling");
    report.labels(at(scheduling, "/nodeSelector"), "scheduling.nodeSelector");
    tolerations(scheduling, "scheduling", report);
    let all = list(scheduling, "/tolerations");
    let key =
        |of: &Value| ["key", "operator", "value", "effect"].map(|field| of.get(field).cloned());
    for (index, toleration) in all.iter().enumerate() {
        if all[..index].iter().any(|other| key(other) == key(toleration)) {
            report.duplicate(format!("scheduling.tolerations[{index}]"), toleration.clone());
        }
    }
}

/// The highest priorities of a group and of a version.
const MOST_OF_GROUPS: i64 = 20_000;
const MOST_OF_VERSIONS: i64 = 1000;

pub(super) fn api_service(value: &Value, _: Option<&Value>, report: &mut Report) {
    let (group, version) = (text(value, "/spec/group"), text(value, "/spec/version"));
    let wanted = format!("{version}.{group}");
    for field in ["generateName", "name"] {
        let given = text(value, &format!("/metadata/{field}"));
        let is_given = field == "name" || !given.is_empty();
        if is_given && given != wanted && name::path_segment(given).is_empty() {
            let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
            report.invalid(format!("metadata.{field}"), given, detail);
        }
    }
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        report.required("spec.group", detail);
    }
    for problem in name::dns_subdomain(group).iter().filter(|_| !group.is_empty()) {
        report.invalid("spec.group", group, problem.as_str());
    }
    for problem in name::dns_label_1035(version) {
        report.invalid("spec.version", version, problem);
    }
    for (field, most) in
        [("groupPriorityMinimum", MOST_OF_GROUPS), ("versionPriority", MOST_OF_VERSIONS)]
    {
        let number = at(value, &format!("/spec/{field}")).as_i64().unwrap_or_default();
        if !(1..=most).contains(&number) {
            let detail = format!("must be positive and less than {most}");
            report.invalid(format!("spec.{field}"), number, detail);
        }
    }
    let bundle = text(value, "/spec/caBundle");
    let insecure = at(value, "/spec/insecureSkipTLSVerify") == &Value::Bool(true);
    let Some(service) = value.pointer("/spec/service").filter(|service| service.is_object()) else {
        if !bundle.is_empty() {
            // Four letters stand for three bytes, the last ones for fewer.
            let bytes = bundle.len() / 4 * 3 - bundle.matches('=').count();
            let detail = "local APIServices may not have a caBundle";
            report.invalid("spec.caBundle", format!("{bytes} bytes"), detail);
        }
        if insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            report.invalid("spec.insecureSkipTLSVerify", true, detail);
        }
        return;
    };
    for field in ["namespace", "name"] {
        if text(service, &format!("/{field}")).is_empty() {
            report.required(format!("spec.service.{field}"), "");
        }
    }
    let port = at(service, "/port").as_i64().unwrap_or_default();
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        report.invalid("spec.service.port", port, detail);
    }
    if insecure && !bundle.is_empty() {
        let detail = "may not be true if caBundle is present";
        report.invalid("spec.insecureSkipTLSVerify", true, detail);
    }
}
