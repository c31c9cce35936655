//! ConfigMaps, Secrets, ControllerRevisions and Nodes.

use serde_json::Value;

use super::report::{Report, at, list, text};
use crate::field::{FieldError, Reason};
use crate::validate::metadata::{STANDARD_FINALIZERS, UNKNOWN_FINALIZER};
use crate::validate::{ip, name};

/// The most bytes of data.
const MOST: usize = 1024 * 1024;

/// Keys that a Secret of a type must have.
const KEYS: &[(&str, &[&str])] = &[
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
];

pub(super) fn config_map(value: &Value, old: Option<&Value>, report: &mut Report) {
    let size = data(value, &["data", "binaryData"], report);
    too_long("", size, report);
    for key in at(value, "/binaryData").as_object().into_iter().flatten().map(|(key, _)| key) {
        if value.pointer("/data").is_some_and(|data| data.get(key).is_some()) {
            report.invalid(
                format!("data[{key}]"),
                key.as_str(),
                "duplicate of key present in binaryData",
            );
        }
    }
    keep_immutable(value, old, &["data", "binaryData"], report);
}

pub(super) fn secret(value: &Value, old: Option<&Value>, report: &mut Report) {
    let size = data(value, &["data"], report);
    too_long("data", size, report);
    let ty = text(value, "/type");
    for (_, keys) in KEYS.iter().filter(|(known, _)| *known == ty) {
        for key in *keys {
            if value.get("data").and_then(|data| data.get(*key)).is_none() {
                report.required(format!("data[{key}]"), "");
            }
        }
    }
    if ty == "kubernetes.io/basic-auth" {
        let data = at(value, "/data");
        if data.get("username").is_none() && data.get("password").is_none() {
            report.required("data[username]", "");
            report.required("data[password]", "");
        }
    }
    if ty == "kubernetes.io/service-account-token"
        && value
            .pointer("/metadata/annotations")
            .is_none_or(|all| all.get("kubernetes.io/service-account.name").is_none())
    {
        report.required("metadata.annotations[kubernetes.io/service-account.name]", "");
    }
    report.immutable(value, old, "/type");
    keep_immutable(value, old, &["data"], report);
}

/// Checks keys and gives the size of all values.
fn data(value: &Value, fields: &[&str], report: &mut Report) -> usize {
    let mut size = 0;
    for field in fields {
        for (key, value) in value.get(field).and_then(Value::as_object).into_iter().flatten() {
            for problem in name::config_key(key) {
                report.invalid(format!("{field}[{key}]"), key.as_str(), problem);
            }
            size += value.as_str().map_or(0, str::len);
        }
    }
    size
}

fn too_long(path: &str, size: usize, report: &mut Report) {
    if size > MOST {
        report.errors.push(FieldError {
            path: path.to_owned(),
            reason: Reason::TooLong,
            value: None,
            detail: format!("may not be more than {MOST} bytes"),
        });
    }
}

fn keep_immutable(value: &Value, old: Option<&Value>, fields: &[&str], report: &mut Report) {
    let Some(old) = old.filter(|old| old.get("immutable") == Some(&Value::Bool(true))) else {
        return;
    };
    let detail = "field is immutable when `immutable` is set";
    if value.get("immutable") != Some(&Value::Bool(true)) {
        report.forbidden("immutable", detail);
    }
    for field in fields {
        if value.get(field) != old.get(field) {
            report.forbidden(*field, detail);
        }
    }
}

pub(super) fn controller_revision(value: &Value, old: Option<&Value>, report: &mut Report) {
    report.not_negative(value, "/revision");
    if old.is_none() {
        match value.get("data") {
            None | Some(Value::Null) => report.required("data", "data is mandatory"),
            Some(Value::Object(_)) => {}
            Some(_) => report.required("data", "data must be a valid JSON object"),
        }
    }
    report.immutable(value, old, "/data");
}

pub(super) fn namespace(value: &Value, _: Option<&Value>, report: &mut Report) {
    for finalizer in list(value, "/spec/finalizers").iter().filter_map(Value::as_str) {
        let path = "spec.finalizers";
        for problem in name::qualified(finalizer) {
            report.invalid(path, finalizer, problem);
        }
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
            report.invalid(path, finalizer, UNKNOWN_FINALIZER);
        }
    }
}

pub(super) fn node(value: &Value, _: Option<&Value>, report: &mut Report) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, taint) in list(value, "/spec/taints").iter().enumerate() {
        let path = format!("metadata.taints[{index}]");
        let (key, effect) = (text(taint, "/key"), text(taint, "/effect"));
        for problem in name::qualified(key) {
            report.invalid(format!("{path}.key"), key, problem);
        }
        let given = text(taint, "/value");
        let problems = name::label_value(given);
        if !problems.is_empty() {
            report.invalid(format!("{path}.value"), given, problems.join(";"));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        report.one_of(&format!("{path}.effect"), effect, &effects);
        if seen.contains(&(key, effect)) {
            let detail = "taints must be unique by key and effect pair";
            report.errors.push(FieldError::new(path, Reason::Duplicate, taint.clone(), detail));
        }
        seen.push((key, effect));
    }
    let ranges = list(value, "/spec/podCIDRs");
    for (index, range) in ranges.iter().enumerate() {
        let range = range.as_str().unwrap_or_default();
        if let Some(problem) = ip::range_problem(range) {
            report.invalid(format!("spec.podCIDRs[{index}]"), range, problem);
        }
    }
    let family = |range: &Value| ip::Range::generous(range.as_str()?).map(ip::Range::is_six);
    let apart = ranges.len() == 2 && family(&ranges[0]) != family(&ranges[1]);
    if ranges.len() > 1 && !apart && ranges.iter().all(|range| family(range).is_some()) {
        let detail = "may specify no more than one CIDR for each IP family";
        report.invalid("spec.podCIDRs", ranges.to_vec(), detail);
    }
}
