//! Volumes, claims, storage classes, drivers, and quotas.

use homeostat_quota::Amounts;
use serde_json::Value;

use super::{has_annotation, keys, list, of_fraction, of_node_term, old_label, text};

const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const USE_CLASS_NAME: &str = "deprecated since v1.8; use \"storageClassName\" attribute instead";

/// Plugins of volumes that are no more.
pub(super) const OLD_PLUGINS: &[(&str, &str)] = &[
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];
/// Those of them that PersistentVolumes are warned of, in their order.
const OF_VOLUMES: [&str; 6] =
    ["cephfs", "photonPersistentDisk", "scaleIO", "storageOS", "glusterfs", "rbd"];

/// Whether a volume is of that plugin; one of them is written otherwise in warnings.
pub(super) fn is_of(volume: &Value, plugin: &str) -> bool {
    volume.get(if plugin == "storageOS" { "storageos" } else { plugin }).is_some()
}

pub(super) fn of_volume(volume: &Value, warnings: &mut Vec<String>) {
    let options = "volume.beta.kubernetes.io/mount-options";
    let use_options = "deprecated since v1.31; use \"mountOptions\" attribute instead";
    for (key, why) in [(OLD_CLASS, USE_CLASS_NAME), (options, use_options)] {
        if has_annotation(volume, key) {
            warnings.push(format!("metadata.annotations[{key}]: {why}"));
        }
    }
    if text(volume, "/spec/persistentVolumeReclaimPolicy") == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. \
             Instead, the recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let terms = list(volume, "/spec/nodeAffinity/required/nodeSelectorTerms");
    for (index, term) in terms.iter().enumerate() {
        let path = format!("spec.nodeAffinity.required.nodeSelectorTerms[{index}]");
        of_node_term(term, false, &path, warnings);
    }
    for plugin in OF_VOLUMES.iter().filter(|plugin| is_of(&volume["spec"], plugin)) {
        let why = OLD_PLUGINS.iter().find(|(name, _)| name == plugin).map_or("", |(_, why)| why);
        warnings.push(format!("spec.{plugin}: {why}"));
    }
}

pub(super) fn of_claim(claim: &Value, warnings: &mut Vec<String>) {
    if has_annotation(claim, OLD_CLASS) {
        warnings.push(format!("metadata.annotations[{OLD_CLASS}]: {USE_CLASS_NAME}"));
    }
    of_claim_spec(&claim["spec"], "spec", warnings);
}

pub(super) fn of_claim_spec(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    for field in ["requests", "limits"] {
        let path = format!("{path}.resources.{field}");
        of_fraction(&spec["resources"][field], "storage", &path, warnings);
    }
}

pub(super) fn of_stateful_set(set: &Value, exists: bool, warnings: &mut Vec<String>) {
    for (index, claim) in list(set, "/spec/volumeClaimTemplates").iter().enumerate() {
        let below = if exists { ".Spec" } else { "" };
        let path = format!("spec.volumeClaimTemplates[{index}]{below}");
        of_claim_spec(&claim["spec"], &path, warnings);
    }
    if set["spec"]["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0) {
        let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
        warnings.push(format!("spec.revisionHistoryLimit: {why}"));
    }
}

pub(super) fn of_class(class: &Value, warnings: &mut Vec<String>) {
    for (index, topology) in list(class, "/allowedTopologies").iter().enumerate() {
        for (term, expression) in list(topology, "/matchLabelExpressions").iter().enumerate() {
            if let Some(why) = old_label(text(expression, "/key")) {
                let path = format!("allowedTopologies[{index}].matchLabelExpressions[{term}].key");
                warnings.push(format!("{path}: {why}"));
            }
        }
    }
}

pub(super) fn of_capacity(capacity: &Value, warnings: &mut Vec<String>) {
    let topology = &capacity["nodeTopology"];
    for (index, expression) in list(topology, "/matchExpressions").iter().enumerate() {
        if let Some(why) = old_label(text(expression, "/key")) {
            let path = format!("nodeTopology.matchExpressions[{index}].key");
            warnings.push(format!("{path}: {} is {why}", text(expression, "/key")));
        }
    }
    for label in keys(&topology["matchLabels"]) {
        if let Some(why) = old_label(label) {
            warnings.push(format!("nodeTopology.matchLabels.{label}: {why}"));
        }
    }
}

pub(super) fn of_driver(driver: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    let requests = list(driver, "/spec/tokenRequests");
    let changed = old.is_none_or(|old| list(old, "/spec/tokenRequests") != requests);
    let unset = driver.pointer("/spec/serviceAccountTokenInSecrets").is_none();
    if !requests.is_empty() && changed && unset {
        warnings.push(
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to \
             true to prevent possible logging of tokens in volume attributes"
                .to_owned(),
        );
    }
}

/// A quota that lets more be requested than it lets limits be.
pub(super) fn of_quota(quota: &Value, warnings: &mut Vec<String>) {
    let hard = Amounts::read(quota.pointer("/spec/hard"));
    for name in ["cpu", "memory", "ephemeral-storage"] {
        let bare = (name != "ephemeral-storage").then(|| name.to_owned());
        let names = [Some(format!("requests.{name}")), bare];
        let request =
            names.into_iter().flatten().find_map(|name| hard.get(&name).map(|a| (name, a)));
        let limit_name = format!("limits.{name}");
        if let (Some((name, request)), Some(limit)) = (request, hard.get(&limit_name))
            && request > limit
        {
            warnings.push(format!(
                "ResourceQuota {name} ({request}) should be less than {limit_name} ({limit})"
            ));
        }
    }
}
