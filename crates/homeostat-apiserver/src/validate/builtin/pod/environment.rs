//! The environment of a container: names, and where the values come from.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::profiles::no_backsteps;
use super::{each_container, items};
use crate::decode::Quantity;
use crate::validate::name;

/// The fields of a Pod that can be values, besides single labels and annotations.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// The fields of a Pod that have a name outside of it.
const LABELLED: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const HUGE: [&str; 2] = ["requests.hugepages-", "limits.hugepages-"];
const SIZES: &[&str] =
    &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
const TOO_MANY: &str = "may not have more than one field specified at a time";

/// A name of a variable: anything that can be printed, without an equals sign.
fn variable_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    if name.contains('=') || name.chars().any(|c| !(' '..='~').contains(&c)) {
        let why = "a valid environment variable name must consist only of printable ASCII \
                   characters other than '='";
        return vec![why.to_owned()];
    }
    Vec::new()
}

/// `env` and `envFrom`.
pub(super) fn environment(container: &Value, place: &Place<'_>, report: &mut Report) {
    let variables = place.field("env");
    for (index, variable) in items(container, "env").iter().enumerate() {
        let place = variables.item(index);
        report.name(&place.field("name"), text(variable, "/name"), variable_name);
        if let Some(from) = variable.get("valueFrom") {
            value_from(from, text(variable, "/value"), &place.field("valueFrom"), report);
        }
    }
    let sources = place.field("envFrom");
    for (index, source) in items(container, "envFrom").iter().enumerate() {
        let place = sources.item(index);
        let prefix = text(source, "/prefix");
        if !prefix.is_empty() {
            report.problems(&place.field("prefix"), prefix, variable_name);
        }
        let mut count = 0;
        for field in ["configMapRef", "secretRef"] {
            let Some(found) = source.get(field) else { continue };
            count += 1;
            let name = text(found, "/name");
            // More may follow a name that ends with a dash.
            let whole = name.strip_suffix('-').map(|name| format!("{name}a"));
            let place = place.field(field);
            if name.is_empty() {
                report.required(place.field("name"), "");
            } else {
                for problem in name::dns_subdomain(whole.as_deref().unwrap_or(name)) {
                    report.invalid(place.field("name"), name, problem);
                }
            }
        }
        match count {
            0 => {
                report.invalid(sources, "", "must specify one of: `configMapRef` or `secretRef`");
            }
            1 => {}
            _ => report.invalid(sources, "", TOO_MANY),
        }
    }
}

fn value_from(from: &Value, value: &str, place: &Place<'_>, report: &mut Report) {
    let mut count = 0;
    if let Some(field) = from.get("fieldRef") {
        count += 1;
        field_of_pod(field, FIELDS, &place.field("fieldRef"), report);
    }
    if let Some(resource) = from.get("resourceFieldRef") {
        count += 1;
        resource_of_container(resource, false, &place.field("resourceFieldRef"), report);
    }
    for field in ["configMapKeyRef", "secretKeyRef"] {
        let Some(found) = from.get(field) else { continue };
        count += 1;
        let place = place.field(field);
        report.problems(&place.field("name"), text(found, "/name"), name::dns_subdomain);
        report.name(&place.field("key"), text(found, "/key"), name::config_key);
    }
    if let Some(file) = from.get("fileKeyRef") {
        count += 1;
        let place = place.field("fileKeyRef");
        report.name(&place.field("key"), text(file, "/key"), variable_name);
        report.dns_label(&place.field("volumeName"), text(file, "/volumeName"));
        match text(file, "/path") {
            "" => report.required(place.field("path"), ""),
            path => no_backsteps(path, &place.field("path"), report),
        }
    }
    if count == 0 {
        let why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                   `secretKeyRef` or `fileKeyRef`";
        report.invalid(place, "", why);
    } else if !value.is_empty() {
        report.invalid(place, "", "may not be specified when `value` is not empty");
    } else if count > 1 {
        report.invalid(place, "", TOO_MANY);
    }
}

