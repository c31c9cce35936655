//! What containers and Pods ask for: names and amounts of resources, and how they may be resized.

use std::fmt;

use serde_json::Value;

use super::place::Place;
use super::report::{Report, at, list, text};
use crate::decode::Quantity;
use crate::field::{FieldError, Reason};
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
    self::amount(name, amount, path, report);
}

/// An amount that can be.
pub(super) fn amount(
    name: &str,
    amount: &Value,
    path: &(impl fmt::Display + ?Sized),
    report: &mut Report,
) {
    let shown = amount.as_str().unwrap_or_default();
    if let Ok(amount) = shown.parse::<Quantity>() {
        quantity(name, shown, amount, path, report);
    }
}

/// Whether quotas know the name, which has no domain.
pub(super) fn is_of_quotas(name: &str) -> bool {
    let huge = is_huge(name.strip_prefix("requests.").unwrap_or(name));
    huge || (is_standard(name) && name != "storage")
}

/// Requests stay within limits, nothing is negative, and claims are those of the Pod.
pub(super) fn container(container: &Value, spec: &Value, place: &Place<'_>, report: &mut Report) {
    let Some(resources) = container.get("resources") else { return };
    let place = place.field("resources");
    requirements(resources, &place, container_resource, report);
    claims(list(resources, "/claims"), spec, &place.field("claims"), report);
}

/// What a Pod needs besides what its containers ask for.
pub(super) fn overhead(overhead: &Value, place: &Place<'_>, report: &mut Report) {
    if overhead.is_object() {
        let limits = serde_json::json!({"limits": overhead});
        requirements(&limits, place, container_resource, report);
    }
}

/// Claims, whole or by one of their requests, each once and each one of the Pod.
fn claims(claims: &[Value], spec: &Value, place: &Place<'_>, report: &mut Report) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, claim) in claims.iter().enumerate() {
        let place = place.item(index);
        let key = (text(claim, "/name"), text(claim, "/request"));
        let (name, request) = key;
        if name.is_empty() {
            report.required(place, "");
            continue;
        }
        if seen.contains(&(name, "")) {
            report.duplicate(place, name);
        } else {
            if !request.is_empty() {
                report.dns_label(&place.field("request"), request);
            }
            if seen.contains(&key) {
                report.duplicate(place, format!("{name}/{request}"));
            } else if request.is_empty() {
                for _ in seen.iter().filter(|(other, _)| *other == name) {
                    report.duplicate(place, name);
                }
            }
            seen.push(key);
        }
        let mut known: Vec<&str> =
            list(spec, "/resourceClaims").iter().map(|claim| text(claim, "/name")).collect();
        known.retain(|known| !known.is_empty());
        if !known.contains(&name) {
            known.sort_unstable();
            known.dedup();
            let which = match known.as_slice() {
                [] => " which is empty".to_owned(),
                known => format!(": {}", known.join(", ")),
            };
            let why = format!("must be one of the names in pod.spec.resourceClaims{which}");
            report.errors.push(FieldError::new(place, Reason::NotFound, name.into(), why));
        }
    }
}

/// What a Pod asks for as a whole.
pub(super) fn pod(spec: &Value, place: &Place<'_>, report: &mut Report) {
    let Some(resources) = spec.get("resources").filter(|resources| resources.is_object()) else {
        return;
    };
    let place = place.field("resources");
    if text(spec, "/os/name") == "windows" {
        report.forbidden(place, "may not be set for a windows pod");
        return;
    }
    if resources.get("claims").is_some_and(Value::is_array) {
        let detail = "claims may not be set for Resources at pod-level";
        report.forbidden(place.field("claims"), detail);
    }
    requirements(resources, &place, pod_resource, report);
    claims(list(resources, "/claims"), spec, &place.field("claims"), report);
    consistency(spec, resources, &place, report);
}

