//! FlowSchemas and PriorityLevelConfigurations: whose requests are how important, and how many of
//! them wait.

use serde_json::Value;

use super::report::{Report, at, list, text};
use crate::bootstrap::fixed_priority;
use crate::go::internal;
use crate::validate::name;

const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
/// The kinds of subjects, each with the field that names it.
const SUBJECTS: &[(&str, &str)] =
    &[("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];
const LAST_PRECEDENCE: i64 = 10_000;
const MOST_QUEUES: i64 = 10_000_000;
/// How many bits of a hash choose the queues of a flow.
const MOST_BITS: f64 = 60.0;

pub(super) fn flow_schema(value: &Value, _: Option<&Value>, report: &mut Report) {
    let own_name = text(value, "/metadata/name");
    let path = "spec.matchingPrecedence";
    let precedence = at(value, "/spec/matchingPrecedence").as_i64().unwrap_or_default();
    if precedence <= 0 {
        report.invalid(path, precedence, "must be a positive value");
    }
    if precedence > LAST_PRECEDENCE {
        let detail = format!("must not be greater than {LAST_PRECEDENCE}");
        report.invalid(path, precedence, detail);
    }
    if precedence == 1 && own_name != "exempt" {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        report.invalid(path, precedence, detail);
    }
    if let Some(method) = value.pointer("/spec/distinguisherMethod") {
        let ty = text(method, "/type");
        if !matches!(ty, "ByNamespace" | "ByUser") {
            let shown = serde_json::json!({"Type": ty});
            let path = "spec.distinguisherMethod.type";
            report.unsupported(path, &shown, &["ByNamespace", "ByUser"]);
        }
    }
    let level = text(value, "/spec/priorityLevelConfiguration/name");
    let path = "spec.priorityLevelConfiguration.name";
    if level.is_empty() {
        report.required(path, "must reference a priority level");
    } else {
        report.name(path, level, name::dns_subdomain);
    }
    for (index, given) in list(value, "/spec/rules").iter().enumerate() {
        rule(given, &format!("spec.rules[{index}]"), report);
    }
    if fixed_priority("FlowSchema", own_name).is_some_and(|spec| spec != *at(value, "/spec")) {
        let detail = format!("spec of '{own_name}' must equal the fixed value");
        report.invalid("spec", internal::part(value, "/spec"), detail);
    }
}

fn rule(rule: &Value, path: &str, report: &mut Report) {
    let subjects = list(rule, "/subjects");
    if subjects.is_empty() {
        let detail = "subjects must contain at least one value";
        report.required(format!("{path}.subjects"), detail);
    }
    for (index, given) in subjects.iter().enumerate() {
        subject(given, &format!("{path}.subjects[{index}]"), report);
    }
    let (resources, others) = (list(rule, "/resourceRules"), list(rule, "/nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        report.required(path, detail);
    }
    for (index, given) in resources.iter().enumerate() {
        resource_rule(given, &format!("{path}.resourceRules[{index}]"), report);
    }
    for (index, given) in others.iter().enumerate() {
        let path = format!("{path}.nonResourceRules[{index}]");
        verbs(given, &path, report);
        let (field, detail) =
            ("nonResourceURLs", "nonResourceURLs must contain at least one value");
        if all_or_some(given, &path, field, detail, "non-resource URLs", report) {
            for (index, given) in words(given, field).iter().enumerate() {
                url(given, &format!("{path}.{field}[{index}]"), report);
            }
        }
    }
}

fn subject(subject: &Value, path: &str, report: &mut Report) {
    let kind = text(subject, "/kind");
    if !SUBJECTS.iter().any(|(known, _)| *known == kind) {
        let kinds: Vec<&str> = SUBJECTS.iter().map(|(known, _)| *known).collect();
        report.unsupported(&format!("{path}.kind"), &kind.into(), &kinds);
        return;
    }
    for (known, field) in SUBJECTS {
        let (given, path) = (subject.get(*field), format!("{path}.{field}"));
        match given {
            Some(_) if *known != kind => {
                let detail = format!("{field} is forbidden when subject kind is not '{known}'");
                report.forbidden(path, &detail);
            }
            None if *known == kind => {
                let detail = format!("{field} is required when subject kind is '{known}'");
                report.required(path, &detail);
            }
            Some(given) => named(known, given, &path, report),
            None => {}
        }
    }
}

fn named(kind: &str, subject: &Value, path: &str, report: &mut Report) {
    let given = text(subject, "/name");
    if given.is_empty() {
        report.required(format!("{path}.name"), "");
    }
    if kind != "ServiceAccount" {
        return;
    }
    if !matches!(given, "" | "*") {
        report.name(&format!("{path}.name"), given, name::dns_subdomain);
    }
    let (namespace, path) = (text(subject, "/namespace"), format!("{path}.namespace"));
    if namespace.is_empty() {
        report.required(path, "must specify namespace for service account");
    } else {
        report.dns_label(&path, namespace);
    }
}

fn words<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    list(rule, &format!("/{field}")).iter().filter_map(Value::as_str).collect()
}

/// Whether words are named one by one; `*` stands alone.
fn all_or_some(
    rule: &Value,
    path: &str,
    field: &str,
    none: &str,
    what: &str,
    report: &mut Report,
) -> bool {
    let given = words(rule, field);
    if given.is_empty() {
        report.required(format!("{path}.{field}"), none);
    } else if given.contains(&"*") && given.len() > 1 {
        let detail = format!("if '*' is present, must not specify other {what}");
        report.invalid(format!("{path}.{field}"), given.clone(), detail);
    }
    !given.contains(&"*")
}

fn verbs(rule: &Value, path: &str, report: &mut Report) {
    let none = "verbs must contain at least one value";
    let some = all_or_some(rule, path, "verbs", none, "verbs", report);
    let given = words(rule, "verbs");
    if some && given.iter().any(|verb| !VERBS.contains(verb)) {
        report.unsupported(&format!("{path}.verbs"), &given.into(), VERBS);
    }
}

fn resource_rule(rule: &Value, path: &str, report: &mut Report) {
    verbs(rule, path, report);
    let none = "resource rules must supply at least one api group";
    all_or_some(rule, path, "apiGroups", none, "api groups", report);
    let none = "resource rules must supply at least one resource";
    all_or_some(rule, path, "resources", none, "resources", report);
    let namespaces = words(rule, "namespaces");
    if namespaces.is_empty() && at(rule, "/clusterScope") == &Value::Bool(true) {
        return;
    }
    let none = "resource rules that are not cluster scoped must supply at least one namespace";
    if all_or_some(rule, path, "namespaces", none, "namespaces", report) {
        for (index, namespace) in namespaces.iter().enumerate() {
            for problem in name::dns_label(namespace) {
                let detail =
                    format!("each member of this list must be '*' or a DNS-1123 label; {problem}");
                report.invalid(format!("{path}.namespaces[{index}]"), *namespace, detail);
            }
        }
    }
}

fn url(given: &str, path: &str, report: &mut Report) {
    let stars = given.matches('*').count();
    let detail = match given {
        "/" => return,
        "" => "must not be empty",
        _ if !given.starts_with('/') => "must start with slash",
        _ if given.contains(' ') => "must not contain white-space",
        _ if given.contains("//") => "must not contain double slash",
        _ if stars > 1 || (stars == 1 && !given.ends_with("/*")) => {
            "wildcard can only do suffix matching"
        }
        _ => return,
    };
    report.invalid(path, given, detail);
}

pub(super) fn priority_level(value: &Value, _: Option<&Value>, report: &mut Report) {
    let (own_name, ty) = (text(value, "/metadata/name"), text(value, "/spec/type"));
    if (own_name == "exempt") != (ty == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        report.invalid("spec.type", ty, detail);
    }
    let (exempt, limited) = (value.pointer("/spec/exempt"), value.pointer("/spec/limited"));
    match (ty, exempt, limited) {
        ("Exempt", exempt, limited) => {
            if limited.is_some() {
                report.forbidden("spec.limited", "must be nil if the type is not Limited");
            }
            if let Some(exempt) = exempt {
                share(exempt, "spec.exempt", report);
            }
        }
        ("Limited", exempt, limited) => {
            if exempt.is_some() {
                report.forbidden("spec.exempt", "must be nil if the type is Limited");
            }
            match limited {
                None => report.required("spec.limited", "must not be empty when type is Limited"),
                Some(limited) => {
                    share(limited, "spec.limited", report);
                    response(at(limited, "/limitResponse"), report);
                }
            }
        }
        (other, ..) => report.one_of("spec.type", other, &["Exempt", "Limited"]),
    }
    let mut spec = at(value, "/spec").clone();
    let Some(fixed) = fixed_priority("PriorityLevelConfiguration", own_name) else { return };
    let except = if own_name == "exempt" {
        // How much it takes and lends may be chosen.
        spec["exempt"] = fixed["exempt"].clone();
        " except the 'spec.exempt' field"
    } else {
        ""
    };
    if spec != fixed {
        let detail = format!("spec of '{own_name}'{except} must equal the fixed value");
        report.invalid("spec", internal::part(value, "/spec"), detail);
    }
}

fn share(level: &Value, path: &str, report: &mut Report) {
    let number = |field: &str| level.get(field).and_then(Value::as_i64);
    if let Some(shares) = number("nominalConcurrencyShares").filter(|shares| *shares < 0) {
        let detail = "must be a non-negative integer";
        report.invalid(format!("{path}.nominalConcurrencyShares"), shares, detail);
    }
    if let Some(lent) = number("lendablePercent").filter(|lent| !(0..=100).contains(lent)) {
        let detail = "must be between 0 and 100, inclusive";
        report.invalid(format!("{path}.lendablePercent"), lent, detail);
    }
    if let Some(borrowed) = number("borrowingLimitPercent").filter(|borrowed| *borrowed < 0) {
        let detail = "if specified, must be a non-negative integer";
        report.invalid(format!("{path}.borrowingLimitPercent"), borrowed, detail);
    }
}

fn response(response: &Value, report: &mut Report) {
    let (path, queuing) = ("spec.limited.limitResponse", response.get("queuing"));
    let place = format!("{path}.queuing");
    match (text(response, "/type"), queuing) {
        ("Reject", Some(_)) => {
            report.forbidden(place, "must be nil if limited.limitResponse.type is not Limited");
        }
        ("Queue", None) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            report.required(place, detail);
        }
        ("Queue", Some(queuing)) => queues(queuing, &place, report),
        (other, _) => report.one_of(&format!("{path}.type"), other, &["Queue", "Reject"]),
    }
}

fn queues(queuing: &Value, path: &str, report: &mut Report) {
    let number = |field: &str| queuing.get(field).and_then(Value::as_i64).unwrap_or_default();
    let (queues, hand) = (number("queues"), number("handSize"));
    for field in ["queueLengthLimit", "queues", "handSize"] {
        if number(field) <= 0 {
            report.invalid(format!("{path}.{field}"), number(field), "must be positive");
        }
    }
    if queues > MOST_QUEUES {
        let detail = format!("must not be greater than {MOST_QUEUES}");
        report.invalid(format!("{path}.queues"), queues, detail);
    }
    let path = format!("{path}.handSize");
    if hand > 0 && hand > queues {
        let detail = format!("should not be greater than queues ({queues})");
        report.invalid(path, hand, detail);
    } else if hand > 0 && bits(queues, hand) > MOST_BITS {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater \
             than {MOST_BITS}"
        );
        report.invalid(path, hand, detail);
    }
}

/// How many bits of a hash it takes to choose so many of the queues.
fn bits(queues: i64, hand: i64) -> f64 {
    let number = |number: i64| i32::try_from(number).map_or(f64::INFINITY, f64::from);
    (number(queues).log2() * number(hand)).ceil()
}
