//! ResourceSlices: the devices that a driver offers, and where they are.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::device_capacity::request_policy;
use super::devices::{attribute_name, driver, effect, few, label, too_long, unique};
use super::node_selector::node_selector;
use super::report::{Report, at, list, text};
use crate::field::{FieldError, Reason};
use crate::go::internal::form;
use crate::validate::name;

const ATTRIBUTE: &str = "io.k8s.api.resource.v1.DeviceAttribute";
const TERMS: &str = "[]io.k8s.api.core.v1.NodeSelectorTerm";

const MOST_DEVICES: usize = 128;
/// The same of devices that have more than plain attributes.
const MOST_ADVANCED: usize = 64;
const MOST_COUNTER_SETS: usize = 8;
const MOST_COUNTERS: usize = 32;
const MOST_CONSUMED: usize = 2;
const MOST_ATTRIBUTES: usize = 32;
const MOST_TAINTS: usize = 16;
const MOST_CONDITIONS: usize = 4;
const LONGEST_VALUE: usize = 64;
const LONGEST_POOL: usize = 253;

/// Versions as semver.org has them.
static VERSION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let (number, build) = ("(0|[1-9][0-9]*)", "[0-9a-zA-Z-]+");
    let before = "(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)";
    let pattern = format!(
        "^{number}\\.{number}\\.{number}(-{before}(\\.{before})*)?(\\+{build}(\\.{build})*)?$"
    );
    Regex::new(&pattern).ok()
});

pub(super) fn slice(value: &Value, old: Option<&Value>, report: &mut Report) {
    driver(text(value, "/spec/driver"), "spec.driver", report);
    pool(at(value, "/spec/pool"), report);
    for pointer in ["/spec/pool/name", "/spec/driver", "/spec/nodeName"] {
        report.immutable(value, old, pointer);
    }
    let spec = at(value, "/spec");
    where_it_is(spec, report);
    let (devices, counters) = (list(spec, "/devices"), list(spec, "/sharedCounters"));
    if spec.get("sharedCounters").is_some() && spec.get("devices").is_some() {
        report.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed");
    }
    let most = if devices.iter().any(is_advanced) { MOST_ADVANCED } else { MOST_DEVICES };
    if few(devices, most, "spec.devices", report) {
        let each = at(spec, "/perDeviceNodeSelection") == &Value::Bool(true);
        for (index, device) in devices.iter().enumerate() {
            self::device(device, each, &format!("spec.devices[{index}]"), report);
        }
        unique(devices.iter().map(|device| text(device, "/name")), "spec.devices", report);
    }
    if few(counters, MOST_COUNTER_SETS, "spec.sharedCounters", report) {
        for (index, set) in counters.iter().enumerate() {
            counter_set(set, "name", &format!("spec.sharedCounters[{index}]"), report);
        }
        unique(counters.iter().map(|set| text(set, "/name")), "spec.sharedCounters", report);
    }
}

fn is_advanced(device: &Value) -> bool {
    !list(device, "/taints").is_empty() || !list(device, "/consumesCounters").is_empty()
}

fn pool(pool: &Value, report: &mut Report) {
    pool_name(text(pool, "/name"), "spec.pool.name", report);
    let number = |field: &str| at(pool, field).as_i64().unwrap_or_default();
    if number("/resourceSliceCount") <= 0 {
        let (path, count) = ("spec.pool.resourceSliceCount", number("/resourceSliceCount"));
        report.invalid(path, count, "must be greater than zero");
    }
    if number("/generation") < 0 {
        let why = "must be greater than or equal to zero";
        report.invalid("spec.pool.generation", number("/generation"), why);
    }
}

/// The name of a pool: domains with slashes in between.
pub(super) fn pool_name(given: &str, path: &str, report: &mut Report) {
    if given.is_empty() {
        report.required(path, "");
        return;
    }
    if given.len() > LONGEST_POOL {
        too_long(path, LONGEST_POOL, report);
    }
    for part in given.split('/') {
        for problem in name::dns_subdomain(part) {
            report.invalid(path, part, problem);
        }
    }
}

