//! Which volume suits a claim, and what a volume made for it looks like. Pure.

use std::path::Path;

use homeostat::kube::ResourceExt;
use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeSpec,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::PROVISIONED_BY;
use crate::selector;

/// Bytes of a quantity such as `1Gi`; 0 for what cannot be read.
pub(super) fn bytes(quantity: Option<&Quantity>) -> u128 {
    let Some(text) = quantity.map(|quantity| quantity.0.as_str()) else { return 0 };
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u128 = match unit {
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "Pi" => 1 << 50,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "P" => 1_000_000_000_000_000,
        _ => 1,
    };
    number.parse::<u128>().map_or(0, |number| number.saturating_mul(factor))
}

/// Whether the volume is reserved for exactly this claim.
pub(super) fn is_reserved_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let Some(reference) = volume.spec.as_ref().and_then(|s| s.claim_ref.as_ref()) else {
        return false;
    };
    reference.name == claim.metadata.name
        && reference.namespace == claim.metadata.namespace
        && (reference.uid.is_none() || reference.uid == claim.metadata.uid)
}

/// The smallest free volume that gives the claim what it asks for.
pub(super) fn find<'a>(
    claim: &PersistentVolumeClaim,
    volumes: impl IntoIterator<Item = &'a PersistentVolume>,
) -> Option<&'a PersistentVolume> {
    let spec = claim.spec.as_ref()?;
    let wanted = spec.resources.as_ref().and_then(|r| r.requests.as_ref()?.get("storage"));
    let capacity = |volume: &PersistentVolume| {
        bytes(volume.spec.as_ref().and_then(|s| s.capacity.as_ref()?.get("storage")))
    };
    let class = |name: Option<&String>| name.map(String::as_str).unwrap_or_default().to_owned();
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    volumes
        .into_iter()
        .filter(|volume| {
            let Some(offer) = &volume.spec else { return false };
            let free = offer.claim_ref.is_none() || is_reserved_for(volume, claim);
            let offered = offer.access_modes.as_deref().unwrap_or_default();
            let selected = spec
                .selector
                .as_ref()
                .is_none_or(|s| selector::matches(s, volume.metadata.labels.as_ref()));
            free && volume.metadata.deletion_timestamp.is_none()
                && class(offer.storage_class_name.as_ref())
                    == class(spec.storage_class_name.as_ref())
                && modes.iter().all(|mode| offered.contains(mode))
                && capacity(volume) >= bytes(wanted)
                && selected
        })
        .min_by_key(|volume| (!is_reserved_for(volume, claim), capacity(volume), volume.name_any()))
}

/// The reference by which a volume is reserved.
pub(super) fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("PersistentVolumeClaim".into()),
        name: claim.metadata.name.clone(),
        namespace: claim.metadata.namespace.clone(),
        uid: claim.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// A new local volume for a claim, in a directory of its own under `root`.
pub(super) fn provision(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    root: &Path,
) -> PersistentVolume {
    let name = format!("pvc-{}", claim.uid().unwrap_or_default());
    let spec = claim.spec.clone().unwrap_or_default();
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            annotations: Some([(PROVISIONED_BY.to_owned(), class.provisioner.clone())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            capacity: spec.resources.and_then(|resources| resources.requests),
            access_modes: spec.access_modes,
            claim_ref: Some(reference(claim)),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
            storage_class_name: Some(class.name_any()),
            volume_mode: spec.volume_mode,
            host_path: Some(HostPathVolumeSource {
                path: root.join(name).to_string_lossy().into_owned(),
                type_: Some("DirectoryOrCreate".into()),
            }),
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn volume(name: &str, size: &str, claim: Option<&str>) -> PersistentVolume {
        let reference =
            claim.map(|name| json!({"name": name, "namespace": "default", "uid": name}));
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {
            "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "claimRef": reference,
            "storageClassName": "local"}}))
        .unwrap()
    }

    #[test]
    fn a_claim_gets_the_smallest_free_volume_that_is_large_enough() {
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({
            "metadata": {"name": "c", "namespace": "default", "uid": "c"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "resources": {"requests": {"storage": "1Gi"}}}}))
        .unwrap();
        let volumes = [
            volume("taken", "1Gi", Some("other")),
            volume("small", "500Mi", None),
            volume("large", "10Gi", None),
            volume("right", "2Gi", None),
        ];
        assert_eq!(find(&claim, &volumes).map(ResourceExt::name_any).as_deref(), Some("right"));
        let reserved = [volume("right", "2Gi", None), volume("mine", "5Gi", Some("c"))];
        assert_eq!(find(&claim, &reserved).map(ResourceExt::name_any).as_deref(), Some("mine"));
    }

    #[test]
    fn quantities_are_read_in_both_kinds_of_units() {
        assert_eq!(bytes(Some(&Quantity("1Ki".into()))), 1024);
        assert_eq!(bytes(Some(&Quantity("2k".into()))), 2000);
        assert_eq!(bytes(None), 0);
    }
}
