//! Claims to devices, templates of them, and classes of devices.

use std::sync::LazyLock;

use homeostat_cel::{Decl, Source, Type, check, most_cost};
use serde_json::Value;

use super::place::Place;
use super::report::{Report, at, list, text};
use super::template_meta::template_meta;
use crate::field::{FieldError, Reason};
use crate::validate::name;

const MOST_REQUESTS: usize = 32;
const MOST_ALTERNATIVES: usize = 8;
const MOST_TOLERATIONS: usize = 16;
const LONGEST_EXPRESSION: usize = 10 * 1024;
const LONGEST_PARAMETERS: usize = 10 * 1024;
const LONGEST_DRIVER: usize = 63;
const LONGEST_IDENTIFIER: usize = 32;
const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];
/// What one expression can cost at most.
const MOST_COST: u64 = 1_000_000;
const ONE_OF_TWO: &str = "exactly one of `exactly` or `firstAvailable` is required";

pub(super) fn claim(value: &Value, old: Option<&Value>, report: &mut Report) {
    match old {
        // Who cannot change it is not told what else is wrong.
        Some(_) => report.immutable(value, old, "/spec"),
        None => devices(at(value, "/spec/devices"), "spec.devices", report),
    }
}

pub(super) fn template(value: &Value, old: Option<&Value>, report: &mut Report) {
    template_meta(at(value, "/spec/metadata"), &Place::Root("spec.metadata"), report);
    devices(at(value, "/spec/spec/devices"), "spec.spec.devices", report);
    // An empty list is no change, even where it must not be set.
    let mut filled = value.clone();
    if let Some(Value::Object(meta)) = filled.pointer_mut("/spec/metadata") {
        meta.retain(|_, field| field.as_array().is_none_or(|list| !list.is_empty()));
    }
    report.immutable(&filled, old, "/spec");
}

pub(super) fn class(value: &Value, old: Option<&Value>, report: &mut Report) {
    let same = |pointer: &str| old.is_some_and(|old| at(old, pointer) == at(value, pointer));
    if !same("/spec/selectors") {
        selectors(at(value, "/spec"), "spec", report);
    }
    let configurations = list(value, "/spec/config");
    if few(configurations, MOST_REQUESTS, "spec.config", report) {
        for (index, configuration) in configurations.iter().enumerate() {
            self::configuration(configuration, &format!("spec.config[{index}]"), report);
        }
    }
    if let Some(extended) = at(value, "/spec/extendedResourceName").as_str()
        && !is_extended_resource(extended)
    {
        let why = "must be a valid extended resource name";
        report.invalid("spec.extendedResourceName", extended, why);
    }
}

fn is_extended_resource(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native
        && !name.starts_with("requests.")
        && name::qualified(&format!("requests.{name}")).is_empty()
}

/// Whether there are not too many to look at each.
pub(super) fn few(items: &[Value], most: usize, path: &str, report: &mut Report) -> bool {
    let fit = items.len() <= most;
    if !fit {
        let detail = format!("must have at most {most} items");
        report.errors.push(FieldError::new(path, Reason::TooMany, items.len().into(), detail));
    }
    fit
}

pub(super) fn too_long(path: impl Into<String>, most: usize, report: &mut Report) {
    report.errors.push(FieldError {
        path: path.into(),
        reason: Reason::TooLong,
        value: None,
        detail: format!("may not be more than {most} bytes"),
    });
}

/// No two have the same key.
pub(super) fn unique<K: PartialEq + Into<Value>>(
    keys: impl Iterator<Item = K>,
    path: &str,
    report: &mut Report,
) {
    let mut seen = Vec::new();
    for (index, key) in keys.enumerate() {
        if seen.contains(&key) {
            report.duplicate(format!("{path}[{index}]"), key);
        } else {
            seen.push(key);
        }
    }
}

/// The name of a driver, as a domain.
pub(super) fn driver(given: &str, path: &str, report: &mut Report) {
    if given.is_empty() {
        report.required(path, "");
        return;
    }
    if given.len() > LONGEST_DRIVER {
        too_long(path, LONGEST_DRIVER, report);
    }
    for problem in name::dns_subdomain(&given.to_lowercase()) {
        report.invalid(path, given, problem);
    }
}

/// A label that must be there; what is empty is no label.
pub(super) fn label(given: &str, path: &str, report: &mut Report) {
    for problem in name::dns_label(given) {
        report.invalid(path, given, problem);
    }
}