/// Exactly one field says where the devices are.
fn where_it_is(spec: &Value, report: &mut Report) {
    let mut given = Vec::new();
    node_name(
        spec,
        "spec",
        "must be either unset or set to a non-empty string",
        &mut given,
        report,
    );
    if let Some(selector) = spec.get("nodeSelector") {
        given.push("`nodeSelector`");
        node_selector(selector, "spec.nodeSelector", report);
        let terms = list(selector, "/nodeSelectorTerms");
        if terms.len() != 1 {
            let path = "spec.nodeSelector.nodeSelectorTerms";
            let shown = form(TERMS, at(selector, "/nodeSelectorTerms"));
            report.invalid(path, shown, "must have exactly one node selector term");
        }
    }
    for (field, shown) in
        [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")]
    {
        flag(spec, field, shown, "spec", &mut given, report);
    }
    let why = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is \
               required";
    match given.as_slice() {
        [] => report.required("spec", why),
        [_] => {}
        many => {
            let shown = format!("{{{}}}", many.join(", "));
            report.invalid("spec", shown, format!("{why}, but multiple fields are set"));
        }
    }
}

fn node_name(holder: &Value, path: &str, empty: &str, given: &mut Vec<&str>, report: &mut Report) {
    match holder.get("nodeName").and_then(Value::as_str) {
        None => {}
        Some("") => report.invalid(format!("{path}.nodeName"), "", empty),
        Some(node) => {
            given.push("`nodeName`");
            for problem in name::dns_subdomain(node) {
                report.invalid(format!("{path}.nodeName"), node, problem);
            }
        }
    }
}

fn flag<'a>(
    holder: &Value,
    field: &str,
    shown: &'a str,
    path: &str,
    given: &mut Vec<&'a str>,
    report: &mut Report,
) {
    match holder.get(field).and_then(Value::as_bool) {
        None => {}
        Some(true) => given.push(shown),
        Some(false) => {
            report.invalid(format!("{path}.{field}"), false, "must be either unset or set to true");
        }
    }
}

