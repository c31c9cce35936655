//! What containers and Pods ask for: names and amounts of resources, and how they may be resized.

use serde_json::Value;

use super::report::{Report, at, list, text};
use crate::decode::Quantity;
use crate::validate::name;

/// What containers know.
const OF_CONTAINERS: &[&str] = &["cpu", "memory", "ephemeral-storage"];

/// What else is measured somewhere, under a name without a domain.
const MEASURED: &[&str] = &[
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
    "requests.storage",
];

/// What quotas count one by one.
const COUNTED: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Whether a name without a domain means something somewhere.
fn is_standard(name: &str) -> bool {
    [OF_CONTAINERS, MEASURED, COUNTED].iter().any(|names| names.contains(&name))
}

/// One amount of a quota.
pub(super) fn quota(name: &str, amount: &Value, path: &str, report: &mut Report) {
    resource(name, path, report);
    if !name.contains('/') && !is_of_quotas(name) {
        report.invalid(path, name, "must be a standard resource for quota");
    }
    let shown = amount.as_str().unwrap_or_default();
    let Ok(amount) = shown.parse::<Quantity>() else { return };
    if amount.is_negative() {
        report.invalid(path, shown, "must be greater than or equal to 0");
    }
    let counted = COUNTED.contains(&name) || is_extended(name);
    if counted && amount.rounded_up() != amount {
        report.invalid(path, shown, "must be an integer");
    }
}

/// Whether quotas know the name, which has no domain.
pub(super) fn is_of_quotas(name: &str) -> bool {
    let huge = is_huge(name.strip_prefix("requests.").unwrap_or(name));
    huge || (is_standard(name) && name != "storage")
}

/// Requests stay within limits, and nothing is negative.
pub(super) fn container(resources: &Value, path: &str, report: &mut Report) {
    requirements(resources, path, container_resource, report);
}

/// What a Pod asks for as a whole.
pub(super) fn pod(spec: &Value, path: &str, report: &mut Report) {
    let Some(resources) = spec.get("resources").filter(|resources| resources.is_object()) else {
        return;
    };
    let path = format!("{path}.resources");
    if text(spec, "/os/name") == "windows" {
        report.forbidden(path, "may not be set for a windows pod");
        return;
    }
    if resources.get("claims").is_some_and(Value::is_array) {
        let detail = "claims may not be set for Resources at pod-level";
        report.forbidden(format!("{path}.claims"), detail);
    }
    requirements(resources, &path, pod_resource, report);
    let containers = serde_json::json!({"spec": {
        "containers": at(spec, "/containers"),
        "initContainers": at(spec, "/initContainers"),
    }});
    let asked = homeostat_quota::pod_requests(&containers, homeostat_quota::Overhead::Ignored);
    for (name, shown, amount) in amounts(resources, "requests") {
        if let Some(sum) = asked.get(name).filter(|sum| *sum > amount) {
            let why =
                format!("must be greater than or equal to aggregate container requests of {sum}");
            report.invalid(format!("{path}.requests[{name}]"), shown, why);
        }
    }
    for field in ["initContainers", "containers"] {
        for (index, container) in list(spec, &format!("/{field}")).iter().enumerate() {
            for (name, shown, limit) in amounts(at(container, "/resources"), "limits") {
                let whole = amounts(resources, "limits").find(|(of_pod, ..)| *of_pod == name);
                if let Some((_, whole_shown, _)) = whole.filter(|(.., whole)| limit > *whole) {
                    let place = path.trim_end_matches(".resources");
                    let place = format!("{place}.{field}[{index}].resources.limits");
                    let why = format!("must be less than or equal to pod limits of {whole_shown}");
                    report.invalid(format!("{place}[{name}]"), shown, why);
                }
            }
        }
    }
}

