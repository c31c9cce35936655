//! What administrators put in the way of writes: webhook configurations, and what policies and
//! their bindings have in common with them.

use serde_json::Value;

use super::super::{client_config, dns_label_1035, dns_subdomain, name};
use super::report::{Report, at, list, text};
use super::workload::selector;
use homeostat_cel::{Source, Type, check as check_types};

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];
pub(super) const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];
const SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun"];
pub(super) const REINVOCATION: &[&str] = &["IfNeeded", "Never"];
const REVIEWS: &[&str] = &["v1", "v1beta1"];
/// More conditions than this are too many.
const MOST_CONDITIONS: usize = 64;

fn words<'a>(value: &'a Value, pointer: &str) -> Vec<&'a str> {
    list(value, pointer).iter().filter_map(Value::as_str).collect()
}

/// A word that is one of these, if it is given; defaults fill in what is not.
pub(super) fn known(report: &mut Report, path: &str, value: &Value, allowed: &[&str]) {
    if let Some(text) = value.as_str().filter(|text| !allowed.contains(text)) {
        report.unsupported(path, &text.into(), allowed);
    }
}

/// `ValidatingWebhookConfiguration` and `MutatingWebhookConfiguration`.
pub(super) fn webhooks(value: &Value, old: Option<&Value>, report: &mut Report) {
    let before = old.map_or(&[][..], |old| list(old, "/webhooks"));
    let hooks = list(value, "/webhooks");
    // Conditions that did not change are not read again.
    let same = before.len() == hooks.len()
        && before
            .iter()
            .zip(hooks)
            .all(|(a, b)| at(a, "/matchConditions") == at(b, "/matchConditions"));
    let mut names: Vec<&str> = Vec::new();
    for (index, hook) in hooks.iter().enumerate() {
        let path = format!("webhooks[{index}]");
        webhook(hook, &path, report);
        if !same {
            conditions(hook, "/matchConditions", &path, false, report);
        }
        reviews(hook, &format!("{path}.admissionReviewVersions"), report);
        let name = text(hook, "/name");
        if names.contains(&name) {
            report.duplicate(format!("{path}.name"), name);
        }
        names.extend(Some(name).filter(|name| !name.is_empty()));
    }
}

fn webhook(hook: &Value, path: &str, report: &mut Report) {
    qualified(&format!("{path}.name"), text(hook, "/name"), report);
    for (index, one) in list(hook, "/rules").iter().enumerate() {
        rule(one, &format!("{path}.rules[{index}]"), report);
    }
    known(report, &format!("{path}.failurePolicy"), at(hook, "/failurePolicy"), FAILURE_POLICIES);
    known(report, &format!("{path}.matchPolicy"), at(hook, "/matchPolicy"), MATCH_POLICIES);
    match at(hook, "/sideEffects") {
        Value::Null => {
            let detail = "must specify one of None, NoneOnDryRun";
            report.required(format!("{path}.sideEffects"), detail);
        }
        given => known(report, &format!("{path}.sideEffects"), given, SIDE_EFFECTS),
    }
    let timeout = hook.get("timeoutSeconds").and_then(Value::as_i64);
    if let Some(timeout) = timeout.filter(|timeout| !(1..=30).contains(timeout)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        report.invalid(format!("{path}.timeoutSeconds"), timeout, detail);
    }
    selectors(hook, path, report);
    let again = at(hook, "/reinvocationPolicy");
    known(report, &format!("{path}.reinvocationPolicy"), again, REINVOCATION);
    client(at(hook, "/clientConfig"), &format!("{path}.clientConfig"), report);
}

fn selectors(value: &Value, path: &str, report: &mut Report) {
    for field in ["namespaceSelector", "objectSelector"] {
        if let Some(given) = value.get(field) {
            selector(given, &format!("{path}.{field}"), report);
        }
    }
}

fn client(client: &Value, path: &str, report: &mut Report) {
    let service = client.get("service").filter(|service| service.is_object());
    match (client.get("url").and_then(Value::as_str), service) {
        (Some(url), None) => {
            report.errors.extend(client_config::url(url, &format!("{path}.url")));
        }
        (None, Some(service)) => {
            let path = format!("{path}.service");
            let mut errors = client_config::service(service, &path);
            // The two are mistaken for each other here.
            for error in &mut errors {
                if error.path.ends_with(".name") {
                    error.path = format!("{path}.namespace");
                } else if error.path.ends_with(".namespace") {
                    error.path = format!("{path}.name");
                }
            }
            report.errors.extend(errors);
        }
        _ => report.required(path, "exactly one of url or service is required"),
    }
}

/// A name of at least three parts.
fn qualified(path: &str, name: &str, report: &mut Report) {
    let problems = dns_subdomain(name);
    if name.is_empty() {
        report.required(path, "");
    } else if !problems.is_empty() {
        report.invalid(path, name, problems.join(","));
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        report.invalid(path, name, detail);
    }
}

fn reviews(hook: &Value, path: &str, report: &mut Report) {
    let versions = words(hook, "/admissionReviewVersions");
    if versions.is_empty() {
        report.required(path, "must specify one of v1, v1beta1");
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        if versions[..index].contains(version) {
            report.invalid(format!("{path}[{index}]"), *version, "duplicate version");
            continue;
        }
        for problem in dns_label_1035(version) {
            report.invalid(format!("{path}[{index}]"), *version, problem);
        }
    }
    if !versions.iter().any(|version| REVIEWS.contains(version)) {
        report.invalid(path, versions, "must include at least one of v1, v1beta1");
    }
}

