//! What a question about access must be like before it is answered.

use serde_json::{Value, json};

use super::Target;
use super::token::texts;
use crate::field::{FieldError, Reason};
use crate::status::Status;
use crate::validate::qualified_name_problems;

/// Refuses a question that cannot be answered.
pub(super) fn check(target: &Target, question: &Value) -> Result<(), Status> {
    let kind = &target.kind;
    let spec = &question["spec"];
    let mut errors = Vec::new();
    let mut wrong = |path: &str, value: Value, why: &str| {
        errors.push(FieldError::new(path, Reason::Invalid, value, why));
    };
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let shown = json!({
        "Path": path["path"].as_str().unwrap_or(""),
        "Verb": path["verb"].as_str().unwrap_or(""),
    });
    if resource.is_object() && path.is_object() {
        let why = "cannot be specified in combination with resourceAttributes";
        wrong("spec.nonResourceAttributes", shown.clone(), why);
    } else if !resource.is_object() && !path.is_object() {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        wrong("spec.resourceAttributes", Value::Null, why);
    }
    let is_self = kind.kind == "SelfSubjectAccessReview";
    if !is_self
        && spec["user"].as_str().unwrap_or("").is_empty()
        && texts(spec.get("groups")).is_empty()
    {
        wrong("spec.user", "".into(), "at least one of user or group must be specified");
    }
    let fields = question["metadata"].as_object();
    let allowed =
        |field: &str| field == "managedFields" || (kind.namespaced && field == "namespace");
    if fields.is_some_and(|fields| fields.keys().any(|field| !allowed(field))) {
        wrong("metadata", question["metadata"].clone(), "must be empty");
    }
    if kind.namespaced {
        let namespace = resource["namespace"].as_str().unwrap_or("");
        if resource.is_object() && namespace != target.namespace {
            let field = "spec.resourceAttributes.namespace";
            wrong(field, namespace.into(), "must match metadata.namespace");
        }
        if path.is_object() {
            let why = "disallowed on this kind of request";
            wrong("spec.nonResourceAttributes", shown, why);
        }
    }
    for (field, of_labels) in [("fieldSelector", false), ("labelSelector", true)] {
        if let Some(selector) = resource.get(field).filter(|selector| selector.is_object()) {
            let path = format!("spec.resourceAttributes.{field}");
            check_selector(selector, &path, of_labels, &mut errors);
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid_kind(&kind.group, "", "", &errors))
}

/// A selector is given raw or as requirements. Operators that are not known may be known to others.
fn check_selector(selector: &Value, path: &str, of_labels: bool, errors: &mut Vec<FieldError>) {
    let raw = selector["rawSelector"].as_str().unwrap_or("");
    let requirements = selector["requirements"].as_array().map_or(&[][..], Vec::as_slice);
    if !raw.is_empty() && !requirements.is_empty() {
        let why = "may not specified at the same time as requirements";
        let path = format!("{path}.rawSelector");
        errors.push(FieldError::new(path, Reason::Invalid, raw.into(), why));
    }
    if raw.is_empty() && requirements.is_empty() {
        let why = format!("when {path} is specified, requirements or rawSelector is required");
        errors.push(FieldError::required(format!("{path}.requirements"), why));
    }
    for (index, requirement) in requirements.iter().enumerate() {
        let path = format!("{path}.requirements[{index}]");
        let has_values = requirement["values"].as_array().is_some_and(|values| !values.is_empty());
        match requirement["operator"].as_str().unwrap_or("") {
            "In" | "NotIn" if !has_values => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(format!("{path}.values"), why));
            }
            "Exists" | "DoesNotExist" if has_values => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(format!("{path}.values"), why));
            }
            _ => {}
        }
        let (key, path) = (requirement["key"].as_str().unwrap_or(""), format!("{path}.key"));
        if of_labels {
            errors.extend(qualified_name_problems(key).into_iter().map(|problem| {
                FieldError::new(path.clone(), Reason::Invalid, key.into(), problem)
            }));
        } else if key.is_empty() {
            errors.push(FieldError::required(path, "must be specified"));
        }
    }
}