/// A field of the Pod, out of the allowed ones.
pub(super) fn field_of_pod(
    field: &Value,
    allowed: &[&str],
    place: &Place<'_>,
    report: &mut Report,
) {
    let (version, path) = (text(field, "/apiVersion"), text(field, "/fieldPath"));
    if version.is_empty() {
        report.required(place.field("apiVersion"), "");
        return;
    }
    if path.is_empty() {
        report.required(place.field("fieldPath"), "");
        return;
    }
    let entry = path.strip_suffix("']").and_then(|path| path.split_once("['"));
    let entry = entry.filter(|(map, _)| !map.is_empty());
    let unknown = match entry {
        _ if version != "v1" => Some(format!("unsupported pod version: {version}")),
        Some(("metadata.annotations" | "metadata.labels", _)) => None,
        Some(_) => Some(format!("field label does not support subscript: {path}")),
        None if LABELLED.contains(&path) || path == "spec.host" => None,
        None => Some(format!("field label not supported: {path}")),
    };
    if let Some(why) = unknown {
        let why = format!("error converting fieldPath: {why}");
        report.invalid(place.field("fieldPath"), path, why);
        return;
    }
    match entry {
        Some(("metadata.annotations", key)) => {
            report.problems(place, &key.to_lowercase(), name::qualified);
        }
        Some((_, key)) => report.problems(place, key, name::qualified),
        None => {
            let path = if path == "spec.host" { "spec.nodeName" } else { path };
            if !allowed.contains(&path) {
                report.unsupported(&place.field("fieldPath"), &path.into(), allowed);
            }
        }
    }
}

/// What a container asks for or may take at most; a file has to say of which container.
pub(super) fn resource_of_container(
    field: &Value,
    is_file: bool,
    place: &Place<'_>,
    report: &mut Report,
) {
    let resource = text(field, "/resource");
    let huge = HUGE.iter().any(|prefix| resource.starts_with(prefix));
    if is_file && text(field, "/containerName").is_empty() {
        report.required(place.field("containerName"), "");
    } else if resource.is_empty() {
        report.required(place.field("resource"), "");
    } else if !RESOURCES.contains(&resource) && !huge {
        report.unsupported(&place.field("resource"), &resource.into(), RESOURCES);
    }
    let Ok(divisor) = text(field, "/divisor").parse::<Quantity>() else { return };
    let (sizes, words) = match resource.split_once('.') {
        Some((_, "cpu")) => (&["1m", "1"][..], "cpu"),
        Some((_, "memory")) => (SIZES, "memory"),
        Some((_, "ephemeral-storage")) => (SIZES, "local ephemeral storage"),
        _ if huge => (SIZES, "hugepages"),
        _ => return,
    };
    if !divisor.is_zero() && !sizes.contains(&divisor.to_string().as_str()) {
        let sizes = if words == "cpu" { "1m and 1".to_owned() } else { sizes.join(", ") };
        let why = format!("only divisor's values {sizes} are supported with the {words} resource");
        report.invalid(place.field("divisor"), resource, why);
    }
}

/// Values that come from files are in volumes of the Pod that begin empty.
pub(super) fn files(spec: &Value, place: &Place<'_>, report: &mut Report) {
    each_container(spec, place, |container, place| {
        let place = place.field("env");
        for (index, variable) in items(container, "env").iter().enumerate() {
            let file = at(variable, "/valueFrom/fileKeyRef");
            if file.is_null() {
                continue;
            }
            let name = text(file, "/volumeName");
            let named = |volume: &&Value| text(volume, "/name") == name;
            let place = place.item(index);
            let place = place.field("valueFrom.fileKeyRef.volumeName");
            match items(spec, "volumes").iter().rfind(named) {
                None => report.not_found(place, name),
                Some(volume) if volume.get("emptyDir").is_none() => {
                    report.invalid(place, name, "referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    });
}
