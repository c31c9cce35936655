//! `metadata` of any kind: names by the kind's rule, labels, annotations, owners, finalizers, and
//! what an update may not change.

use serde_json::Value;

use super::{invalid, name};
use crate::field::{FieldError, Reason};
use crate::kinds::Kind;

/// The most bytes of all annotations together.
const ANNOTATIONS_SIZE: usize = 256 * 1024;

/// Finalizers of built-in kinds that need no domain.
pub(crate) const STANDARD_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

pub(super) const UNKNOWN_FINALIZER: &str =
    "name is neither a standard finalizer name nor is it fully qualified";

/// What an update leaves as it is.
const FIXED: &[&str] = &[
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Kinds whose update leaves `generateName` to the form that all names have: it is never used again.
const BASE_LEFT: &[(&str, &str)] = &[
    ("", "Event"),
    ("", "PodTemplate"),
    ("", "ReplicationController"),
    ("", "ResourceQuota"),
    ("", "Service"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("batch", "CronJob"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("coordination.k8s.io", "Lease"),
    ("events.k8s.io", "Event"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("policy", "PodDisruptionBudget"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
];

/// Kinds whose names have another form than a DNS subdomain.
fn name_rule(kind: &Kind) -> fn(&str) -> Vec<String> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace" | "Service") | ("apps", "StatefulSet") => name::dns_label,
        ("rbac.authorization.k8s.io", _)
        | ("apiregistration.k8s.io", "APIService")
        | ("", "Event") => name::path_segment,
        ("networking.k8s.io", "IPAddress") => name::ip_address,
        ("policy", "PodDisruptionBudget") => |_| Vec::new(),
        ("", "ReplicationController") | ("resource.k8s.io", "DeviceClass") => name::long_name,
        _ => name::dns_subdomain,
    }
}

/// Checks `metadata`; with an old object also what may not change. The resource version is the
/// engine's business.
#[must_use]
pub fn object_meta(kind: &Kind, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let empty = Value::Null;
    let meta = value.get("metadata").unwrap_or(&empty);
    let mut errors = match old {
        None => identity(kind, meta),
        Some(old) => {
            let mut errors = base_again(kind, meta);
            errors.extend(update(meta, old.get("metadata").unwrap_or(&empty)));
            errors
        }
    };
    in_common(meta, "metadata", &mut errors);
    if kind.custom.is_none() {
        for (index, finalizer) in list(meta, "finalizers").filter_map(Value::as_str).enumerate() {
            if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
                errors.push(invalid(
                    format!("metadata.finalizers[{index}]"),
                    finalizer,
                    UNKNOWN_FINALIZER,
                ));
            }
        }
    }
    errors
}

/// The metadata of an object of any kind, which has a namespace if it says so.
pub(super) fn of_any_object(meta: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = base(name::path_prefix, meta, path);
    let name = text(meta, "name");
    if !name.is_empty() {
        let problems = name::path_segment(name).into_iter();
        errors.extend(problems.map(|why| invalid(format!("{path}.name"), name, why)));
    }
    let namespace = text(meta, "namespace");
    if !namespace.is_empty() {
        let problems = name::dns_label(namespace).into_iter();
        errors.extend(problems.map(|why| invalid(format!("{path}.namespace"), namespace, why)));
    }
    in_common(meta, path, &mut errors);
    managers(meta, path, &mut errors);
    errors
}

/// What holds for new objects and for others.
fn in_common(meta: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(generation) = meta.get("generation").filter(|it| it.as_i64() < Some(0)) {
        let detail = "must be greater than or equal to 0";
        errors.push(invalid(format!("{path}.generation"), generation.clone(), detail));
    }
    errors.extend(labels(meta.get("labels"), &format!("{path}.labels")));
    errors.extend(annotations(meta.get("annotations"), &format!("{path}.annotations")));
    owners(meta, &format!("{path}.ownerReferences"), errors);
    finalizers(meta, &format!("{path}.finalizers"), errors);
}

fn text<'a>(meta: &'a Value, field: &str) -> &'a str {
    meta.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn identity(kind: &Kind, meta: &Value) -> Vec<FieldError> {
    let rule = name_rule(kind);
    let mut errors = base(rule, meta, "metadata");
    let given = text(meta, "name");
    if given.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        errors.extend(rule(given).into_iter().map(|e| invalid("metadata.name", given, e)));
    }
    let namespace = text(meta, "namespace");
    match (kind.namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required("metadata.namespace", "")),
        (true, false) => errors.extend(
            name::dns_label(namespace)
                .into_iter()
                .map(|e| invalid("metadata.namespace", namespace, e)),
        ),
        (false, true) => {}
        (false, false) => {
            errors.push(FieldError::forbidden("metadata.namespace", "not allowed on this type"));
        }
    }
    errors
}

