//! HorizontalPodAutoscalers: what is scaled, between which bounds, by which metrics, how fast.

use serde_json::Value;

use super::place::Place;
use super::report::{Report, at, list, text};
use super::resources;
use crate::autoscaling;
use crate::decode::Quantity;
use crate::validate::name;

/// The types of metrics, each with the field that describes it.
const METRICS: &[(&str, &str)] = &[
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

/// The order in which descriptions are looked for: only the first one is judged.
const SOURCES: &[&str] = &["object", "external", "pods", "resource", "containerResource"];

const LONGEST_PERIOD: i64 = 1800;
const LONGEST_WINDOW: i64 = 3600;

pub(super) fn autoscaler(value: &Value, old: Option<&Value>, report: &mut Report) {
    // Whichever version is spoken, it is judged in the words of the second.
    let value = &autoscaling::in_second(value);
    bounds(value, report);
    let target = "/spec/scaleTargetRef";
    reference(at(value, target), "spec.scaleTargetRef", report);
    // The only one of the core group that can be scaled.
    let is_core = text(value, "/spec/scaleTargetRef/kind") == "ReplicationController";
    let same = |field: &str| {
        let pointer = format!("{target}/{field}");
        old.is_some_and(|old| at(old, &pointer) == at(value, &pointer))
    };
    let unchanged = same("kind") && same("apiVersion");
    if let Some(why) = wrong_version(at(value, target), is_core).filter(|_| !unchanged) {
        let version = text(value, "/spec/scaleTargetRef/apiVersion");
        report.invalid("spec.scaleTargetRef.apiVersion", version, why);
    }
    for (index, given) in list(value, "/spec/metrics").iter().enumerate() {
        metric(given, &format!("spec.metrics[{index}]"), report);
    }
    for field in ["scaleUp", "scaleDown"] {
        if let Some(rules) = value.pointer(&format!("/spec/behavior/{field}")) {
            scaling_rules(rules, &format!("spec.behavior.{field}"), report);
        }
    }
}

fn bounds(value: &Value, report: &mut Report) {
    let (least, most) =
        (at(value, "/spec/minReplicas").as_i64(), at(value, "/spec/maxReplicas").as_i64());
    if let Some(least) = least.filter(|least| *least < 1) {
        report.invalid("spec.minReplicas", least, "must be greater than or equal to 1");
    }
    let outside = |metric: &Value| matches!(text(metric, "/type"), "Object" | "External");
    if least == Some(0) && !list(value, "/spec/metrics").iter().any(outside) {
        let detail = "must specify at least one Object or External metric to support scaling to \
                      zero replicas";
        report.forbidden("spec.metrics", detail);
    }
    let most = most.unwrap_or_default();
    if most == 0 {
        report.required("spec.maxReplicas", "must be set and greater than 0");
    } else if most < 0 {
        report.invalid("spec.maxReplicas", most, "must be greater than or equal to 1");
    }
    if least.is_some_and(|least| most < least) {
        report.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`");
    }
}

/// What is wrong with the version of a reference.
fn wrong_version(reference: &Value, may_be_core: bool) -> Option<String> {
    let version = text(reference, "/apiVersion");
    match version.matches('/').count() {
        0 if !may_be_core => Some("apiVersion must specify API group".to_owned()),
        0 | 1 => None,
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }
}

fn reference(reference: &Value, path: &str, report: &mut Report) {
    for field in ["kind", "name"] {
        let given = text(reference, &format!("/{field}"));
        report.name(&format!("{path}.{field}"), given, name::path_segment);
    }
}

fn metric(metric: &Value, path: &str, report: &mut Report) {
    let (ty, types) = (text(metric, "/type"), METRICS.iter().map(|(name, _)| *name));
    let types: Vec<&str> = types.collect();
    let place = format!("{path}.type");
    if ty.is_empty() {
        report.required(place.as_str(), "must specify a metric source type");
    }
    let mut given = SOURCES.iter().filter(|field| metric.get(**field).is_some());
    if let Some(first) = given.next() {
        source(first, at(metric, &format!("/{first}")), &format!("{path}.{first}"), report);
    }
    let expected = METRICS.iter().find(|(name, _)| *name == ty).map(|(_, field)| *field);
    match expected {
        Some(field) if metric.get(field).is_none() => {
            let detail = "must populate information for the given metric source";
            report.required(format!("{path}.{field}"), detail);
        }
        Some(_) => {}
        None => {
            // Said twice there.
            report.unsupported(&place, &ty.into(), &types);
            report.unsupported(&place, &ty.into(), &types);
        }
    }
    let given: Vec<&str> =
        SOURCES.iter().copied().filter(|field| metric.get(*field).is_some()).collect();
    for field in given.iter().filter(|field| given.len() > 1 && Some(**field) != expected) {
        let detail = "must populate the given metric source only";
        report.forbidden(format!("{path}.{field}"), detail);
    }
}

/// What one kind of metric needs to be measured and to be compared with.
fn source(sort: &str, source: &Value, path: &str, report: &mut Report) {
    let target = at(source, "/target");
    let [value, average, utilization] =
        ["value", "averageValue", "averageUtilization"].map(|field| target.get(field).is_some());
    if sort == "object" {
        let path = format!("{path}.describedObject");
        let described = at(source, "/describedObject");
        reference(described, &path, report);
        if let Some(why) = wrong_version(described, true) {
            report.invalid(format!("{path}.apiVersion"), text(described, "/apiVersion"), why);
        }
    }
    match sort {
        "object" | "external" | "pods" => {
            let (name, place) = (text(source, "/metric/name"), format!("{path}.metric.name"));
            if name.is_empty() {
                report.required(place.as_str(), "must specify a metric name");
            }
            for problem in name::path_segment(name) {
                report.invalid(place.as_str(), name, problem);
            }
        }
        _ => {
            let (name, place) = (text(source, "/name"), format!("{path}.name"));
            if name.is_empty() {
                report.required(place, "must specify a resource name");
            } else if sort == "containerResource" {
                resources::container_resource(name, &Place::Root(&place), report);
            }
        }
    }
    if sort == "containerResource" {
        let container = text(source, "/container");
        let path = format!("{path}.container");
        if container.is_empty() {
            report.required(path, "must specify a container");
        } else {
            report.dns_label(&path, container);
        }
    }
    let path = format!("{path}.target");
    self::target(target, &path, report);
    let (average_path, either) = (format!("{path}.averageValue"), value || average);
    match sort {
        "object" if !either => {
            report.required(average_path, "must set either a target value or averageValue");
        }
        "external" if !either => report.required(
            average_path,
            "must set either a target value for metric or a per-pod target",
        ),
        "external" if value && average => report.forbidden(
            format!("{path}.value"),
            "may not set both a target value for metric and a per-pod target",
        ),
        "pods" if !average => {
            report.required(average_path, "must specify a positive target averageValue");
        }
        "resource" | "containerResource" if !utilization && !average => report.required(
            format!("{path}.averageUtilization"),
            "must set either a target raw value or a target utilization",
        ),
        "resource" | "containerResource" if utilization && average => report.forbidden(
            average_path,
            "may not set both a target raw value and a target utilization",
        ),
        _ => {}
    }
}

fn target(target: &Value, path: &str, report: &mut Report) {
    let (ty, place) = (text(target, "/type"), format!("{path}.type"));
    if ty.is_empty() {
        report.required(place.as_str(), "must specify a metric target type");
    }
    if !matches!(ty, "Utilization" | "Value" | "AverageValue") {
        report.invalid(place, ty, "must be either Utilization, Value, or AverageValue");
    }
    for field in ["value", "averageValue"] {
        let shown = text(target, &format!("/{field}"));
        if let Ok(amount) = shown.parse::<Quantity>()
            && (amount.is_negative() || amount.is_zero())
        {
            report.invalid(format!("{path}.{field}"), shown, "must be positive");
        }
    }
    if let Some(percent) = at(target, "/averageUtilization").as_i64().filter(|percent| *percent < 1)
    {
        let path = format!("{path}.averageUtilization");
        report.invalid(path, percent, "must be greater than 0");
    }
}

/// How fast the number of Pods may change in one direction.
fn scaling_rules(rules: &Value, path: &str, report: &mut Report) {
    let place = format!("{path}.stabilizationWindowSeconds");
    match at(rules, "/stabilizationWindowSeconds").as_i64() {
        Some(window) if window < 0 => {
            report.invalid(place, window, "must be greater than or equal to zero");
        }
        Some(window) if window > LONGEST_WINDOW => {
            let detail = format!("must be less than or equal to {LONGEST_WINDOW}");
            report.invalid(place, window, detail);
        }
        _ => {}
    }
    let chosen = at(rules, "/selectPolicy");
    if !matches!(chosen.as_str(), None | Some("Max" | "Min" | "Disabled")) {
        let allowed = ["Disabled", "Max", "Min"];
        report.unsupported(&format!("{path}.selectPolicy"), chosen, &allowed);
    }
    let policies = list(rules, "/policies");
    if policies.is_empty() {
        report.required(format!("{path}.policies"), "must specify at least one Policy");
    }
    for (index, policy) in policies.iter().enumerate() {
        let path = format!("{path}.policies[{index}]");
        let ty = text(policy, "/type");
        if !matches!(ty, "Pods" | "Percent") {
            report.unsupported(&format!("{path}.type"), &ty.into(), &["Percent", "Pods"]);
        }
        for field in ["value", "periodSeconds"] {
            let number = at(policy, &format!("/{field}")).as_i64().unwrap_or_default();
            if number <= 0 {
                report.invalid(format!("{path}.{field}"), number, "must be greater than zero");
            }
            if field == "periodSeconds" && number > LONGEST_PERIOD {
                let detail = format!("must be less than or equal to {LONGEST_PERIOD}");
                report.invalid(format!("{path}.{field}"), number, detail);
            }
        }
    }
    let tolerance = text(rules, "/tolerance");
    if tolerance.parse::<Quantity>().is_ok_and(Quantity::is_negative) {
        let detail = "must be greater than or equal to 0";
        report.invalid(format!("{path}.tolerance"), tolerance, detail);
    }
}