/// `each` says that every device tells where it is.
fn device(device: &Value, each: bool, path: &str, report: &mut Report) {
    label(text(device, "/name"), &format!("{path}.name"), report);
    let size = |field: &str| at(device, field).as_object().map_or(0, serde_json::Map::len);
    let count = size("/attributes") + size("/capacity");
    if count > MOST_ATTRIBUTES {
        let why = format!(
            "the total number of attributes and capacities must not exceed {MOST_ATTRIBUTES}"
        );
        report.invalid(path, count, why);
    }
    let many = at(device, "/allowMultipleAllocations") == &Value::Bool(true);
    for field in ["attributes", "capacity"] {
        let place = format!("{path}.{field}");
        for (key, value) in at(device, &format!("/{field}")).as_object().into_iter().flatten() {
            attribute_name(key, &place, report);
            let place = format!("{place}[{key}]");
            if field == "attributes" {
                attribute(value, &place, report);
            } else if many {
                request_policy(value, &place, report);
            } else if value.get("requestPolicy").is_some() {
                let why = "allowMultipleAllocations must be true";
                report.forbidden(format!("{place}.requestPolicy"), why);
            }
        }
    }
    let taints = list(device, "/taints");
    if few(taints, MOST_TAINTS, &format!("{path}.taints"), report) {
        for (index, taint) in taints.iter().enumerate() {
            self::taint(taint, &format!("{path}.taints[{index}]"), report);
        }
    }
    let consumed = list(device, "/consumesCounters");
    let place = format!("{path}.consumesCounters");
    if few(consumed, MOST_CONSUMED, &place, report) {
        for (index, set) in consumed.iter().enumerate() {
            counter_set(set, "counterSet", &format!("{place}[{index}]"), report);
        }
        unique(consumed.iter().map(|set| text(set, "/counterSet")), &place, report);
    }
    if each {
        where_device_is(device, path, report);
    } else if ["nodeName", "nodeSelector", "allNodes"].iter().any(|f| device.get(f).is_some()) {
        let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                   `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
        report.invalid(path, Value::Null, why);
    }
    binding_conditions(device, path, report);
}

fn where_device_is(device: &Value, path: &str, report: &mut Report) {
    let mut given = Vec::new();
    node_name(device, path, "must not be empty", &mut given, report);
    if let Some(selector) = device.get("nodeSelector") {
        given.push("`nodeSelector`");
        node_selector(selector, &format!("{path}.nodeSelector"), report);
    }
    flag(device, "allNodes", "`allNodes`", path, &mut given, report);
    let why = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
               `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    match given.as_slice() {
        [] => report.required(path, why),
        [_] => {}
        many => report.invalid(path, format!("{{{}}}", many.join(", ")), why),
    }
}

fn attribute(attribute: &Value, path: &str, report: &mut Report) {
    let given = attribute.as_object().map_or(0, serde_json::Map::len);
    let is_version = |text: &str| VERSION.as_ref().is_none_or(|version| version.is_match(text));
    for field in ["string", "version"] {
        let Some(value) = attribute.get(field).and_then(Value::as_str) else { continue };
        let path = format!("{path}.{field}");
        if field == "version" && !is_version(value) {
            let why = "must be a string compatible with semver.org spec 2.0.0";
            report.invalid(path.as_str(), value, why);
        }
        if value.len() > LONGEST_VALUE {
            too_long(path, LONGEST_VALUE, report);
        }
    }
    if given != 1 {
        let shown = if given == 0 { "".into() } else { form(ATTRIBUTE, attribute) };
        report.invalid(path, shown, "exactly one value must be specified");
    }
}

fn taint(taint: &Value, path: &str, report: &mut Report) {
    let (key, value) = (text(taint, "/key"), text(taint, "/value"));
    for problem in name::qualified(key) {
        report.invalid(format!("{path}.key"), key, problem);
    }
    for problem in name::label_value(value) {
        report.invalid(format!("{path}.value"), value, problem);
    }
    match text(taint, "/effect") {
        "" => report.required(format!("{path}.effect"), ""),
        given => effect(given, path, report),
    }
}

/// Counters under a name, which stands in this field.
fn counter_set(set: &Value, field: &str, path: &str, report: &mut Report) {
    report.dns_label(&format!("{path}.{field}"), text(set, &format!("/{field}")));
    let place = format!("{path}.counters");
    let counters = at(set, "/counters").as_object().filter(|counters| !counters.is_empty());
    let Some(counters) = counters else {
        report.required(place, "");
        return;
    };
    if counters.len() > MOST_COUNTERS {
        let detail = format!("must have at most {MOST_COUNTERS} items");
        let count = counters.len().into();
        report.errors.push(FieldError::new(place, Reason::TooMany, count, detail));
        return;
    }
    for key in counters.keys() {
        label(key, &place, report);
    }
}

/// Conditions that a device waits for before it is used; both sorts or none.
pub(super) fn binding_conditions(device: &Value, path: &str, report: &mut Report) {
    let texts = |field: &str| -> Vec<&str> {
        list(device, field).iter().filter_map(Value::as_str).collect()
    };
    let (ready, failed) = (texts("/bindingConditions"), texts("/bindingFailureConditions"));
    for (field, names) in [("bindingConditions", &ready), ("bindingFailureConditions", &failed)] {
        let path = format!("{path}.{field}");
        if few(list(device, &format!("/{field}")), MOST_CONDITIONS, &path, report) {
            for (index, given) in names.iter().enumerate() {
                for problem in name::qualified(given) {
                    report.invalid(format!("{path}[{index}]"), *given, problem);
                }
            }
        }
        unique(names.iter().copied(), &path, report);
    }
    for (index, given) in failed.iter().enumerate().filter(|(_, given)| ready.contains(given)) {
        let why = "bindingFailureConditions must not overlap with bindingConditions";
        report.invalid(format!("{path}.bindingFailureConditions[{index}]"), *given, why);
    }
    let pairs = [
        ("bindingConditions", "bindingFailureConditions", &ready, &failed),
        ("bindingFailureConditions", "bindingConditions", &failed, &ready),
    ];
    for (field, other, own, others) in pairs {
        if own.is_empty() && !others.is_empty() {
            let why = format!("{field} are required to use {other}");
            report.invalid(
                format!("{path}.{field}"),
                at(device, &format!("/{field}")).clone(),
                why,
            );
        }
    }
}