/// What names are made from.
fn base(rule: fn(&str) -> Vec<String>, meta: &Value, path: &str) -> Vec<FieldError> {
    let given = text(meta, "generateName");
    if given.is_empty() {
        return Vec::new();
    }
    // a base may end in a dash, because more follows
    let base = match given.strip_suffix('-') {
        Some(base) => format!("{base}a"),
        None => given.to_owned(),
    };
    let problems = rule(&base).into_iter();
    problems.map(|why| invalid(format!("{path}.generateName"), given, why)).collect()
}

/// The same in an update: first as a part of any path, then as the kind wants it.
fn base_again(kind: &Kind, meta: &Value) -> Vec<FieldError> {
    let mut errors = base(name::path_prefix, meta, "metadata");
    let is_left = BASE_LEFT.contains(&(kind.group.as_str(), kind.kind.as_str()));
    if kind.custom.is_none() && !is_left {
        for error in base(name_rule(kind), meta, "metadata") {
            if !errors.contains(&error) {
                errors.push(error);
            }
        }
    }
    errors
}

fn update(meta: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.get("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        let before: Vec<&Value> = list(old, "finalizers").collect();
        let added: Vec<String> = list(meta, "finalizers")
            .filter(|finalizer| !before.contains(finalizer))
            .map(Value::to_string)
            .collect();
        if !added.is_empty() {
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                format!(
                    "no new finalizers can be added if the object is being deleted, found new \
                     finalizers []string{{{}}}",
                    added.join(", ")
                ),
            ));
        }
    }
    for field in FIXED {
        if meta.get(field) != old.get(field) {
            let value = meta.get(field).cloned().unwrap_or(Value::Null);
            errors.push(invalid(format!("metadata.{field}"), value, "field is immutable"));
        }
    }
    errors
}

fn list<'a>(meta: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    meta.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn entries(map: Option<&Value>) -> impl Iterator<Item = (&String, &str)> {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries.map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

/// Labels, wherever they are.
pub(crate) fn labels(map: Option<&Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in entries(map) {
        errors.extend(name::qualified(key).into_iter().map(|e| invalid(path, key.as_str(), e)));
        errors.extend(name::label_value(value).into_iter().map(|e| invalid(path, value, e)));
    }
    errors
}

/// Annotations, wherever they are.
pub(crate) fn annotations(map: Option<&Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in entries(map) {
        size += key.len() + value.len();
        let found = name::qualified(&key.to_lowercase());
        errors.extend(found.into_iter().map(|e| invalid(path, key.as_str(), e)));
    }
    if size > ANNOTATIONS_SIZE {
        errors.push(FieldError {
            path: path.to_owned(),
            reason: Reason::TooLong,
            value: None,
            detail: format!("may not be more than {ANNOTATIONS_SIZE} bytes"),
        });
    }
    errors
}

fn owners(meta: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut controller: Option<String> = None;
    for owner in list(meta, "ownerReferences") {
        let version = text(owner, "apiVersion").rsplit('/').next().unwrap_or_default();
        if version.is_empty() {
            let given = text(owner, "apiVersion");
            errors.push(invalid(format!("{path}.apiVersion"), given, "version must not be empty"));
        }
        for field in ["kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                errors.push(invalid(format!("{path}.{field}"), "", "must not be empty"));
            }
        }
        if text(owner, "apiVersion") == "v1" && text(owner, "kind") == "Event" {
            errors.push(invalid(
                path,
                owner.clone(),
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let this = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => errors.push(invalid(
                    path,
                    meta.get("ownerReferences").cloned().unwrap_or(Value::Null),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in \
                         references for {first} and {this}"
                    ),
                )),
            }
        }
    }
}

fn finalizers(meta: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let names: Vec<&str> = list(meta, "finalizers").filter_map(Value::as_str).collect();
    for finalizer in &names {
        errors.extend(name::qualified(finalizer).into_iter().map(|e| invalid(path, *finalizer, e)));
    }
    if names.contains(&"orphan") && names.contains(&"foregroundDeletion") {
        let both = Value::from(names);
        errors.push(invalid(
            path,
            both,
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
}

/// Who owns fields, as it may be written down.
fn managers(meta: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, manager) in list(meta, "managedFields").enumerate() {
        let path = format!("{path}.managedFields[{index}]");
        let (operation, form) = (text(manager, "operation"), text(manager, "fieldsType"));
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(invalid(format!("{path}.operation"), operation, detail));
        }
        if !matches!(form, "" | "FieldsV1") {
            errors.push(invalid(format!("{path}.fieldsType"), form, "must be `FieldsV1`"));
        }
    }
}
