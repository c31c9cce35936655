//! Volumes, claims and storage classes.

use serde_json::Value;

use super::report::{Report, at, list, text};
use crate::decode::Quantity;
use crate::validate::name;

const MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

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

/// Fields of a PersistentVolume's spec that are not its source.
const NOT_A_SOURCE: &[&str] = &[
    "capacity",
    "accessModes",
    "claimRef",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "mountOptions",
    "volumeMode",
    "nodeAffinity",
    "volumeAttributesClassName",
];

fn access_modes(value: &Value, hint: &str, report: &mut Report) {
    let modes = list(value, "/spec/accessModes");
    if modes.is_empty() {
        report.required("spec.accessModes", hint);
    }
    for mode in modes.iter().filter_map(Value::as_str) {
        report.one_of("spec.accessModes", mode, MODES);
    }
    if modes.len() > 1 && modes.contains(&Value::from("ReadWriteOncePod")) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        report.forbidden("spec.accessModes", detail);
    }
}

pub(super) fn claim(value: &Value, old: Option<&Value>, report: &mut Report) {
    volume_mode(value, report);
    access_modes(value, "at least 1 access mode is required", report);
    let size = text(value, "/spec/resources/requests/storage");
    match size.parse::<Quantity>() {
        Err(_) => report.required("spec.resources[storage]", ""),
        Ok(amount) if amount.is_negative() || amount.is_zero() => {
            report.invalid("spec.resources[storage]", size, "must be greater than zero");
        }
        Ok(_) => {}
    }
    let class = text(value, "/spec/storageClassName");
    if !class.is_empty() {
        report.name("spec.storageClassName", class, name::dns_subdomain);
    }
    if let Some(old) = old {
        claim_update(value, old, report);
    }
}

fn claim_update(value: &Value, old: &Value, report: &mut Report) {
    let fixed = |claim: &Value| {
        let mut spec = at(claim, "/spec").clone();
        if let Some(spec) = spec.as_object_mut() {
            let bound = text(old, "/status/phase") == "Bound";
            if bound && let Some(resources) = spec.get_mut("resources") {
                resources.as_object_mut().map(|resources| resources.shift_remove("requests"));
            }
            spec.shift_remove("volumeAttributesClassName");
        }
        spec
    };
    let (mut after, before) = (fixed(value), fixed(old));
    // a claim is bound by naming its volume, and gets its class when it had none
    for field in ["volumeName", "storageClassName"] {
        if text(&before, &format!("/{field}")).is_empty()
            && let Some(after) = after.as_object_mut()
        {
            after.shift_remove(field);
            if let Some(kept) = before.get(field) {
                after.insert(field.to_owned(), kept.clone());
            }
        }
    }
    if after != before {
        report.forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims",
        );
    }
    let request =
        |claim: &Value| text(claim, "/spec/resources/requests/storage").parse::<Quantity>().ok();
    let capacity = text(old, "/status/capacity/storage").parse::<Quantity>().ok();
    if let (Some(new), Some(had), Some(capacity)) = (request(value), request(old), capacity)
        && new < had
        && new < capacity
    {
        report.forbidden(
            "spec.resources.requests.storage",
            "field can not be less than status.capacity",
        );
    }
}

/// `Filesystem` or `Block`.
fn volume_mode(value: &Value, report: &mut Report) {
    let mode = at(value, "/spec/volumeMode");
    if !matches!(mode.as_str(), None | Some("Block" | "Filesystem")) {
        report.unsupported("spec.volumeMode", mode, &["Block", "Filesystem"]);
    }
}

pub(super) fn volume(value: &Value, old: Option<&Value>, report: &mut Report) {
    let knows = |source: &&&str| at(value, "/spec").get(**source).is_some();
    if at(value, "/metadata/annotations").get(MOUNT_OPTIONS).is_some()
        && MOUNTED_WITH_OPTIONS.iter().find(knows).is_none()
    {
        let why = "may not specify mount options for this volume type";
        report.forbidden(format!("metadata.annotations.{MOUNT_OPTIONS}"), why);
    }
    access_modes(value, "", report);
    volume_mode(value, report);
    let capacity = at(value, "/spec/capacity");
    if capacity.is_null() {
        report.required("spec.capacity", "");
    }
    if capacity.get("storage").is_none() || capacity.as_object().is_some_and(|all| all.len() > 1) {
        report.unsupported("spec.capacity", capacity, &["storage"]);
    }
    let amount = text(capacity, "/storage").parse::<Quantity>().ok();
    if amount.is_some_and(|amount| amount <= "0".parse::<Quantity>().unwrap_or(amount)) {
        let shown = text(capacity, "/storage");
        report.invalid("spec.capacity[storage]", shown, "must be greater than zero");
    }
    let sources = |volume: &Value| -> Vec<(String, Value)> {
        let spec = at(volume, "/spec").as_object().into_iter().flatten();
        spec.filter(|(name, _)| !NOT_A_SOURCE.contains(&name.as_str()))
            .map(|(name, source)| (name.clone(), source.clone()))
            .collect()
    };
    let found = sources(value);
    match found.as_slice() {
        [] => report.required("spec", "must specify a volume type"),
        [_] => {}
        [_, extra, ..] => {
            report
                .forbidden(format!("spec.{}", extra.0), "may not specify more than 1 volume type");
        }
    }
    let policy = text(value, "/spec/persistentVolumeReclaimPolicy");
    report.one_of("spec.persistentVolumeReclaimPolicy", policy, &["Delete", "Recycle", "Retain"]);
    if let Some(old) = old
        && found != sources(old)
    {
        report.forbidden(
            "spec.persistentvolumesource",
            "spec.persistentvolumesource is immutable after creation",
        );
    }
}

pub(super) fn storage_class(value: &Value, old: Option<&Value>, report: &mut Report) {
    if text(value, "/provisioner").is_empty() {
        report.required("provisioner", "");
    }
    let provisioner = text(value, "/provisioner").to_lowercase();
    if !provisioner.is_empty() {
        for problem in crate::validate::name::qualified(&provisioner) {
            report.invalid("provisioner", provisioner.as_str(), problem);
        }
    }
    report.one_of("reclaimPolicy", text(value, "/reclaimPolicy"), &["Delete", "Retain"]);
    let modes = ["Immediate", "WaitForFirstConsumer"];
    report.one_of("volumeBindingMode", text(value, "/volumeBindingMode"), &modes);
    if let Some(old) = old {
        report.immutable(value, Some(old), "/parameters");
        report.immutable(value, Some(old), "/provisioner");
        report.immutable(value, Some(old), "/reclaimPolicy");
        report.immutable(value, Some(old), "/volumeBindingMode");
    }
}