/// Which operations on which resources.
fn rule(rule: &Value, path: &str, report: &mut Report) {
    let operations = words(rule, "/operations");
    let place = format!("{path}.operations");
    if operations.is_empty() {
        report.required(place.as_str(), "");
    }
    if operations.len() > 1 && operations.contains(&"*") {
        let detail = "if '*' is present, must not specify other operations";
        report.invalid(place.as_str(), operations.clone(), detail);
    }
    for (index, operation) in operations.iter().enumerate() {
        if !OPERATIONS.contains(operation) {
            report.unsupported(&format!("{place}[{index}]"), &(*operation).into(), OPERATIONS);
        }
    }
    for (field, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let (given, place) = (words(rule, &format!("/{field}")), format!("{path}.{field}"));
        if given.is_empty() {
            report.required(place.as_str(), "");
        }
        if given.len() > 1 && given.contains(&"*") {
            let detail = format!("if '*' is present, must not specify other {what}");
            report.invalid(place.as_str(), given.clone(), detail);
        }
        if field == "apiVersions" {
            for (index, _) in given.iter().enumerate().filter(|(_, version)| version.is_empty()) {
                report.required(format!("{place}[{index}]"), "");
            }
        }
    }
    resources(&words(rule, "/resources"), &format!("{path}.resources"), report);
    known(report, &format!("{path}.scope"), at(rule, "/scope"), SCOPES);
}

fn resources(given: &[&str], path: &str, report: &mut Report) {
    if given.is_empty() {
        report.required(path, "");
    }
    let (mut all_parts, mut of_all): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut plain = false;
    for (index, resource) in given.iter().enumerate() {
        let place = format!("{path}[{index}]");
        if resource.is_empty() {
            report.required(place, "");
            continue;
        }
        let Some((name, part)) = resource.split_once('/') else {
            plain = *resource != "*";
            continue;
        };
        if all_parts.contains(&name) {
            let detail = format!("if '{name}/*' is present, must not specify {resource}");
            report.invalid(place.as_str(), *resource, detail);
        }
        if of_all.contains(&part) {
            let detail = format!("if '*/{part}' is present, must not specify {resource}");
            report.invalid(place, *resource, detail);
        }
        all_parts.extend((part == "*").then_some(name));
        of_all.extend((name == "*").then_some(part));
    }
    if given.len() > 1 && given.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        report.invalid(path, given.to_vec(), detail);
    }
    if given.contains(&"*") && plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        report.invalid(path, given.to_vec(), detail);
    }
}

/// `matchConstraints` of a policy, `matchResources` of a binding.
pub(super) fn match_resources(value: &Value, path: &str, report: &mut Report) {
    known(report, &format!("{path}.matchPolicy"), at(value, "/matchPolicy"), MATCH_POLICIES);
    selectors(value, path, report);
    for field in ["resourceRules", "excludeResourceRules"] {
        for (index, one) in list(value, &format!("/{field}")).iter().enumerate() {
            let path = format!("{path}.{field}[{index}]");
            let names = words(one, "/resourceNames");
            for (at, given) in names.iter().enumerate() {
                let place = format!("{path}.resourceNames[{at}]");
                for problem in name::path_segment(given) {
                    report.invalid(place.as_str(), *given, problem);
                }
                if names[..at].contains(given) {
                    report.duplicate(place, *given);
                }
            }
            rule(one, &path, report);
        }
    }
}

/// `matchConditions`: named expressions that are true or false.
pub(super) fn conditions(
    value: &Value,
    pointer: &str,
    path: &str,
    has_params: bool,
    report: &mut Report,
) {
    let path = [path, pointer.rsplit('/').next().unwrap_or_default()].join(".");
    let given = list(value, pointer);
    if given.len() > MOST_CONDITIONS {
        report.errors.push(crate::field::FieldError {
            path: path.clone(),
            reason: crate::field::Reason::TooMany,
            value: Some(given.len().into()),
            detail: format!("must have at most {MOST_CONDITIONS} items"),
        });
    }
    let variables = homeostat_cel::admission::variables(has_params, true);
    let mut names: Vec<&str> = Vec::new();
    for (index, condition) in given.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let expression = text(condition, "/expression").trim();
        if expression.is_empty() {
            report.required(format!("{path}.expression"), "");
        } else {
            let path = format!("{path}.expression");
            expression_of(&path, expression, expression, &variables, &[Type::Bool], report);
        }
        let given = text(condition, "/name");
        report.name(&format!("{path}.name"), given, name::qualified);
        if names.contains(&given) {
            report.duplicate(format!("{path}.name"), given);
        }
        names.extend(Some(given).filter(|name| !name.is_empty()));
    }
}

/// Checks an expression that must be of one of these types; gives its type if it is right.
pub(super) fn expression_of(
    path: &str,
    shown: &str,
    expression: &str,
    variables: &[(&str, Type)],
    wanted: &[Type],
    report: &mut Report,
) -> Option<Type> {
    let checked = Source::parse(expression).and_then(|source| check_types(&source, variables));
    let ty = match checked {
        Ok(checked) => checked.ty,
        Err(why) => {
            report.invalid(path, shown, format!("compilation failed: {why}"));
            return None;
        }
    };
    if wanted.is_empty() || wanted.contains(&ty) {
        return Some(ty);
    }
    let names: Vec<String> = wanted.iter().map(Type::full_name).collect();
    let wanted = match &names[..] {
        [one] => one.clone(),
        many => format!("one of [{}]", many.join(" ")),
    };
    report.invalid(path, shown, format!("must evaluate to {wanted} but got {}", ty.full_name()));
    None
}