/// What a container does when its size changes.
pub(super) fn resize_policies(spec: &Value, path: &str, report: &mut Report) {
    for field in ["initContainers", "containers"] {
        for (index, container) in list(spec, &format!("/{field}")).iter().enumerate() {
            let path = format!("{path}.{field}[{index}].resizePolicy");
            let mut names: Vec<&str> = Vec::new();
            for (at_index, policy) in list(container, "/resizePolicy").iter().enumerate() {
                let (name, restart) =
                    (text(policy, "/resourceName"), text(policy, "/restartPolicy"));
                if names.contains(&name) {
                    report.duplicate(format!("{path}[{at_index}]"), name);
                }
                names.push(name);
                report.one_of(&path, name, &["cpu", "memory"]);
                report.one_of(&path, restart, &["NotRequired", "RestartContainer"]);
                if text(spec, "/restartPolicy") == "Never" && restart != "NotRequired" {
                    let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
                    report.invalid(path.as_str(), restart, why);
                }
            }
        }
    }
}

/// The amounts of one list: name, as written, and as a number.
fn amounts<'a>(
    resources: &'a Value,
    field: &str,
) -> impl Iterator<Item = (&'a str, &'a str, Quantity)> + use<'a> {
    let map = resources.get(field).and_then(Value::as_object).into_iter().flatten();
    map.filter_map(|(name, value)| {
        Some((name.as_str(), value.as_str()?, value.as_str()?.parse::<Quantity>().ok()?))
    })
}

fn requirements(
    resources: &Value,
    path: &str,
    check_name: fn(&str, &str, &mut Report),
    report: &mut Report,
) {
    for field in ["limits", "requests"] {
        for (name, shown, amount) in amounts(resources, field) {
            let path = format!("{path}.{field}[{name}]");
            check_name(name, &path, report);
            if amount.is_negative() {
                report.invalid(path.as_str(), shown, "must be greater than or equal to 0");
            }
            if !is_native(name) && amount.rounded_up() != amount {
                report.invalid(path, shown, "must be an integer");
            }
        }
    }
    for (name, shown, request) in amounts(resources, "requests") {
        let limit = amounts(resources, "limits").find(|(limited, ..)| *limited == name);
        let Some((_, limit_shown, limit)) = limit else {
            if !may_overcommit(name) {
                let detail = "Limit must be set for non overcommitable resources";
                report.required(format!("{path}.limits"), detail);
            }
            continue;
        };
        if request != limit && !may_overcommit(name) {
            let detail = format!("must be equal to {name} limit of {limit_shown}");
            report.invalid(format!("{path}.requests"), shown, detail);
        } else if request > limit {
            let detail = format!("must be less than or equal to {name} limit of {limit_shown}");
            report.invalid(format!("{path}.requests"), shown, detail);
        }
    }
    let has = |wanted: fn(&str) -> bool| {
        let both = ["limits", "requests"].map(|field| amounts(resources, field));
        both.into_iter().flatten().any(|(name, ..)| wanted(name))
    };
    if has(is_huge) && !has(|name| matches!(name, "cpu" | "memory")) {
        report.forbidden(path, "HugePages require cpu or memory");
    }
}

fn is_huge(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    name.split_once('/').is_none_or(|(domain, _)| domain.ends_with("kubernetes.io"))
}

/// Whether the name is one that a device or an operator made up.
fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && name::qualified(&format!("requests.{name}")).is_empty()
}

/// Whether limits may be above requests.
pub(super) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge(name)
}

/// Whether the name is one at all; says so if not.
pub(super) fn resource(name: &str, path: &str, report: &mut Report) -> bool {
    let problems = name::qualified(name);
    let well_formed = problems.is_empty();
    for problem in problems {
        report.invalid(path, name, problem);
    }
    let huge = is_huge(name.trim_start_matches("requests."));
    if well_formed && !name.contains('/') && !is_standard(name) && !huge {
        report.invalid(path, name, "must be a standard resource type or fully qualified");
        return false;
    }
    well_formed
}

/// A name of what a container can ask for.
pub(super) fn container_resource(name: &str, path: &str, report: &mut Report) {
    resource(name, path, report);
    if !name.contains('/') && !OF_CONTAINERS.contains(&name) && !is_huge(name) {
        report.invalid(path, name, "must be a standard resource for containers");
    }
}

fn pod_resource(name: &str, path: &str, report: &mut Report) {
    if resource(name, path, report) && !matches!(name, "cpu" | "memory") && !is_huge(name) {
        report.unsupported(path, &name.into(), &["cpu", "hugepages-", "memory"]);
    }
}
