//! Admission policies and their bindings: what they match, and expressions that compile.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::{dns_label_1035, dns_subdomain, name};
use super::admission::{
    FAILURE_POLICIES, REINVOCATION, conditions, expression_of, known, match_resources,
};
use super::report::{Report, at, list, text};
use super::workload::selector;
use crate::go::internal;
use homeostat_cel::admission::{composed, patches, variables};
use homeostat_cel::{Type, is_word};

const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
const PATCHES: &[&str] = &["ApplyConfiguration", "JSONPatch"];
const MUTABLE: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];
const MOST_ANNOTATIONS: usize = 20;
const LONGEST_ANNOTATION: usize = 5 * 1024;
/// `ValidatingAdmissionPolicy`.
pub(super) fn validating(value: &Value, old: Option<&Value>, report: &mut Report) {
    let own = common(value, old, report);
    let scope_of = |has_params: bool, has_authorizer: bool| {
        let mut all = variables(has_params, has_authorizer);
        all.extend(own.clone());
        all
    };
    let has_params = value.pointer("/spec/paramKind").is_some();
    let validations = list(value, "/spec/validations");
    let annotations = list(value, "/spec/auditAnnotations");
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        report.required("spec.validations", detail);
        report.required("spec.auditAnnotations", detail);
        return;
    }
    for (index, validation) in validations.iter().enumerate() {
        let path = format!("spec.validations[{index}]");
        let given = text(validation, "/expression");
        if given.trim().is_empty() {
            report.required(format!("{path}.expression"), "expression is not specified");
        } else {
            let path = format!("{path}.expression");
            let scope = scope_of(has_params, true);
            expression_of(&path, given, given, &scope, &[Type::Bool], report);
        }
        let message = text(validation, "/messageExpression");
        if !message.is_empty() && message.trim().is_empty() {
            let path = format!("{path}.messageExpression");
            report.invalid(path, message, "must be non-empty if specified");
        } else if !message.is_empty() {
            let path = format!("{path}.messageExpression");
            let scope = scope_of(has_params, false);
            expression_of(&path, message, message, &scope, &[Type::String], report);
        }
        let words = text(validation, "/message");
        if !words.is_empty() && words.trim().is_empty() {
            report.invalid(format!("{path}.message"), words, "must be non-empty if specified");
        } else if words.trim().contains(['\n', '\r']) {
            report.invalid(format!("{path}.message"), words, "must not contain line breaks");
        }
        known(report, &format!("{path}.reason"), at(validation, "/reason"), REASONS);
    }
    audit_annotations(value, annotations, &scope_of(has_params, true), report);
}

fn audit_annotations(
    value: &Value,
    annotations: &[Value],
    scope: &[(&str, Type)],
    report: &mut Report,
) {
    if annotations.len() > MOST_ANNOTATIONS {
        let detail = format!("must not have more than {MOST_ANNOTATIONS} auditAnnotations");
        let shown = annotations.iter().map(|annotation| {
            internal::form("io.k8s.api.admissionregistration.v1.AuditAnnotation", annotation)
        });
        report.invalid("spec.auditAnnotations", shown.collect::<Vec<_>>(), detail);
    }
    let mut keys: Vec<&str> = Vec::new();
    for (index, annotation) in annotations.iter().enumerate() {
        let path = format!("spec.auditAnnotations[{index}]");
        let key = text(annotation, "/key");
        let whole = format!("{}/{key}", text(value, "/metadata/name"));
        for problem in name::qualified(&whole) {
            report.invalid(format!("{path}.key"), whole.as_str(), problem);
        }
        let (given, place) =
            (text(annotation, "/valueExpression"), format!("{path}.valueExpression"));
        let trimmed = given.trim();
        if trimmed.is_empty() {
            report.required(place, "valueExpression is not specified");
        } else if trimmed.len() > LONGEST_ANNOTATION {
            let detail = format!("must not exceed {LONGEST_ANNOTATION} bytes in length");
            report.required(place, &detail);
        } else {
            let wanted = [Type::String, Type::Null];
            expression_of(&place, given, trimmed, scope, &wanted, report);
        }
        if keys.contains(&key) {
            report.duplicate(format!("{path}.key"), key);
        }
        keys.push(key);
    }
}

