//! Whose the claims of a StatefulSet are: garbage collection removes them with their owner, so the
//! owner is what makes the retention policy come true. Pure.
//!
//! Claims that go with the set belong to it. Claims that go when the set becomes smaller belong to
//! their Pod once that is no longer wanted. Everything else belongs to nobody.

use homeostat::kube::Resource;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// Whether claims go with the set.
fn goes_with_set(set: &StatefulSet) -> bool {
    let policy =
        set.spec.as_ref().and_then(|s| s.persistent_volume_claim_retention_policy.as_ref());
    policy.is_some_and(|policy| policy.when_deleted.as_deref() == Some("Delete"))
}

/// Whether claims go with Pods that are too many.
fn goes_with_scale(set: &StatefulSet) -> bool {
    let policy =
        set.spec.as_ref().and_then(|s| s.persistent_volume_claim_retention_policy.as_ref());
    policy.is_some_and(|policy| policy.when_scaled.as_deref() == Some("Delete"))
}

fn controller_reference<T: Resource<DynamicType = ()>>(owner: &T) -> Option<OwnerReference> {
    let reference = owner.controller_owner_ref(&())?;
    Some(OwnerReference { block_owner_deletion: Some(true), ..reference })
}

/// The owners of a claim that is made for a wanted Pod.
pub(super) fn first_owners(set: &StatefulSet) -> Option<Vec<OwnerReference>> {
    controller_reference(set).filter(|_| goes_with_set(set)).map(|owner| vec![owner])
}

/// The owners that the claim of this Pod should have instead of those it has. `None` if nothing is
/// to be changed: also where somebody else manages it, or where it is left over from a namesake.
pub(super) fn owners(
    set: &StatefulSet,
    pod: &Pod,
    is_wanted: bool,
    claim: &PersistentVolumeClaim,
) -> Option<Vec<OwnerReference>> {
    let now = claim.metadata.owner_references.clone().unwrap_or_default();
    let (of_set, of_pod) = (controller_reference(set)?, controller_reference(pod)?);
    if is_stale(&now, &of_set) || is_stale(&now, &of_pod) {
        return None;
    }
    let is_ours = |reference: &OwnerReference| [&of_set.uid, &of_pod.uid].contains(&&reference.uid);
    let (ours, mut wanted): (Vec<_>, Vec<_>) = now.into_iter().partition(is_ours);
    let is_managed = wanted.iter().any(|reference| reference.controller == Some(true));
    let owner = match (is_wanted || !goes_with_scale(set), goes_with_set(set)) {
        _ if is_managed => None,
        (false, _) => Some(of_pod),
        (true, true) => Some(of_set),
        (true, false) => None,
    };
    let is_so = match (&owner, ours.as_slice()) {
        (None, []) => true,
        (Some(owner), [one]) => owner.uid == one.uid && one.controller == Some(true),
        _ => false,
    };
    wanted.extend(owner);
    (!is_so).then_some(wanted)
}

/// Whether the claim is about to go with an earlier Pod of that name: it must not be used again.
pub(super) fn is_going(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let (name, uid) = (pod.metadata.name.as_ref(), pod.metadata.uid.as_ref());
    let is_condemned =
        claim.metadata.owner_references.iter().flatten().any(|owner| {
            owner.kind == "Pod" && Some(&owner.name) == name && Some(&owner.uid) != uid
        });
    is_condemned || claim.metadata.deletion_timestamp.is_some()
}

/// Whether they name this owner with another uid.
fn is_stale(references: &[OwnerReference], owner: &OwnerReference) -> bool {
    references.iter().any(|reference| {
        (&reference.kind, &reference.name) == (&owner.kind, &owner.name)
            && reference.api_version == owner.api_version
            && reference.uid != owner.uid
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(deleted: &str, scaled: &str) -> StatefulSet {
        serde_json::from_value(json!({"metadata": {"name": "db", "uid": "set"}, "spec": {
            "selector": {}, "template": {}, "persistentVolumeClaimRetentionPolicy":
                {"whenDeleted": deleted, "whenScaled": scaled}}}))
        .unwrap()
    }

    fn pod(uid: &str) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "db-1", "uid": uid}})).unwrap()
    }

    fn claim(owners: &Value) -> PersistentVolumeClaim {
        serde_json::from_value(json!({"metadata": {"name": "c", "ownerReferences": owners}}))
            .unwrap()
    }

    fn reference(kind: &str, name: &str, uid: &str) -> Value {
        let version = if kind == "Pod" { "v1" } else { "apps/v1" };
        json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true})
    }

    /// The uids of the owners after the change, if one is needed.
    fn say(set: &StatefulSet, is_wanted: bool, owners_now: &Value) -> Option<Vec<String>> {
        let changed = owners(set, &pod("pod"), is_wanted, &claim(owners_now))?;
        Some(changed.into_iter().map(|owner| owner.uid).collect())
    }

    #[test]
    fn a_claim_belongs_to_what_it_goes_with() {
        let nobody = || json!([]);
        let of_set = || json!([reference("StatefulSet", "db", "set")]);
        let of_pod = || json!([reference("Pod", "db-1", "pod")]);
        let only = |uid: &str| Some(vec![uid.to_owned()]);
        for is_wanted in [true, false] {
            assert_eq!(say(&set("Retain", "Retain"), is_wanted, &nobody()), None);
            assert_eq!(say(&set("Retain", "Retain"), is_wanted, &of_set()), Some(vec![]));
            assert_eq!(say(&set("Delete", "Retain"), is_wanted, &nobody()), only("set"));
            assert_eq!(say(&set("Delete", "Retain"), is_wanted, &of_set()), None);
        }
        assert_eq!(say(&set("Retain", "Delete"), true, &nobody()), None);
        assert_eq!(say(&set("Retain", "Delete"), false, &nobody()), only("pod"));
        assert_eq!(say(&set("Retain", "Delete"), true, &of_pod()), Some(vec![]), "wanted again");
        assert_eq!(say(&set("Delete", "Delete"), true, &of_pod()), only("set"));
        assert_eq!(say(&set("Delete", "Delete"), false, &of_set()), only("pod"));
        assert_eq!(say(&set("Delete", "Delete"), false, &of_pod()), None);
    }

    #[test]
    fn a_claim_that_somebody_else_manages_is_left_to_them() {
        let other = reference("Backup", "b", "other");
        assert_eq!(say(&set("Delete", "Delete"), true, &json!([other])), None);
        let both = json!([other, reference("StatefulSet", "db", "set")]);
        assert_eq!(say(&set("Delete", "Delete"), true, &both), Some(vec!["other".to_owned()]));
        let namesake = json!([reference("StatefulSet", "db", "an earlier one")]);
        assert_eq!(say(&set("Delete", "Delete"), true, &namesake), None);
    }

    #[test]
    fn a_claim_that_goes_with_an_earlier_pod_is_not_used_again() {
        let condemned = claim(&json!([reference("Pod", "db-1", "earlier")]));
        let mut new = pod("new");
        assert!(is_going(&new, &condemned));
        new.metadata.uid = None;
        assert!(is_going(&new, &condemned), "also before there is the new one");
        assert!(!is_going(&new, &claim(&json!([reference("StatefulSet", "db", "set")]))));
    }
}
