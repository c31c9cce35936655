//! What confines the programs of a Pod: profiles of seccomp and AppArmor, in fields and in the
//! annotations that are older than those.

use serde_json::{Map, Value};

use super::super::place::Place;
use super::super::report::{Report, at, list, text};
use super::MIRROR;

const TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const LONGEST_PROFILE: usize = 4095;

/// All containers with their paths below the spec.
fn containers<'a>(spec: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|field| {
            let found = list(spec, &format!("/{field}")).iter().enumerate();
            found.map(move |(index, found)| (format!("{path}.{field}[{index}]"), found))
        })
        .collect()
}

/// The seccomp profile of a security context.
pub(super) fn seccomp(context: &Value, place: &Place<'_>, report: &mut Report) {
    let Some(profile) = context.get("seccompProfile") else { return };
    let (ty, local) = (text(profile, "/type"), profile.get("localhostProfile"));
    let place = place.field("seccompProfile");
    let place_of_local = place.field("localhostProfile");
    if ty.is_empty() {
        report.required(place.field("type"), "type is required when seccompProfile is set");
    } else if !TYPES.contains(&ty) {
        report.unsupported(&place.field("type"), &ty.into(), TYPES);
    }
    match (ty, local) {
        ("Localhost", None) => {
            report.required(place_of_local, "must be set when seccomp type is Localhost");
        }
        ("Localhost", Some(local)) => {
            relative(local.as_str().unwrap_or_default(), &place_of_local, report);
        }
        // The whole profile is shown there, by names of its own.
        (_, Some(local)) => {
            let shown = serde_json::json!({"Type": ty, "LocalhostProfile": local});
            report.invalid(place_of_local, shown, "can only be set when seccomp type is Localhost");
        }
        (_, None) => {}
    }
}

/// The AppArmor profile of a security context.
pub(super) fn app_armor(context: &Value, place: &Place<'_>, report: &mut Report) {
    let Some(profile) = context.get("appArmorProfile") else { return };
    let (ty, local) = (text(profile, "/type"), profile.get("localhostProfile"));
    let place = place.field("appArmorProfile");
    let place_of_local = place.field("localhostProfile");
    let missing = "must be set when AppArmor type is Localhost";
    match (ty, local) {
        ("", _) => {
            report.required(place.field("type"), "type is required when appArmorProfile is set");
        }
        ("Localhost", None) => report.required(place_of_local, missing),
        ("Localhost", Some(local)) => {
            let local = local.as_str().unwrap_or_default();
            if local.trim() != local {
                report.invalid(place_of_local, local, "must not be padded with whitespace");
            } else if local.is_empty() {
                report.required(place_of_local, missing);
            }
            if local.len() > LONGEST_PROFILE {
                report.too_long(place_of_local, LONGEST_PROFILE);
            }
        }
        (ty, _) if !TYPES.contains(&ty) => {
            report.unsupported(&place.field("type"), &ty.into(), TYPES);
        }
        (_, Some(local)) => {
            let why = "can only be set when AppArmor type is Localhost";
            report.invalid(place_of_local, local.clone(), why);
        }
        (_, None) => {}
    }
}

/// A path that does not climb.
pub(super) fn no_backsteps(given: &str, place: &Place<'_>, report: &mut Report) {
    if given.split('/').any(|part| part == "..") {
        report.invalid(place, given, "must not contain '..'");
    }
}

/// A path that leads downwards only.
pub(super) fn relative(given: &str, place: &Place<'_>, report: &mut Report) {
    if given.starts_with('/') {
        report.invalid(place, given, "must be a relative path");
    }
    no_backsteps(given, place, report);
}