/// The whole is enough for its parts.
fn consistency(spec: &Value, resources: &Value, place: &Place<'_>, report: &mut Report) {
    let containers = serde_json::json!({"spec": {
        "containers": at(spec, "/containers"),
        "initContainers": at(spec, "/initContainers"),
    }});
    let asked = homeostat_quota::pod_requests(&containers, homeostat_quota::Overhead::Ignored);
    let requests = place.field("requests");
    for (name, shown, amount) in amounts(resources, "requests") {
        if let Some(sum) = asked.get(name).filter(|sum| *sum > amount) {
            let why =
                format!("must be greater than or equal to aggregate container requests of {sum}");
            report.invalid(requests.key(name), shown, why);
        }
    }
    let place = place.field("containers");
    for (index, container) in list(spec, "/containers").iter().enumerate() {
        let place = place.item(index);
        for (name, shown, limit) in amounts(at(container, "/resources"), "limits") {
            let whole = amounts(resources, "limits").find(|(of_pod, ..)| *of_pod == name);
            if let Some((_, whole_shown, _)) = whole.filter(|(.., whole)| limit > *whole) {
                let why = format!("must be less than or equal to pod limits of {whole_shown}");
                report.invalid(place.key(name).field("limits"), shown, why);
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
    place: &Place<'_>,
    check_name: fn(&str, &Place<'_>, &mut Report),
    report: &mut Report,
) {
    let (mut is_huge_asked, mut is_usual_asked) = (false, false);
    for field in ["limits", "requests"] {
        let whole = place.field(field);
        for (name, shown, amount) in amounts(resources, field) {
            let place_of_it = whole.key(name);
            check_name(name, &place_of_it, report);
            quantity(name, shown, amount, &place_of_it, report);
            if field == "requests" {
                within_limit(resources, (name, shown, amount), place, report);
            }
            if is_huge(name) {
                is_huge_asked = true;
                pages(name, shown, amount, &place_of_it, report);
            }
            is_usual_asked |= matches!(name, "cpu" | "memory");
        }
    }
    if is_huge_asked && !is_usual_asked {
        report.forbidden(place, "HugePages require cpu or memory");
    }
}

fn quantity(
    name: &str,
    shown: &str,
    amount: Quantity,
    place: &(impl fmt::Display + ?Sized),
    report: &mut Report,
) {
    if amount.is_negative() {
        report.invalid(place.to_string(), shown, "must be greater than or equal to 0");
    }
    if (COUNTED.contains(&name) || is_extended(name)) && amount.rounded_up() != amount {
        report.invalid(place.to_string(), shown, "must be an integer");
    }
}

/// Whole pages of the size in the name.
fn pages(name: &str, shown: &str, amount: Quantity, place: &Place<'_>, report: &mut Report) {
    let size = name.strip_prefix("hugepages-").and_then(|size| size.parse::<Quantity>().ok());
    let size = size.filter(|size| size.rounded_up() == *size).map_or(0, Quantity::units);
    let divides = size > 0 && amount.rounded_up().units() % size == 0;
    if !divides {
        let why = format!("{shown} is not positive integer multiple of {name}");
        report.invalid(place, shown, why);
    }
}

fn within_limit(
    resources: &Value,
    (name, shown, request): (&str, &str, Quantity),
    place: &Place<'_>,
    report: &mut Report,
) {
    let limit = amounts(resources, "limits").find(|(limited, ..)| *limited == name);
    let Some((_, limit_shown, limit)) = limit else {
        if !may_overcommit(name) {
            let detail = "Limit must be set for non overcommitable resources";
            report.required(place.field("limits"), detail);
        }
        return;
    };
    if request != limit && !may_overcommit(name) {
        let detail = format!("must be equal to {name} limit of {limit_shown}");
        report.invalid(place.field("requests"), shown, detail);
    } else if request > limit {
        let detail = format!("must be less than or equal to {name} limit of {limit_shown}");
        report.invalid(place.field("requests"), shown, detail);
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
pub(super) fn container_resource(name: &str, place: &Place<'_>, report: &mut Report) {
    resource_at(name, place, report);
    if !name.contains('/') {
        if !OF_CONTAINERS.contains(&name) && !is_huge(name) {
            report.invalid(place, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        report.invalid(place, name, "doesn't follow extended resource name standard");
    }
}

fn pod_resource(name: &str, place: &Place<'_>, report: &mut Report) {
    if resource_at(name, place, report) && !matches!(name, "cpu" | "memory") && !is_huge(name) {
        report.unsupported(place, &name.into(), &["cpu", "hugepages-", "memory"]);
    }
}

/// Whether a name is one, without a text for its place where it is one of the usual.
fn resource_at(name: &str, place: &Place<'_>, report: &mut Report) -> bool {
    OF_CONTAINERS.contains(&name) || resource(name, &place.to_string(), report)
}