/// The name of an attribute or a capacity, with or without the domain it is from.
pub(super) fn attribute_name(given: &str, path: &str, report: &mut Report) {
    let parts: Vec<&str> = given.split('/').collect();
    match parts.as_slice() {
        [id] => identifier(id, path, report),
        [domain, id] => {
            match *domain {
                "" => report.invalid(path, "", "the domain must not be empty"),
                domain => driver(domain, path, report),
            }
            match *id {
                "" => report.invalid(path, "", "the name must not be empty"),
                id => identifier(id, path, report),
            }
        }
        // Accepted there, too.
        _ => {}
    }
}

fn identifier(id: &str, path: &str, report: &mut Report) {
    if id.len() > LONGEST_IDENTIFIER {
        too_long(path, LONGEST_IDENTIFIER, report);
    }
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !id.chars().all(inner) || !id.starts_with(|c: char| inner(c) && !c.is_ascii_digit()) {
        let why = "a valid C identifier must start with alphabetic character or '_', followed by a \
                   string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or \
                   'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
        report.invalid(path, id, why);
    }
}

/// What is said of one element of a list.
type Judge = fn(&Value, &str, &mut Report);

fn devices(devices: &Value, path: &str, report: &mut Report) {
    let requests = list(devices, "/requests");
    let place = format!("{path}.requests");
    if few(requests, MOST_REQUESTS, &place, report) {
        for (index, request) in requests.iter().enumerate() {
            self::request(request, &format!("{place}[{index}]"), report);
        }
        unique(requests.iter().map(|request| text(request, "/name")), &place, report);
    }
    for (field, judge) in [("constraints", constraint as Judge), ("config", configuration)] {
        let all = list(devices, &format!("/{field}"));
        let place = format!("{path}.{field}");
        if few(all, MOST_REQUESTS, &place, report) {
            for (index, one) in all.iter().enumerate() {
                let path = format!("{place}[{index}]");
                named_requests(one, requests, &path, report);
                judge(one, &path, report);
            }
        }
    }
}

fn request(request: &Value, path: &str, report: &mut Report) {
    label(text(request, "/name"), &format!("{path}.name"), report);
    let alternatives = list(request, "/firstAvailable");
    match (request.get("exactly"), alternatives.is_empty()) {
        (None, true) => report.required(path, ONE_OF_TWO),
        (Some(_), false) => {
            let why = format!("{ONE_OF_TWO}, but multiple fields are set");
            report.invalid(path, Value::Null, why);
        }
        (Some(exact), true) => wanted(exact, &format!("{path}.exactly"), report),
        (None, false) => {
            let path = format!("{path}.firstAvailable");
            if !few(alternatives, MOST_ALTERNATIVES, &path, report) {
                return;
            }
            for (index, alternative) in alternatives.iter().enumerate() {
                let path = format!("{path}[{index}]");
                label(text(alternative, "/name"), &format!("{path}.name"), report);
                wanted(alternative, &path, report);
            }
            unique(alternatives.iter().map(|one| text(one, "/name")), &path, report);
        }
    }
}

/// Which devices of a class, and how many.
fn wanted(wanted: &Value, path: &str, report: &mut Report) {
    let class = text(wanted, "/deviceClassName");
    report.name(&format!("{path}.deviceClassName"), class, name::dns_subdomain);
    selectors(wanted, path, report);
    let count = at(wanted, "/count").as_i64().unwrap_or_default();
    match text(wanted, "/allocationMode") {
        "All" if count != 0 => {
            let why = "must not be specified when allocationMode is 'All'";
            report.invalid(format!("{path}.count"), count, why);
        }
        "ExactCount" if count <= 0 => {
            report.invalid(format!("{path}.count"), count, "must be greater than zero");
        }
        "All" | "ExactCount" => {}
        other => {
            let path = format!("{path}.allocationMode");
            report.unsupported(&path, &other.into(), &["All", "ExactCount"]);
        }
    }
    let tolerations = list(wanted, "/tolerations");
    if few(tolerations, MOST_TOLERATIONS, &format!("{path}.tolerations"), report) {
        for (index, toleration) in tolerations.iter().enumerate() {
            self::toleration(toleration, &format!("{path}.tolerations[{index}]"), report);
        }
    }
}

fn toleration(toleration: &Value, path: &str, report: &mut Report) {
    let (key, value) = (text(toleration, "/key"), text(toleration, "/value"));
    for problem in name::qualified(key).iter().filter(|_| !key.is_empty()) {
        report.invalid(format!("{path}.key"), key, problem.as_str());
    }
    match text(toleration, "/operator") {
        "Exists" if !value.is_empty() => {
            report.invalid(format!("{path}.value"), value, "must be empty for operator `Exists`");
        }
        "Exists" => {}
        "Equal" => {
            for problem in name::label_value(value) {
                report.invalid(format!("{path}.value"), value, problem);
            }
        }
        other => report.one_of(&format!("{path}.operator"), other, &["Equal", "Exists"]),
    }
    effect(text(toleration, "/effect"), path, report);
}

