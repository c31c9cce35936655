//! Which revision of the template each Pod of a StatefulSet comes from. Pure.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};

use super::ordinal;
use crate::history::{self, Revisions};

/// The name of the revision that Pods come from before they are updated.
pub(super) fn current(revisions: &Revisions, set: &StatefulSet) -> String {
    let named = set.status.as_ref().and_then(|s| s.current_revision.clone());
    named.filter(|name| revisions.named(name).is_some()).unwrap_or_else(|| revisions.update())
}

/// The template of a revision; the set's own for the current one.
pub(super) fn template(
    revisions: &Revisions,
    name: &str,
    set: &StatefulSet,
) -> Option<PodTemplateSpec> {
    if name == revisions.update() {
        return set.spec.as_ref().map(|s| s.template.clone());
    }
    history::template(revisions.named(name)?)
}

/// Revisions that no Pod and no status names, beyond `revisionHistoryLimit`.
pub(super) fn beyond_history(
    revisions: &Revisions,
    set: &StatefulSet,
    status: &StatefulSetStatus,
    pods: &[Arc<Pod>],
) -> Vec<Arc<ControllerRevision>> {
    let limit = set.spec.as_ref().and_then(|s| s.revision_history_limit);
    revisions.idle(limit, |revision| {
        let name = revision.metadata.name.as_ref();
        name == status.current_revision.as_ref()
            || name == status.update_revision.as_ref()
            || pods.iter().any(|pod| ordinal::revision(pod) == name.map(String::as_str))
    })
}
