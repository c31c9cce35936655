//! Roles and their bindings.

use serde_json::{Value, json};

use super::report::{Report, at, list, text};
use super::workload::selector;
use crate::go::internal;
use crate::validate::name;

pub(super) fn role(value: &Value, _: Option<&Value>, report: &mut Report) {
    let namespaced = text(value, "/kind") == "Role";
    for (index, rule) in list(value, "/rules").iter().enumerate() {
        let path = format!("rules[{index}]");
        if list(rule, "/verbs").is_empty() {
            report.required(format!("{path}.verbs"), "verbs must contain at least one value");
        }
        if !list(rule, "/nonResourceURLs").is_empty() {
            if namespaced {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                report.invalid(
                    format!("{path}.nonResourceURLs"),
                    at(rule, "/nonResourceURLs").clone(),
                    detail,
                );
            }
            let mixed = ["apiGroups", "resources", "resourceNames"]
                .iter()
                .any(|field| !list(rule, &format!("/{field}")).is_empty());
            if mixed {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                report.invalid(
                    format!("{path}.nonResourceURLs"),
                    at(rule, "/nonResourceURLs").clone(),
                    detail,
                );
            }
            continue;
        }
        if list(rule, "/apiGroups").is_empty() {
            report.required(
                format!("{path}.apiGroups"),
                "resource rules must supply at least one api group",
            );
        }
        if list(rule, "/resources").is_empty() {
            report.required(
                format!("{path}.resources"),
                "resource rules must supply at least one resource",
            );
        }
    }
    if let Some(aggregation) = value.get("aggregationRule").filter(|_| !namespaced) {
        aggregated(aggregation, report);
    }
}

/// Which roles make up another one.
fn aggregated(aggregation: &Value, report: &mut Report) {
    let path = "aggregationRule.clusterRoleSelectors";
    let selectors = list(aggregation, "/clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        report.required(path, detail);
    }
    for (index, given) in selectors.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let before = report.errors.len();
        selector(given, &path, report);
        if report.errors.len() > before {
            report.invalid(path, Value::Null, "invalid label selector.");
        }
    }
}

pub(super) fn binding(value: &Value, old: Option<&Value>, report: &mut Report) {
    let group = "rbac.authorization.k8s.io";
    let given = at(value, "/roleRef/apiGroup");
    if given != group {
        report.unsupported("roleRef.apiGroup", given, &[group]);
    }
    let kinds: &[&str] = match text(value, "/kind") {
        "ClusterRoleBinding" => &["ClusterRole"],
        _ => &["Role", "ClusterRole"],
    };
    match text(value, "/roleRef/kind") {
        "" => report.unsupported("roleRef.kind", &json!(""), kinds),
        kind => report.one_of("roleRef.kind", kind, kinds),
    }
    report.name("roleRef.name", text(value, "/roleRef/name"), name::path_segment);
    for (index, subject) in list(value, "/subjects").iter().enumerate() {
        let path = format!("subjects[{index}]");
        if text(subject, "/name").is_empty() {
            report.required(format!("{path}.name"), "");
        }
        match text(subject, "/kind") {
            "ServiceAccount" => {
                let name = text(subject, "/name");
                if !name.is_empty() {
                    report.name(&format!("{path}.name"), name, name::dns_subdomain);
                }
                let group = text(subject, "/apiGroup");
                if !group.is_empty() {
                    report.unsupported(&format!("{path}.apiGroup"), &group.into(), &[""]);
                }
                if text(subject, "/namespace").is_empty()
                    && text(value, "/kind") == "ClusterRoleBinding"
                {
                    report.required(format!("{path}.namespace"), "");
                }
            }
            "User" | "Group" => {
                let given = at(subject, "/apiGroup");
                if given != group {
                    report.unsupported(&format!("{path}.apiGroup"), given, &[group]);
                }
            }
            kind => {
                let known = ["ServiceAccount", "User", "Group"];
                report.unsupported(&format!("{path}.kind"), &kind.into(), &known);
            }
        }
    }
    if let Some(old) = old
        && at(value, "/roleRef") != at(old, "/roleRef")
    {
        let shown = internal::form("io.k8s.api.rbac.v1.RoleRef", at(value, "/roleRef"));
        report.invalid("roleRef", shown, "cannot change roleRef");
    }
}
