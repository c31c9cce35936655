//! A definition's own fields: its name, group, scope and names, and who may use them.

use serde_json::Value;

use super::{flag, list, text};
use crate::field::{FieldError, Reason};
use crate::validate::{dns_label_1035, dns_subdomain};

fn invalid(
    path: impl Into<String>,
    value: impl Into<Value>,
    detail: impl Into<String>,
) -> FieldError {
    FieldError::new(path, Reason::Invalid, value.into(), detail)
}

/// The name of a definition, which is judged only while it is new.
pub(super) fn own_name(definition: &Value, errors: &mut Vec<FieldError>) {
    let group = text(definition, "/spec/group");
    let plural = text(definition, "/spec/names/plural");
    let name = text(definition, "/metadata/name");
    if name != format!("{plural}.{group}") {
        errors.push(invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
}

/// Group and scope.
pub(super) fn place(definition: &Value, errors: &mut Vec<FieldError>) {
    let group = text(definition, "/spec/group");
    let problems = dns_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !problems.is_empty() {
        errors.push(invalid("spec.group", group, problems.join(",")));
    } else if !group.contains('.') {
        errors.push(invalid("spec.group", group, "should be a domain with at least one dot"));
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
}

/// The names that a definition asks for.
pub(super) fn wanted(definition: &Value, errors: &mut Vec<FieldError>) {
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(definition, &format!("/spec/names/{field}")).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{field}"), ""));
        }
    }
    names(&definition["spec"]["names"], "spec.names", errors);
}

/// The names that a definition was given.
pub(super) fn accepted(definition: &Value, errors: &mut Vec<FieldError>) {
    names(&definition["status"]["acceptedNames"], "status.acceptedNames", errors);
}

fn names(names: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for field in ["plural", "singular", "kind", "listKind"] {
        let name = text(names, &format!("/{field}"));
        let is_kind = matches!(field, "kind" | "listKind");
        let form = if is_kind { name.to_lowercase() } else { name.to_owned() };
        let problems = dns_label_1035(&form);
        if !name.is_empty() && !problems.is_empty() {
            let hint =
                if is_kind { "may have mixed case, but should otherwise match: " } else { "" };
            let detail = format!("{hint}{}", problems.join(","));
            errors.push(invalid(format!("{path}.{field}"), name, detail));
        }
    }
    let labels = |field: &str, errors: &mut Vec<FieldError>| {
        for (index, name) in list(names, &format!("/{field}")).enumerate() {
            let name = name.as_str().unwrap_or_default();
            let problems = dns_label_1035(name);
            if !problems.is_empty() {
                let path = format!("{path}.{field}[{index}]");
                errors.push(invalid(path, name, problems.join(",")));
            }
        }
    };
    labels("shortNames", errors);
    let list_kind = text(names, "/listKind");
    if !list_kind.is_empty() && list_kind == text(names, "/kind") {
        let detail = "kind and listKind may not be the same";
        errors.push(invalid(format!("{path}.listKind"), list_kind, detail));
    }
    labels("categories", errors);
}

/// Groups of Kubernetes itself need somebody's word; unknown fields are kept by schemas only.
pub(super) fn permission(definition: &Value, errors: &mut Vec<FieldError>) {
    let group = text(definition, "/spec/group");
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
    if flag(&definition["spec"], "preserveUnknownFields") {
        errors.push(invalid(
            "spec.preserveUnknownFields",
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
             spec.versions[*].schema instead",
        ));
    }
}
