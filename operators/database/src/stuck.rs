//! Pods that hold an update up. The controller of a StatefulSet replaces a Pod only once it is
//! ready, so one that cannot start for the sake of what was asked for before (an image that is not
//! to be had) would stay for ever, whatever is asked for now. Pure.

use std::sync::Arc;

use homeostat::k8s_openapi::api::apps::v1::StatefulSet;
use homeostat::k8s_openapi::api::core::v1::Pod;
use homeostat::pod;

/// The label in which that controller says what a Pod was made from.
const REVISION: &str = "controller-revision-hash";

/// The Pods of this StatefulSet that are in trouble and were made from an older template.
pub(crate) fn on_an_older_wish<'a>(
    set: &'a StatefulSet,
    pods: &'a [Arc<Pod>],
) -> impl Iterator<Item = &'a Pod> {
    let status = set.status.as_ref();
    let seen = status.filter(|status| status.observed_generation >= set.metadata.generation);
    let newest = seen.and_then(|status| status.update_revision.as_ref());
    pods.iter().map(AsRef::as_ref).filter(move |pod| {
        let revision = pod.metadata.labels.as_ref().and_then(|labels| labels.get(REVISION));
        newest.is_some() && revision != newest && is_of(set, pod) && pod::trouble(pod).is_some()
    })
}

/// Whether that StatefulSet made the Pod.
fn is_of(set: &StatefulSet, pod: &Pod) -> bool {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.any(|owner| {
        owner.controller == Some(true) && Some(&owner.uid) == set.metadata.uid.as_ref()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(generation: i64) -> StatefulSet {
        let status = json!({ "observedGeneration": 2, "replicas": 1, "updateRevision": "new" });
        let metadata = json!({ "uid": "1", "generation": generation });
        serde_json::from_value(json!({ "metadata": metadata, "spec": {
            "selector": {}, "serviceName": "x", "template": {} }, "status": status }))
        .unwrap()
    }

    fn pod(revision: &str, owner: &str, state: &Value) -> Arc<Pod> {
        let owner = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x",
            "uid": owner, "controller": true });
        let metadata = json!({ "labels": { REVISION: revision }, "ownerReferences": [owner] });
        let container = json!({ "name": "c", "image": "i", "imageID": "", "ready": false,
            "restartCount": 0, "state": state });
        let status = json!({ "containerStatuses": [container] });
        Arc::new(serde_json::from_value(json!({ "metadata": metadata, "status": status })).unwrap())
    }

    #[test]
    fn only_a_pod_in_trouble_for_the_sake_of_an_older_wish_is_in_the_way() {
        let absent = json!({ "waiting": { "reason": "ErrImagePull" } });
        let count = |set: &StatefulSet, pod: Arc<Pod>| on_an_older_wish(set, &[pod]).count();
        assert_eq!(count(&set(2), pod("old", "1", &absent)), 1);
        assert_eq!(count(&set(2), pod("new", "1", &absent)), 0, "it is as declared");
        assert_eq!(count(&set(2), pod("old", "1", &json!({ "running": {} }))), 0, "it runs");
        assert_eq!(count(&set(2), pod("old", "2", &absent)), 0, "it is somebody else's");
        assert_eq!(count(&set(3), pod("old", "1", &absent)), 0, "the revisions are older ones");
    }
}
