//! PersistentVolumes, by themselves and as part of a VolumeAttachment.

use serde_json::Value;

use super::devices::driver;
use super::node_selector::node_selector;
use super::report::{Report, at, list, text};
use super::volume_source;
use crate::decode::Quantity;
use crate::go::{self, internal};
use crate::validate::name;

pub(super) const MODES: &[&str] =
    &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// An annotation that was a field later, and the sources that know it.
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
const MOUNTED_WITH_OPTIONS: &[&str] = &[
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

/// The longest `name:portal` of a volume that names its initiator.
const LONGEST_PORTAL: usize = 64;

/// Access modes of a volume or of a claim.
pub(super) fn access_modes(spec: &Value, path: &str, hint: &str, report: &mut Report) {
    let modes = list(spec, "/accessModes");
    let path = format!("{path}.accessModes");
    if modes.is_empty() {
        report.required(path.as_str(), hint);
    }
    let (mut alone, mut shared) = (false, false);
    for mode in modes {
        match mode.as_str() {
            Some("ReadWriteOncePod") => alone = true,
            Some(known) if MODES.contains(&known) => shared = true,
            _ => report.unsupported(&path, mode, MODES),
        }
    }
    if alone && shared {
        report.forbidden(path, "may not use ReadWriteOncePod with other access modes");
    }
}

/// `Filesystem` or `Block`.
pub(super) fn volume_mode(spec: &Value, path: &str, report: &mut Report) {
    let mode = at(spec, "/volumeMode");
    if !matches!(mode.as_str(), None | Some("Block" | "Filesystem")) {
        report.unsupported(&format!("{path}.volumeMode"), mode, &["Block", "Filesystem"]);
    }
}

/// The name of a class, if one is said.
pub(super) fn class_name(spec: &Value, field: &str, path: &str, report: &mut Report) {
    let class = text(spec, &format!("/{field}"));
    if !class.is_empty() {
        report.name(&format!("{path}.{field}"), class, name::dns_subdomain);
    }
}

pub(super) fn volume(value: &Value, old: Option<&Value>, report: &mut Report) {
    let spec = at(value, "/spec");
    if at(value, "/metadata/annotations").get(MOUNT_OPTIONS).is_some()
        && !MOUNTED_WITH_OPTIONS.iter().any(|source| spec.get(*source).is_some())
    {
        let why = "may not specify mount options for this volume type";
        report.forbidden(format!("metadata.annotations.{MOUNT_OPTIONS}"), why);
    }
    access_modes(spec, "spec", "", report);
    capacity(at(spec, "/capacity"), report);
    let policy = text(spec, "/persistentVolumeReclaimPolicy");
    report.one_of("spec.persistentVolumeReclaimPolicy", policy, &["Delete", "Recycle", "Retain"]);
    let affinity = spec.get("nodeAffinity");
    match affinity.map(|affinity| affinity.get("required")) {
        Some(Some(required)) => node_selector(required, "spec.nodeAffinity.required", report),
        Some(None) => {
            let why = "must specify required node constraints";
            report.required("spec.nodeAffinity.required", why);
        }
        None if volume_source::first(spec) == Some("local") => {
            report.required("spec.nodeAffinity", "Local volume requires node affinity");
        }
        None => {}
    }
    volume_source::check(spec, "spec", report);
    portal(spec, text(value, "/metadata/name"), "spec", report);
    if policy == "Recycle" && is_root(text(spec, "/hostPath/path")) {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        report.forbidden("spec.persistentVolumeReclaimPolicy", why);
    }
    class_name(spec, "storageClassName", "spec", report);
    volume_mode(spec, "spec", report);
    attributes_class(spec, report);
    if let Some(old) = old {
        update(spec, at(old, "/spec"), report);
    }
}

/// Whether a path leads to everything.
fn is_root(path: &str) -> bool {
    let depth = path.split('/').fold(0_usize, |depth, part| match part {
        "" | "." => depth,
        ".." => depth.saturating_sub(1),
        _ => depth + 1,
    });
    path.starts_with('/') && depth == 0
}

/// What a volume keeps.
fn update(spec: &Value, old: &Value, report: &mut Report) {
    let mut after = spec.clone();
    // How a volume is made larger may be said later.
    if at(old, "/csi").is_object()
        && at(old, "/csi/controllerExpandSecretRef").is_null()
        && let Some(csi) = after.pointer_mut("/csi").and_then(Value::as_object_mut)
    {
        csi.shift_remove("controllerExpandSecretRef");
    }
    if !volume_source::given(&after).eq(volume_source::given(old)) {
        let (before, now) = (volume_source::shown(old), volume_source::shown(&after));
        let changes = go::difference_of_forms(&before, &now);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{changes}");
        report.forbidden("spec.persistentvolumesource", &detail);
    }
    // These two are told without the place they are in.
    if spec.get("volumeMode") != old.get("volumeMode") {
        report.invalid("volumeMode", at(spec, "/volumeMode").clone(), "field is immutable");
    }
    let class = "volumeAttributesClassName";
    if old.get(class).is_some() && spec.get(class).is_none() {
        let why = "update from non-nil value to nil is forbidden";
        report.forbidden(format!("spec.{class}"), why);
    }
    let before = at(old, "/nodeAffinity");
    if !before.is_null()
        && renamed_like(before, at(spec, "/nodeAffinity")) != *at(spec, "/nodeAffinity")
    {
        let detail = "field is immutable, except for updating from beta label to GA";
        let shown =
            internal::form("*io.k8s.api.core.v1.VolumeNodeAffinity", at(spec, "/nodeAffinity"));
        report.invalid("nodeAffinity", shown, detail);
    }
}

/// Labels of nodes that have another name today.
const RENAMED: &[(&str, &str)] = &[
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

/// Node affinity in the words of today where the new one has them. A label that has no other name may
/// also lose its name, as far as this rule goes.
fn renamed_like(before: &Value, new: &Value) -> Value {
    let mut before = before.clone();
    let terms = before.pointer_mut("/required/nodeSelectorTerms").and_then(Value::as_array_mut);
    let new = list(new, "/required/nodeSelectorTerms");
    for (term, new) in terms.into_iter().flatten().zip(new) {
        for field in ["matchExpressions", "matchFields"] {
            let rules = term.get_mut(field).and_then(Value::as_array_mut);
            let new = list(new, &format!("/{field}"));
            for (rule, new) in rules.into_iter().flatten().zip(new) {
                let name = RENAMED.iter().find(|(before, _)| text(rule, "/key") == *before);
                if name.map_or("", |(_, now)| now) == text(new, "/key") {
                    rule["key"] = at(new, "/key").clone();
                }
            }
        }
    }
    before
}

fn capacity(capacity: &Value, report: &mut Report) {
    let given = capacity.as_object();
    if given.is_none_or(serde_json::Map::is_empty) {
        report.required("spec.capacity", "");
    }
    if capacity.get("storage").is_none() || given.is_some_and(|all| all.len() > 1) {
        report.unsupported("spec.capacity", capacity, &["storage"]);
    }
    for (name, shown) in given.into_iter().flatten() {
        let shown = shown.as_str().unwrap_or_default();
        let Ok(amount) = shown.parse::<Quantity>() else { continue };
        let path = format!("spec.capacity[{name}]");
        if amount.is_negative() {
            let units = i64::try_from(amount.units()).unwrap_or(i64::MIN);
            report.invalid(path.as_str(), units, "must be a valid resource quantity");
        }
        if amount.is_negative() || amount.is_zero() {
            report.invalid(path, shown, "must be greater than zero");
        }
    }
}

/// What an initiator of its own is found by must be short.
fn portal(spec: &Value, volume: &str, path: &str, report: &mut Report) {
    let portal = text(spec, "/iscsi/targetPortal");
    if spec.pointer("/iscsi/initiatorName").is_some()
        && volume_source::first(spec) == Some("iscsi")
        && volume.len() + 1 + portal.len() > LONGEST_PORTAL
    {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters \
                   if iscsi.initiatorName is specified.";
        report.invalid(format!("{path}.iscsi.targetportal"), portal, why);
    }
}

fn attributes_class(spec: &Value, report: &mut Report) {
    match spec.get("volumeAttributesClassName").and_then(Value::as_str) {
        None => return,
        Some("") => {
            let why = "an empty string is disallowed";
            report.required("spec.volumeAttributesClassName", why);
        }
        Some(_) => class_name(spec, "volumeAttributesClassName", "spec", report),
    }
    if spec.get("csi").is_none() {
        let why = "has to be specified when using volumeAttributesClassName";
        report.required("spec.csi", why);
    }
}

/// A volume that only its attachment knows.
fn inline(spec: &Value, path: &str, report: &mut Report) {
    let here = "in the context of inline volumes";
    for field in ["claimRef", "capacity", "nodeAffinity", "storageClassName"] {
        let empty = match at(spec, &format!("/{field}")) {
            Value::Object(map) => map.is_empty() && field == "capacity",
            Value::String(text) => text.is_empty(),
            other => other.is_null(),
        };
        if !empty {
            report.forbidden(format!("{path}.{field}"), &format!("may not be specified {here}"));
        }
    }
    if spec.get("csi").is_none() {
        report.required(format!("{path}.csi"), &format!("has to be specified {here}"));
    }
    access_modes(spec, path, "", report);
    let policy = text(spec, "/persistentVolumeReclaimPolicy");
    if !matches!(policy, "" | "Retain") {
        let why = format!("may only be Retain {here}");
        report.forbidden(format!("{path}.persistentVolumeReclaimPolicy"), &why);
    }
    volume_source::check(spec, path, report);
    portal(spec, "", path, report);
    if volume_source::first(spec) == Some("local") {
        let why = "Local volume requires node affinity";
        report.required(format!("{path}.nodeAffinity"), why);
    }
    if spec.get("volumeMode").is_some_and(|mode| mode != "Filesystem") {
        let why = format!("may not specify volumeMode other than Filesystem {here}");
        report.forbidden(format!("{path}.volumeMode"), &why);
    }
}

/// What is attached to which node, by whom.
pub(super) fn attachment(value: &Value, old: Option<&Value>, report: &mut Report) {
    driver(text(value, "/spec/attacher"), "spec.attacher", report);
    let source = at(value, "/spec/source");
    let exactly_one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let volume = source.get("persistentVolumeName").and_then(Value::as_str);
    match (source.get("inlineVolumeSpec"), volume) {
        (None, None) => report.required("spec.source", exactly_one),
        (Some(_), Some(_)) => report.forbidden("spec.source", exactly_one),
        (None, Some("")) => {
            let why = "must specify non empty persistentVolumeName";
            report.required("spec.source.persistentVolumeName", why);
        }
        (None, Some(_)) => {}
        (Some(spec), None) => inline(spec, "spec.source.inlineVolumeSpec", report),
    }
    for problem in volume.map(name::dns_subdomain).into_iter().flatten() {
        let shown = volume.unwrap_or_default();
        report.invalid("spec.source.persistentVolumeName", shown, problem);
    }
    let node = text(value, "/spec/nodeName");
    for problem in name::dns_subdomain(node) {
        report.invalid("spec.nodeName", node, problem);
    }
    report.immutable(value, old, "/spec");
}
