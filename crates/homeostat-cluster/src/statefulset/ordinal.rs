//! One numbered Pod of a StatefulSet and its volume claims. Pure.

use homeostat::kube::ResourceExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};

use super::retention;
use crate::pod;

/// The label that names the revision a Pod was made from.
pub(super) const REVISION: &str = "controller-revision-hash";

/// The number of a Pod of this set by its name; `None` for a stranger.
pub(super) fn of(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let name = pod.metadata.name.as_deref()?;
    let number = name.strip_prefix(set.metadata.name.as_deref()?)?.strip_prefix('-')?;
    let ordinal: i32 = number.parse().ok()?;
    (number == ordinal.to_string()).then_some(ordinal)
}

/// The revision a Pod was made from.
pub(super) fn revision(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(REVISION).map(String::as_str)
}

/// The Pod of that number, made from `template`.
pub(super) fn pod(
    set: &StatefulSet,
    template: &PodTemplateSpec,
    ordinal: i32,
    revision: &str,
) -> Pod {
    let name = format!("{}-{ordinal}", set.name_any());
    let mut pod = pod::from_template(template);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert("statefulset.kubernetes.io/pod-name".into(), name.clone());
    labels.insert("apps.kubernetes.io/pod-index".into(), ordinal.to_string());
    labels.insert(REVISION.into(), revision.to_owned());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name.clone());
    spec.subdomain = set.spec.as_ref().and_then(|s| s.service_name.clone());
    let volumes = spec.volumes.get_or_insert_default();
    for template in set.spec.iter().flat_map(|s| s.volume_claim_templates.iter().flatten()) {
        let volume = template.name_any();
        volumes.retain(|existing| existing.name != volume);
        volumes.push(Volume {
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim_name(set, &volume, ordinal),
                read_only: None,
            }),
            name: volume,
            ..Volume::default()
        });
    }
    spec.volumes.take_if(|volumes| volumes.is_empty());
    pod.metadata.name = Some(name);
    pod
}

fn claim_name(set: &StatefulSet, volume: &str, ordinal: i32) -> String {
    format!("{volume}-{}-{ordinal}", set.name_any())
}

/// The claims of the Pod of that number, one per template.
pub(super) fn claims(set: &StatefulSet, ordinal: i32) -> Vec<PersistentVolumeClaim> {
    let Some(spec) = &set.spec else { return Vec::new() };
    let make = |template: &PersistentVolumeClaim| {
        let mut claim = template.clone();
        claim.metadata.name = Some(claim_name(set, &template.name_any(), ordinal));
        claim.metadata.namespace = set.namespace();
        let labels = claim.metadata.labels.get_or_insert_default();
        labels.extend(spec.selector.match_labels.clone().unwrap_or_default());
        claim.status = None;
        claim.metadata.owner_references = retention::first_owners(set);
        claim
    };
    spec.volume_claim_templates.iter().flatten().map(make).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set() -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": {"name": "db", "namespace": "default", "uid": "u"},
            "spec": {"selector": {"matchLabels": {"app": "db"}}, "serviceName": "db",
                "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": []}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]},
        }))
        .unwrap()
    }

    #[test]
    fn a_pod_has_its_number_its_name_and_its_claim() {
        let set = set();
        let template = set.spec.as_ref().unwrap().template.clone();
        let pod = pod(&set, &template, 2, "db-abc");
        assert_eq!(pod.name_any(), "db-2");
        assert_eq!(of(&set, &pod), Some(2));
        assert_eq!(revision(&pod), Some("db-abc"));
        assert_eq!(pod.labels()["apps.kubernetes.io/pod-index"], "2");
        let spec = pod.spec.unwrap();
        assert_eq!(spec.hostname.as_deref(), Some("db-2"));
        assert_eq!(spec.subdomain.as_deref(), Some("db"));
        let volume = &spec.volumes.unwrap()[0];
        assert_eq!(volume.persistent_volume_claim.as_ref().unwrap().claim_name, "data-db-2");
        let claim = &claims(&set, 2)[0];
        assert_eq!(claim.name_any(), "data-db-2");
        assert_eq!(claim.labels()["app"], "db");
        assert!(claim.owner_references().is_empty());
    }

    #[test]
    fn a_namesake_with_a_strange_number_is_no_member() {
        let named = |name: &str| {
            serde_json::from_value::<Pod>(json!({"metadata": {"name": name}})).unwrap()
        };
        assert_eq!(of(&set(), &named("db-01")), None);
        assert_eq!(of(&set(), &named("db-x")), None);
        assert_eq!(of(&set(), &named("other-1")), None);
    }
}
