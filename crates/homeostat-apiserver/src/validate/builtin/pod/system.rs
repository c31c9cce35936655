//! The operating system of a Pod, and what is not for it.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::container::is_false;
use super::{each_container, is_true, items};

const NOT_FOR_WINDOWS: &str = "cannot be set for a windows pod";
const NOT_FOR_LINUX: &str = "windows options cannot be set for a linux pod";

/// What a Pod for Windows may not have, below its spec.
const OF_PODS: &[&str] = &[
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];
/// The same, of the security context of a container.
const OF_CONTAINERS: &[&str] = &[
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// The name of the system, and what does not fit it.
pub(super) fn system(spec: &Value, place: &Place<'_>, report: &mut Report) {
    let Some(system) = spec.get("os") else { return };
    match text(system, "/name") {
        "" => report.required(place.field("os.name"), ""),
        "linux" => linux(spec, place, report),
        "windows" => windows(spec, place, report),
        other => report.unsupported(&place.field("os"), &other.into(), &["linux", "windows"]),
    }
}

fn linux(spec: &Value, place: &Place<'_>, report: &mut Report) {
    let path = "securityContext.windowsOptions";
    let has = |holder: &Value| !at(holder, "/securityContext/windowsOptions").is_null();
    if has(spec) {
        report.forbidden(place.field(path), NOT_FOR_LINUX);
    }
    each_container(spec, place, |container, place| {
        if has(container) {
            report.forbidden(place.field(path), NOT_FOR_LINUX);
        }
    });
}

fn windows(spec: &Value, place: &Place<'_>, report: &mut Report) {
    for path in OF_PODS {
        let value = path.split('.').fold(spec, |value, name| at_field(value, name));
        // Only whether it is there counts for those that may be left open.
        let is_set = match *path {
            "hostPID" | "hostIPC" => value == &Value::Bool(true),
            "securityContext.sysctls" => value.as_array().is_some_and(|list| !list.is_empty()),
            _ => !value.is_null(),
        };
        if is_set {
            report.forbidden(place.field(path), NOT_FOR_WINDOWS);
        }
    }
    each_container(spec, place, |container, place| {
        let Some(context) = container.get("securityContext") else { return };
        let place = place.field("securityContext");
        for field in OF_CONTAINERS.iter().filter(|field| context.get(field).is_some()) {
            report.forbidden(place.field(field), NOT_FOR_WINDOWS);
        }
    });
}

fn at_field<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// A Pod with users of its own shares nothing else with its node.
pub(super) fn own_users(spec: &Value, place: &Place<'_>, report: &mut Report) {
    if !is_false(spec, "hostUsers") {
        return;
    }
    let why = "when `hostUsers` is false";
    for (field, shown) in
        [("/hostNetwork", "hostNetwork"), ("/hostPID", "HostPID"), ("/hostIPC", "HostIPC")]
    {
        if is_true(spec, field) {
            report.forbidden(place.field(shown), why);
        }
    }
    each_container(spec, place, |container, place| {
        if !items(container, "volumeDevices").is_empty() {
            report.forbidden(place.field("volumeDevices"), why);
        }
    });
}