/// `MutatingAdmissionPolicy`.
pub(super) fn mutating(value: &Value, old: Option<&Value>, report: &mut Report) {
    let own = common(value, old, report);
    let mut scope = variables(value.pointer("/spec/paramKind").is_some(), true);
    scope.extend(own);
    let [patched, operation] = patches();
    for (name, ty) in [("Object", &patched), ("JSONPatch", &operation)] {
        scope.push((name, Type::Meta(Arc::new(ty.clone()))));
    }
    let mutations = list(value, "/spec/mutations");
    if mutations.is_empty() {
        report.required("spec.mutations", "mutations must contain at least one item");
    }
    for (index, mutation) in mutations.iter().enumerate() {
        let path = format!("spec.mutations[{index}]");
        let (own, other, wanted) = match text(mutation, "/patchType") {
            "JSONPatch" => ("jsonPatch", "applyConfiguration", Type::list(operation.clone())),
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", patched.clone()),
            given => {
                report.one_of(&format!("{path}.patchType"), given, PATCHES);
                continue;
            }
        };
        let kind = text(mutation, "/patchType");
        match mutation.get(own) {
            None => {
                let detail = format!("must be specified when patchType is {kind}");
                report.required(format!("{path}.{own}"), &detail);
            }
            Some(patch) => {
                let place = format!("{path}.{own}.expression");
                let given = text(patch, "/expression").trim();
                if given.is_empty() {
                    report.required(place, "");
                } else {
                    expression_of(&place, given, given, &scope, &[wanted], report);
                }
            }
        }
        if mutation.get(other).is_some() {
            let detail = format!("must not be specified when patchType is {kind}");
            report.invalid(format!("{path}.{other}"), format!("{{{other}}}"), detail);
        }
    }
    let again = text(value, "/spec/reinvocationPolicy");
    report.one_of("spec.reinvocationPolicy", again, REINVOCATION);
}

/// What both kinds of policies have; gives the `variables` that expressions may use.
fn common(value: &Value, old: Option<&Value>, report: &mut Report) -> Vec<(&'static str, Type)> {
    let mutates = text(value, "/kind") == "MutatingAdmissionPolicy";
    known(report, "spec.failurePolicy", at(value, "/spec/failurePolicy"), FAILURE_POLICIES);
    let params = value.pointer("/spec/paramKind");
    if let Some(kind) = params {
        param_kind(kind, report);
    }
    match value.pointer("/spec/matchConstraints") {
        None => report.required("spec.matchConstraints", ""),
        Some(constraints) => {
            match_resources(constraints, "spec.matchConstraints", report);
            let rules = list(constraints, "/resourceRules");
            if rules.is_empty() {
                report.required("spec.matchConstraints.resourceRules", "");
            }
            if mutates {
                mutable_operations(constraints, "spec.matchConstraints", report);
            }
        }
    }
    let unchanged = |pointer: &str| old.is_some_and(|old| at(old, pointer) == at(value, pointer));
    if !(unchanged("/spec/matchConditions") && unchanged("/spec/paramKind")) {
        conditions(value, "/spec/matchConditions", "spec", params.is_some(), report);
    }
    let mut known_so_far: BTreeMap<String, Type> = BTreeMap::new();
    let given = list(value, "/spec/variables");
    for (index, variable) in given.iter().enumerate() {
        let path = format!("spec.variables[{index}]");
        let name = text(variable, "/name");
        if name.trim().is_empty() {
            report.required(format!("{path}.name"), "name is not specified");
        } else if !is_identifier(name) {
            report.invalid(format!("{path}.name"), name, "must be a valid CEL identifier");
        }
        let expression = text(variable, "/expression");
        let place = format!("{path}.expression");
        if expression.trim().is_empty() {
            report.required(place, "expression is not specified");
            continue;
        }
        let mut scope = variables(params.is_some(), true);
        scope.push(composed(&known_so_far));
        let ty = expression_of(&place, expression, expression, &scope, &[], report);
        known_so_far.insert(name.to_owned(), ty.unwrap_or(Type::Dyn));
    }
    if given.is_empty() && !mutates { Vec::new() } else { vec![composed(&known_so_far)] }
}

