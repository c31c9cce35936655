//! What a container sees of the volumes: as directories, or as devices.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::profiles::relative;
use super::volumes::Volume;
use super::{is_true, items};

const PROPAGATIONS: &[&str] = &["Bidirectional", "HostToContainer", "None"];
const READ_ONLY: &[&str] = &["Disabled", "Enabled", "IfPossible"];

/// Both lists of a container.
pub(super) fn mounts(
    container: &Value,
    volumes: &[Volume<'_>],
    place: &Place<'_>,
    report: &mut Report,
) {
    let (mounts, devices) = (items(container, "volumeMounts"), items(container, "volumeDevices"));
    let whole = place.field("volumeMounts");
    for (index, mount) in mounts.iter().enumerate() {
        let place = whole.item(index);
        let (name, path) = (text(mount, "/name"), text(mount, "/mountPath"));
        if name.is_empty() {
            report.required(place.field("name"), "");
        }
        if !volumes.iter().any(|volume| volume.name == name) {
            report.not_found(place.field("name"), name);
        }
        if path.is_empty() {
            report.required(place.field("mountPath"), "");
        }
        if mounts[..index].iter().any(|other| text(other, "/mountPath") == path) {
            report.invalid(place.field("mountPath"), path, "must be unique");
        }
        if has(devices, "name", name) {
            let why = "must not already exist in volumeDevices";
            report.invalid(place.field("name"), name, why);
        }
        if has(devices, "devicePath", path) {
            let why = "must not already exist as a path in volumeDevices";
            report.invalid(place.field("mountPath"), path, why);
        }
        // What follows is said to be wrong with all mounts.
        let (sub, expression) = (text(mount, "/subPath"), text(mount, "/subPathExpr"));
        relative(sub, &whole.field("subPath"), report);
        if !expression.is_empty() {
            if !sub.is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                report.invalid(place.field("subPathExpr"), expression, why);
            }
            relative(expression, &whole.field("subPathExpr"), report);
        }
        propagation(mount, container, &whole, report);
    }
    self::devices(devices, mounts, volumes, &place.field("volumeDevices"), report);
}

fn has(items: &[Value], field: &str, wanted: &str) -> bool {
    items.iter().any(|item| item.get(field).and_then(Value::as_str).unwrap_or_default() == wanted)
}

fn propagation(mount: &Value, container: &Value, place: &Place<'_>, report: &mut Report) {
    let mode = at(mount, "/mountPropagation");
    report.known(&place.field("mountPropagation"), mode, PROPAGATIONS);
    if mode == "Bidirectional" && !is_true(container, "/securityContext/privileged") {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        report.forbidden(place.field("mountPropagation"), why);
    }
    let place = place.field("recursiveReadOnly");
    let read_only = at(mount, "/recursiveReadOnly");
    match read_only.as_str() {
        Some("Enabled" | "IfPossible") => {
            if !is_true(mount, "/readOnly") {
                report.forbidden(place, "may only be specified when readOnly is true");
            }
            if !matches!(mode.as_str(), None | Some("None")) {
                let why = "may only be specified when mountPropagation is None or not specified";
                report.forbidden(place, why);
            }
        }
        _ => report.known(&place, read_only, READ_ONLY),
    }
}

fn devices(
    devices: &[Value],
    mounts: &[Value],
    volumes: &[Volume<'_>],
    place: &Place<'_>,
    report: &mut Report,
) {
    let climbs = |path: &str| path.split('/').any(|part| part == "..");
    for (index, device) in devices.iter().enumerate() {
        let place = place.item(index);
        let (name, path) = (text(device, "/name"), text(device, "/devicePath"));
        let before = &devices[..index];
        if name.is_empty() {
            report.required(place.field("name"), "");
        } else if has(before, "name", name) {
            report.invalid(place.field("name"), name, "must be unique");
        }
        match volumes.iter().find(|volume| volume.name == name) {
            None => report.not_found(place.field("name"), name),
            Some(volume) if !volume.is_claim => {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral \
                           for block mode";
                report.invalid(place.field("name"), name, why);
            }
            Some(_) => {}
        }
        if path.is_empty() {
            report.required(place.field("devicePath"), "");
        }
        if climbs(path) {
            let why = "can not contain backsteps ('..')";
            report.invalid(place.field("devicePath"), path, why);
        } else if has(before, "devicePath", path) {
            report.invalid(place.field("devicePath"), path, "must be unique");
        }
        if has(mounts, "name", name) {
            let why = "must not already exist in volumeMounts";
            report.invalid(place.field("name"), name, why);
        }
        if has(mounts, "mountPath", path) {
            let why = "must not already exist as a path in volumeMounts";
            report.invalid(place.field("devicePath"), path, why);
        }
    }
}