/// The annotations of a Pod, or of a template, by themselves.
pub(super) fn annotations(pod: &Value, path: &str, report: &mut Report) {
    let none = Map::new();
    let given = at(pod, "/metadata/annotations").as_object().unwrap_or(&none);
    let spec = at(pod, "/spec");
    for (key, value) in given {
        let value = value.as_str().unwrap_or_default();
        if key == MIRROR && text(spec, "/nodeName").is_empty() {
            let why = "must set spec.nodeName if mirror pod annotation is set";
            report.invalid(format!("{path}[{key}]"), value, why);
        }
        if key == COST && !value.parse::<i32>().is_ok_and(|cost| is_plain(value, cost)) {
            report.invalid(format!("{path}[{key}]"), value, "must be a 32bit integer");
        }
        if key == SECCOMP_OF_POD || key.starts_with(SECCOMP) {
            let path = format!("{path}.{key}");
            match value.strip_prefix("localhost/") {
                Some(local) => relative(local, &Place::Root(&path), report),
                None if matches!(value, "runtime/default" | "docker/default" | "unconfined") => {}
                None => report.invalid(path, value, "must be a valid seccomp profile"),
            }
        }
        let Some(container) = key.strip_prefix(APP_ARMOR) else { continue };
        let path = format!("{path}[{key}]");
        if !containers(spec, "").iter().any(|(_, found)| text(found, "/name") == container) {
            report.invalid(path.as_str(), container, "container not found");
        }
        let known = matches!(value, "" | "runtime/default" | "unconfined");
        if !known && !value.starts_with("localhost/") {
            report.invalid(path, value, format!("invalid AppArmor profile name: {value:?}"));
        }
    }
}

/// A number without a sign or zeros that it does not need.
fn is_plain(text: &str, number: i32) -> bool {
    number.to_string() == text
}

/// That annotations and fields of a new Pod, or of a template, say the same.
pub(super) fn agreement(pod: &Value, path: &str, report: &mut Report) {
    let none = Map::new();
    let given = at(pod, "/metadata/annotations").as_object().unwrap_or(&none);
    let annotation = |key: &str| given.get(key).and_then(Value::as_str);
    let spec = at(pod, "/spec");
    let seccomp = "/securityContext/seccompProfile";
    if let (Some(value), Some(field)) = (annotation(SECCOMP_OF_POD), spec.pointer(seccomp)) {
        agree(value, field, "seccomp", &format!("{path}.securityContext.seccompProfile"), report);
    }
    let windows = text(spec, "/os/name") == "windows";
    for (path, container) in containers(spec, path) {
        let (name, path) = (text(container, "/name"), format!("{path}.securityContext"));
        if let (Some(value), Some(field)) =
            (annotation(&format!("{SECCOMP}{name}")), container.pointer(seccomp))
        {
            agree(value, field, "seccomp", &format!("{path}.seccompProfile"), report);
        }
        let armor = "/securityContext/appArmorProfile";
        let field = container.pointer(armor).or_else(|| spec.pointer(armor));
        if let (Some(value), Some(field), false) =
            (annotation(&format!("{APP_ARMOR}{name}")), field, windows)
        {
            agree(value, field, "apparmor", &format!("{path}.appArmorProfile"), report);
        }
    }
}

fn agree(annotation: &str, field: &Value, sort: &str, path: &str, report: &mut Report) {
    let local = annotation.strip_prefix("localhost/");
    let same = match text(field, "/type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => {
            annotation == "runtime/default" || (sort == "seccomp" && annotation == "docker/default")
        }
        "Localhost" => local.is_some(),
        _ => true,
    };
    let own = field.get("localhostProfile").and_then(Value::as_str);
    if !same {
        let why = format!("{sort} type in annotation and field must match");
        report.forbidden(format!("{path}.type"), &why);
    } else if text(field, "/type") == "Localhost" && local != own {
        let why = format!("{sort} profile in annotation and field must match");
        report.forbidden(format!("{path}.localhostProfile"), &why);
    }
}

/// What an update may not do to the annotations of a Pod.
pub(super) fn kept_annotations(pod: &Value, old: &Value, report: &mut Report) {
    let none = Map::new();
    let of = |pod| at(pod, "/metadata/annotations").as_object().unwrap_or(&none);
    let (now, before) = (of(pod), of(old));
    let sorts = [(APP_ARMOR, "AppArmor annotations"), (MIRROR, "mirror pod annotation")];
    let sort = |key: &str| {
        let fits = |(prefix, _): &&(&str, &str)| {
            key == *prefix || (prefix.ends_with('/') && key.starts_with(prefix))
        };
        sorts.iter().find(fits).map(|(_, words)| *words)
    };
    for (key, _) in before.iter().filter(|(key, value)| now.get(*key) != Some(*value)) {
        if let Some(words) = sort(key) {
            let why = format!("may not remove or update {words}");
            report.forbidden(format!("metadata.annotations[{key}]"), &why);
        }
    }
    for key in now.keys().filter(|key| !before.contains_key(*key)) {
        if let Some(words) = sort(key) {
            let path = format!("metadata.annotations[{key}]");
            report.forbidden(path, &format!("may not add {words}"));
        }
    }
}
