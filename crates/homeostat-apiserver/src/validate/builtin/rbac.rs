//! Roles and their bindings.

use serde_json::{Value, json};

use super::report::{Report, at, list, text};

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
}

pub(super) fn binding(value: &Value, old: Option<&Value>, report: &mut Report) {
    let group = "rbac.authorization.k8s.io";
    report.one_of("roleRef.apiGroup", text(value, "/roleRef/apiGroup"), &[group]);
    let kinds: &[&str] = match text(value, "/kind") {
        "ClusterRoleBinding" => &["ClusterRole"],
        _ => &["Role", "ClusterRole"],
    };
    match text(value, "/roleRef/kind") {
        "" => report.unsupported("roleRef.kind", &json!(""), kinds),
        kind => report.one_of("roleRef.kind", kind, kinds),
    }
    if text(value, "/roleRef/name").is_empty() {
        report.required("roleRef.name", "");
    }
    for (index, subject) in list(value, "/subjects").iter().enumerate() {
        let path = format!("subjects[{index}]");
        if text(subject, "/name").is_empty() {
            report.required(format!("{path}.name"), "");
        }
        match text(subject, "/kind") {
            "ServiceAccount" => {
                if text(subject, "/namespace").is_empty()
                    && text(value, "/kind") == "ClusterRoleBinding"
                {
                    report.required(format!("{path}.namespace"), "");
                }
            }
            kind => {
                report.one_of(&format!("{path}.kind"), kind, &["ServiceAccount", "User", "Group"]);
            }
        }
    }
    if let Some(old) = old
        && at(value, "/roleRef") != at(old, "/roleRef")
    {
        let shown = json!({
            "APIGroup": text(value, "/roleRef/apiGroup"),
            "Kind": text(value, "/roleRef/kind"),
            "Name": text(value, "/roleRef/name"),
        });
        report.invalid("roleRef", shown, "cannot change roleRef");
    }
}