/// What a taint does, if it is said.
pub(super) fn effect(effect: &str, path: &str, report: &mut Report) {
    if !effect.is_empty() {
        report.one_of(&format!("{path}.effect"), effect, EFFECTS);
    }
}

/// References to requests of the same claim.
pub(super) fn named_requests(holder: &Value, requests: &[Value], path: &str, report: &mut Report) {
    let names = list(holder, "/requests");
    let path = format!("{path}.requests");
    if !few(names, MOST_REQUESTS, &path, report) {
        return;
    }
    for (index, given) in names.iter().enumerate() {
        let path = format!("{path}[{index}]");
        named_request(given.as_str().unwrap_or_default(), requests, &path, report);
    }
    unique(names.iter().map(|name| name.as_str().unwrap_or_default()), &path, report);
}

/// A reference to a request of the same claim, or to an alternative in it.
pub(super) fn named_request(given: &str, requests: &[Value], path: &str, report: &mut Report) {
    let parts: Vec<&str> = given.split('/').collect();
    if parts.len() <= 2 {
        parts.iter().for_each(|part| label(part, path, report));
    }
    let named = requests.iter().find(|request| text(request, "/name") == parts[0]);
    let known = named.is_some_and(|request| match parts.as_slice() {
        [_] => true,
        [_, sub] => list(request, "/firstAvailable").iter().any(|one| text(one, "/name") == *sub),
        _ => false,
    });
    if !known {
        let why = "must be the name of a request in the claim or the name of a request and a \
                   subrequest separated by '/'";
        report.invalid(path, given, why);
    }
}

fn constraint(constraint: &Value, path: &str, report: &mut Report) {
    let attribute = ["matchAttribute", "distinctAttribute"]
        .into_iter()
        .find_map(|field| Some((field, constraint.get(field)?.as_str()?)));
    let Some((field, given)) = attribute else {
        let why = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but \
                   multiple fields are set";
        report.required(path, why);
        return;
    };
    let path = format!("{path}.{field}");
    attribute_name(given, &path, report);
    if !given.contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        report.invalid(path, given, why);
    }
}

/// What a driver is told about its devices.
pub(super) fn configuration(configuration: &Value, path: &str, report: &mut Report) {
    let path = format!("{path}.opaque");
    let Some(opaque) = configuration.get("opaque") else {
        report.required(path, "");
        return;
    };
    driver(text(opaque, "/driver"), &format!("{path}.driver"), report);
    object(at(opaque, "/parameters"), LONGEST_PARAMETERS, &format!("{path}.parameters"), report);
}

/// An object of any form, which is not too large.
pub(super) fn object(given: &Value, most: usize, path: &str, report: &mut Report) {
    match given {
        Value::Null => report.required(path, ""),
        given if given.to_string().len() > most => too_long(path, most, report),
        Value::Object(_) => {}
        _ => report.invalid(path, "<value omitted>", "must be a valid JSON object"),
    }
}

fn selectors(holder: &Value, path: &str, report: &mut Report) {
    let selectors = list(holder, "/selectors");
    let path = format!("{path}.selectors");
    if !few(selectors, MOST_REQUESTS, &path, report) {
        return;
    }
    for (index, selector) in selectors.iter().enumerate() {
        let path = format!("{path}[{index}].cel");
        match selector.get("cel") {
            None => report.required(path, ""),
            Some(cel) => {
                expression(text(cel, "/expression"), &format!("{path}.expression"), report);
            }
        }
    }
}

/// A condition on a device.
fn expression(given: &str, path: &str, report: &mut Report) {
    if given.len() > LONGEST_EXPRESSION {
        too_long(path, LONGEST_EXPRESSION, report);
        return;
    }
    let compiled = Source::parse_binding(given).and_then(|source| {
        let checked = check(&source, &[("device", DEVICE.ty.clone())])?;
        Ok((source, checked))
    });
    match compiled {
        Err(why) => report.invalid(path, given, format!("compilation failed: {why}")),
        Ok((source, checked)) if matches!(checked.ty, Type::Bool | Type::Any) => {
            if most_cost(&source.root, &checked, &DEVICE) > MOST_COST {
                report.forbidden(path, "too complex, exceeds cost limit");
            }
        }
        Ok((_, checked)) => {
            let got = checked.ty.full_name();
            let why = format!("must evaluate to bool or the unknown type, not {got}");
            report.invalid(path, given, why);
        }
    }
}

/// What expressions know of a device.
static DEVICE: LazyLock<Decl> = LazyLock::new(homeostat_cel::device);
