//! Which ReplicaSet belongs to which template, and the numbers `kubectl rollout` shows. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat::kube::ResourceExt;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::limits;
use crate::fingerprint;

/// The number of the rollout a ReplicaSet belongs to.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// Earlier numbers of a ReplicaSet that was rolled back to.
pub(super) const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The Deployment's replicas when the ReplicaSet was last sized.
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The same plus the surge.
pub(super) const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";
/// The label that keeps the Pods of two templates apart.
const HASH: &str = "pod-template-hash";
/// Annotations of the Deployment that say nothing about its ReplicaSets.
const NOT_COPIED: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
    "deprecated.deployment.rollback.to",
];

/// The ReplicaSets of one Deployment: the one of the current template, and the others, oldest first.
#[derive(Debug, Default)]
pub(super) struct Sets {
    pub(super) new: Option<Arc<ReplicaSet>>,
    pub(super) old: Vec<Arc<ReplicaSet>>,
}

impl Sets {
    /// Sorts `owned`; of several with the current template the oldest is the current one.
    pub(super) fn sort(mut owned: Vec<Arc<ReplicaSet>>, template: &PodTemplateSpec) -> Self {
        owned.sort_by_key(|set| (set.creation_timestamp(), set.name_any()));
        let position = owned.iter().position(|set| same_template(set, template));
        let new = position.map(|index| owned.remove(index));
        Self { new, old: owned }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.old.iter().chain(&self.new)
    }

    pub(super) fn by_uid(&self, uid: &str) -> Option<&Arc<ReplicaSet>> {
        self.all().find(|set| set.metadata.uid.as_deref() == Some(uid))
    }

    /// Puts a newer state of one of the sets in its place.
    pub(super) fn replace(&mut self, changed: Arc<ReplicaSet>) {
        let found = self.old.iter_mut().chain(&mut self.new).find(|set| set.uid() == changed.uid());
        if let Some(place) = found {
            *place = changed;
        }
    }
}

/// The wanted size of a ReplicaSet.
pub(super) fn replicas(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1)
}

/// Whether the set was made from this template.
pub(super) fn same_template(set: &ReplicaSet, template: &PodTemplateSpec) -> bool {
    let Some(own) = set.spec.as_ref().and_then(|s| s.template.as_ref()) else { return false };
    without_hash(own) == without_hash(template)
}

fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    let meta = template.metadata.get_or_insert_default();
    if let Some(labels) = &mut meta.labels {
        labels.remove(HASH);
    }
    meta.labels.take_if(|labels| labels.is_empty());
    meta.creation_timestamp = None;
    template
}

/// The ReplicaSet for the current template.
pub(super) fn new_set(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sets: &Sets,
    size: i32,
) -> ReplicaSet {
    let collisions = deployment.status.as_ref().and_then(|s| s.collision_count);
    let hash = fingerprint::of(&without_hash(&spec.template), collisions);
    let with_hash = |labels: Option<BTreeMap<String, String>>| {
        let mut labels = labels.unwrap_or_default();
        labels.insert(HASH.into(), hash.clone());
        Some(labels)
    };
    let mut template = spec.template.clone();
    let meta = template.metadata.get_or_insert_default();
    meta.labels = with_hash(meta.labels.take());
    let mut annotations = copied(deployment);
    let desired = spec.replicas.unwrap_or(1);
    annotations.insert(REVISION.into(), next_revision(&sets.old).to_string());
    annotations.insert(DESIRED.into(), desired.to_string());
    annotations.insert(MAXIMUM.into(), (desired + limits::max_surge(spec)).to_string());
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", deployment.name_any())),
            labels: meta.labels.clone(),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(size),
            min_ready_seconds: spec.min_ready_seconds,
            selector: LabelSelector {
                match_labels: with_hash(spec.selector.match_labels.clone()),
                match_expressions: spec.selector.match_expressions.clone(),
            },
            template: Some(template),
        }),
        status: None,
    }
}

fn copied(deployment: &Deployment) -> BTreeMap<String, String> {
    let mut annotations = deployment.annotations().clone();
    annotations.retain(|name, _| !NOT_COPIED.contains(&name.as_str()));
    annotations
}

fn revision(set: &ReplicaSet) -> i64 {
    set.annotations().get(REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn next_revision(old: &[Arc<ReplicaSet>]) -> i64 {
    old.iter().map(|set| revision(set)).max().unwrap_or(0) + 1
}

/// What the current set's annotations lack: a newer revision number (the former one goes to the
/// history) and the Deployment's own annotations.
pub(super) fn annotations_to_change(
    deployment: &Deployment,
    new: &ReplicaSet,
    old: &[Arc<ReplicaSet>],
) -> BTreeMap<String, String> {
    let mut changes = copied(deployment);
    let next = next_revision(old);
    let current = revision(new);
    if current < next {
        changes.insert(REVISION.into(), next.to_string());
        if current > 0 {
            let history = match new.annotations().get(HISTORY).filter(|text| !text.is_empty()) {
                Some(history) => format!("{history},{current}"),
                None => current.to_string(),
            };
            changes.insert(HISTORY.into(), history);
        }
    }
    changes.retain(|name, value| new.annotations().get(name) != Some(value));
    changes
}

/// Empty old sets beyond `revisionHistoryLimit` (10 by default), lowest revision first; none
/// before the rollout is complete.
pub(super) fn beyond_history(spec: &DeploymentSpec, sets: &Sets) -> Vec<Arc<ReplicaSet>> {
    let limit = usize::try_from(spec.revision_history_limit.unwrap_or(10)).unwrap_or(0);
    let complete = sets.new.as_ref().is_some_and(|new| {
        let available = new.status.as_ref().and_then(|s| s.available_replicas).unwrap_or(0);
        available >= spec.replicas.unwrap_or(1)
    });
    if !complete || sets.old.len() <= limit {
        return Vec::new();
    }
    let surplus = sets.old.len() - limit;
    let mut old = sets.old.clone();
    old.sort_by_key(|set| revision(set));
    old.truncate(surplus);
    old.retain(|set| {
        let status = set.status.clone().unwrap_or_default();
        replicas(set) == 0
            && status.replicas == 0
            && status.observed_generation >= set.metadata.generation
            && set.metadata.deletion_timestamp.is_none()
    });
    old
}
