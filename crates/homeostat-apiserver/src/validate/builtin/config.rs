//! ConfigMaps, Secrets, ControllerRevisions and Namespaces.

use serde_json::Value;

use super::report::{Report, at, list, text};
use crate::field::{FieldError, Reason};
use crate::validate::metadata::{STANDARD_FINALIZERS, UNKNOWN_FINALIZER};
use crate::validate::name;

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
    too_long("[]", size, report);
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
