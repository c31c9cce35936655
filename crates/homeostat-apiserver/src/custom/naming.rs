//! A definition's own fields: its name, group, scope, names, versions, columns and subresources.

use serde_json::Value;

use super::{flag, list, text};
use crate::field::{FieldError, Reason};
use crate::validate::{dns_label_1035, dns_subdomain};

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];

/// What is wrong with them. The name of the definition itself is judged only while it is new.
pub(super) fn check(definition: &Value, is_new: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    identity(definition, is_new, &mut errors);
    names(definition, &mut errors);
    versions(definition, &mut errors);
    errors
}

fn invalid(
    path: impl Into<String>,
    value: impl Into<Value>,
    detail: impl Into<String>,
) -> FieldError {
    FieldError::new(path, Reason::Invalid, value.into(), detail)
}

fn identity(definition: &Value, is_new: bool, errors: &mut Vec<FieldError>) {
    let group = text(definition, "/spec/group");
    let plural = text(definition, "/spec/names/plural");
    let name = text(definition, "/metadata/name");
    let wanted = format!("{plural}.{group}");
    if is_new && name != wanted {
        errors.push(invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if let Some(problem) = dns_subdomain(group).first() {
        errors.push(invalid("spec.group", group, problem.as_str()));
    } else if !group.contains('.') {
        errors.push(invalid("spec.group", group, "should be a domain with at least one dot"));
    }
    let approved = definition
        .pointer("/metadata/annotations/api-approved.kubernetes.io")
        .and_then(Value::as_str)
        .is_some_and(|text| !text.is_empty());
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owner| group == *owner || group.ends_with(&format!(".{owner}")));
    if protected && !approved {
        errors.push(FieldError::required(
            "metadata.annotations[api-approved.kubernetes.io]",
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
             https://github.com/kubernetes/enhancements/pull/1111",
        ));
    }
    match text(definition, "/spec/scope") {
        "Namespaced" | "Cluster" => {}
        "" => errors.push(FieldError::required("spec.scope", "")),
        other => errors.push(FieldError::new(
            "spec.scope",
            Reason::NotSupported,
            Value::from(other),
            "supported values: \"Cluster\", \"Namespaced\"",
        )),
    }
    if flag(&definition["spec"], "preserveUnknownFields") {
        errors.push(invalid(
            "spec.preserveUnknownFields",
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
             spec.versions[*].schema instead",
        ));
    }
}

fn names(definition: &Value, errors: &mut Vec<FieldError>) {
    for field in ["plural", "singular", "kind", "listKind"] {
        let path = format!("spec.names.{field}");
        let name = text(definition, &format!("/spec/names/{field}"));
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let is_kind = matches!(field, "kind" | "listKind");
        let form = if is_kind { name.to_lowercase() } else { name.to_owned() };
        for problem in dns_label_1035(&form) {
            let hint =
                if is_kind { "may have mixed case, but should otherwise match: " } else { "" };
            errors.push(invalid(path.as_str(), name, format!("{hint}{problem}")));
        }
    }
    for field in ["shortNames", "categories"] {
        for (index, name) in list(definition, &format!("/spec/names/{field}")).enumerate() {
            let name = name.as_str().unwrap_or_default();
            for problem in dns_label_1035(name) {
                errors.push(invalid(format!("spec.names.{field}[{index}]"), name, problem));
            }
        }
    }
    let list_kind = text(definition, "/spec/names/listKind");
    if !list_kind.is_empty() && list_kind == text(definition, "/spec/names/kind") {
        errors.push(invalid(
            "spec.names.listKind",
            list_kind,
            "kind and listKind may not be the same",
        ));
    }
}

fn versions(definition: &Value, errors: &mut Vec<FieldError>) {
    let all: Vec<&Value> = list(definition, "/spec/versions").collect();
    let shown =
        || Value::from(all.iter().map(|version| (*version).clone()).collect::<Vec<Value>>());
    let mut names: Vec<&str> = all.iter().map(|version| text(version, "/name")).collect();
    for (index, version) in all.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = text(version, "/name");
        for problem in dns_label_1035(name) {
            errors.push(invalid(format!("{path}.name"), name, problem));
        }
        // what all versions share is reported where it was before there were versions
        let path = if all.len() == 1 { "spec".to_owned() } else { path };
        for (at, column) in list(version, "/additionalPrinterColumns").enumerate() {
            columns(column, &format!("{path}.additionalPrinterColumns[{at}]"), errors);
        }
        if let Some(scale) = version.pointer("/subresources/scale") {
            scale_paths(scale, &format!("{path}.subresources.scale"), errors);
        }
    }
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        errors.push(invalid("spec.versions", shown(), "must contain unique version names"));
    }
    if all.iter().filter(|version| flag(version, "storage")).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(invalid("spec.versions", shown(), detail));
    }
    for (index, stored) in list(definition, "/status/storedVersions").enumerate() {
        let name = stored.as_str().unwrap_or_default();
        if !names.contains(&name) {
            errors.push(invalid(
                format!("status.storedVersions[{index}]"),
                name,
                format!(
                    "missing from spec.versions; {name} was previously a storage version, and must \
                     remain in spec.versions until a storage migration ensures no data remains \
                     persisted in {name} and removes {name} from status.storedVersions"
                ),
            ));
        }
    }
}

fn columns(column: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for field in ["name", "jsonPath"] {
        if text(column, &format!("/{field}")).is_empty() {
            errors.push(FieldError::required(format!("{path}.{field}"), ""));
        }
    }
    let ty = text(column, "/type");
    if !COLUMN_TYPES.contains(&ty) {
        let detail = format!("must be one of {}", COLUMN_TYPES.join(","));
        errors.push(invalid(format!("{path}.type"), ty, detail));
    }
    let json_path = text(column, "/jsonPath");
    if !json_path.is_empty() && crate::print::JsonPath::parse(json_path).is_none() {
        errors.push(invalid(format!("{path}.jsonPath"), json_path, "is an invalid path"));
    }
}

fn scale_paths(scale: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (field, below) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let given = text(scale, &format!("/{field}"));
        if given.is_empty() {
            errors.push(FieldError::required(format!("{path}.{field}"), ""));
        } else if !given.starts_with(below) {
            let detail = format!("should be a json path under {}", below.trim_end_matches('.'));
            errors.push(invalid(format!("{path}.{field}"), given, detail));
        }
    }
    let selector = text(scale, "/labelSelectorPath");
    if !selector.is_empty() && !selector.starts_with(".spec.") && !selector.starts_with(".status.")
    {
        let detail = "should be a json path under either .spec or .status";
        errors.push(invalid(format!("{path}.labelSelectorPath"), selector, detail));
    }
}