/// Nothing is changed on the way to its end.
fn mutable_operations(resources: &Value, path: &str, report: &mut Report) {
    let rules = list(resources, "/resourceRules").iter();
    for operation in rules.flat_map(|rule| list(rule, "/operations")) {
        known(report, &format!("{path}.resourceRules.operations"), operation, MUTABLE);
    }
}

fn is_identifier(name: &str) -> bool {
    let letter = |char: char| char.is_ascii_alphabetic() || char == '_';
    name.starts_with(letter)
        && name.chars().all(|char| letter(char) || char.is_ascii_digit())
        && !is_word(name)
}

fn param_kind(kind: &Value, report: &mut Report) {
    let (version, place) = (text(kind, "/apiVersion"), "spec.paramKind.apiVersion");
    match version.split('/').collect::<Vec<_>>()[..] {
        [""] => report.required(place, ""),
        [.., group, short] if version.matches('/').count() < 2 => {
            group_version(version, group, short, report);
        }
        [short] => group_version(version, "", short, report),
        _ => {
            let detail = format!("unexpected GroupVersion string: {version}");
            report.invalid(place, version, detail);
        }
    }
    let name = text(kind, "/kind");
    let problems = dns_label_1035(&name.to_lowercase());
    if name.is_empty() {
        report.required("spec.paramKind.kind", "");
    } else if !problems.is_empty() {
        let words = problems.join(",");
        let detail = format!("may have mixed case, but should otherwise match: {words}");
        report.invalid("spec.paramKind.kind", name, detail);
    }
}

fn group_version(whole: &str, group: &str, version: &str, report: &mut Report) {
    let place = "spec.paramKind.apiVersion";
    let problems = if group.is_empty() { Vec::new() } else { dns_subdomain(group) };
    if !problems.is_empty() {
        report.invalid(place, group, problems.join(","));
    }
    let problems = dns_label_1035(version);
    if version.is_empty() {
        report.invalid(place, whole, "version must be specified");
    } else if !problems.is_empty() {
        report.invalid(place, version, problems.join(","));
    }
}

/// `ValidatingAdmissionPolicyBinding` and `MutatingAdmissionPolicyBinding`.
pub(super) fn binding(value: &Value, _: Option<&Value>, report: &mut Report) {
    report.name("spec.policyName", text(value, "/spec/policyName"), dns_subdomain);
    if let Some(reference) = value.pointer("/spec/paramRef") {
        param_ref(reference, report);
    }
    let resources = at(value, "/spec/matchResources");
    match_resources(resources, "spec.matchResources", report);
    if text(value, "/kind") == "MutatingAdmissionPolicyBinding" {
        mutable_operations(resources, "spec.matchResources", report);
        return;
    }
    let place = "spec.validationActions";
    let actions: Vec<&str> =
        list(value, "/spec/validationActions").iter().filter_map(Value::as_str).collect();
    for (index, action) in actions.iter().enumerate() {
        let path = format!("{place}[{index}]");
        if !ACTIONS.contains(action) {
            report.unsupported(&path, &(*action).into(), ACTIONS);
        }
        if actions[..index].contains(action) {
            report.duplicate(path, *action);
        }
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure \
                      information in the API response and headers serves no purpose)";
        report.invalid(place, actions.clone(), detail);
    }
    if actions.is_empty() {
        report.required(place, "at least one validation action is required");
    }
}

fn param_ref(reference: &Value, report: &mut Report) {
    let given = text(reference, "/name");
    let chosen = reference.get("selector").filter(|chosen| chosen.is_object());
    let both = "name and selector are mutually exclusive";
    if !given.is_empty() {
        for problem in name::path_segment(given) {
            report.invalid("spec.paramRef.name", given, problem);
        }
        if chosen.is_some() {
            report.forbidden("spec.paramRef.name", both);
        }
    }
    if let Some(chosen) = chosen {
        selector(chosen, "spec.paramRef.selector", report);
        if !given.is_empty() {
            report.forbidden("spec.paramRef.selector", both);
        }
    }
    if given.is_empty() && chosen.is_none() {
        report.required("spec.paramRef", "one of name or selector must be specified");
    }
    let action = text(reference, "/parameterNotFoundAction");
    report.one_of("spec.paramRef.parameterNotFoundAction", action, &["Deny", "Allow"]);
}
