//! The history of a StatefulSet's templates, kept as ControllerRevisions. Pure.
//!
//! A revision's data is the strategic merge patch that restores the template, which is what
//! `kubectl rollout undo` sends back.

use std::sync::Arc;

use homeostat::kube::ResourceExt;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};

use super::ordinal;
use crate::fingerprint;

/// The revisions of one set, lowest number first.
#[derive(Debug, Default)]
pub(super) struct Revisions {
    all: Vec<Arc<ControllerRevision>>,
    update: Option<Arc<ControllerRevision>>,
}

/// How the history has to change for the current template.
#[derive(Debug)]
pub(super) enum Step {
    /// It is at the head.
    Keep,
    /// It is in the history: give it the next number.
    Move { name: String, number: i64 },
    /// It is new.
    Create(Box<ControllerRevision>),
}

impl Revisions {
    pub(super) fn sort(mut owned: Vec<Arc<ControllerRevision>>, set: &StatefulSet) -> Self {
        owned.sort_by_key(|r| (r.revision, r.creation_timestamp(), r.name_any()));
        let data = data(set);
        let update = owned.iter().rev().find(|r| r.data.as_ref() == Some(&data)).cloned();
        Self { all: owned, update }
    }

    /// The revision made or moved to the head.
    pub(super) fn set_update(&mut self, revision: Arc<ControllerRevision>) {
        self.all.retain(|known| known.uid() != revision.uid());
        self.all.push(Arc::clone(&revision));
        self.update = Some(revision);
    }

    /// The name of the revision of the current template.
    pub(super) fn update(&self) -> String {
        self.update.as_ref().map(|r| r.name_any()).unwrap_or_default()
    }

    /// The name of the revision that Pods come from before they are updated.
    pub(super) fn current(&self, set: &StatefulSet) -> String {
        let named = set.status.as_ref().and_then(|s| s.current_revision.clone());
        named
            .filter(|name| self.all.iter().any(|r| r.metadata.name.as_ref() == Some(name)))
            .unwrap_or_else(|| self.update())
    }

    /// The template of a revision; the set's own for the current one.
    pub(super) fn template(&self, name: &str, set: &StatefulSet) -> Option<PodTemplateSpec> {
        if name == self.update() {
            return set.spec.as_ref().map(|s| s.template.clone());
        }
        let revision = self.all.iter().find(|r| r.metadata.name.as_deref() == Some(name))?;
        let mut template = revision.data.as_ref()?.0.pointer("/spec/template")?.clone();
        template.as_object_mut()?.remove("$patch");
        serde_json::from_value(template).ok()
    }

    /// Revisions that no Pod and no status names, beyond `revisionHistoryLimit` (10 by default).
    pub(super) fn beyond_history(
        &self,
        set: &StatefulSet,
        status: &StatefulSetStatus,
        pods: &[Arc<Pod>],
    ) -> Vec<Arc<ControllerRevision>> {
        let limit = set.spec.as_ref().and_then(|s| s.revision_history_limit).unwrap_or(10);
        let limit = usize::try_from(limit).unwrap_or(0);
        let is_live = |r: &ControllerRevision| {
            let name = r.metadata.name.as_ref();
            name == status.current_revision.as_ref()
                || name == status.update_revision.as_ref()
                || pods.iter().any(|pod| ordinal::revision(pod) == name.map(String::as_str))
        };
        let mut idle: Vec<_> = self.all.iter().filter(|r| !is_live(r)).cloned().collect();
        idle.truncate(idle.len().saturating_sub(limit));
        idle
    }
}

/// What has to be done so that the head of the history is the current template.
pub(super) fn step(revisions: &Revisions, set: &StatefulSet) -> Step {
    let highest = revisions.all.last().map_or(0, |r| r.revision);
    match &revisions.update {
        Some(update) if update.revision == highest => Step::Keep,
        Some(update) => Step::Move { name: update.name_any(), number: highest + 1 },
        None => Step::Create(Box::new(make(set, highest + 1))),
    }
}

fn data(set: &StatefulSet) -> RawExtension {
    let template = set.spec.as_ref().map(|s| &s.template);
    let mut template = serde_json::to_value(template).unwrap_or(Value::Null);
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".into(), json!("replace"));
    }
    RawExtension(json!({"spec": {"template": template}}))
}

fn make(set: &StatefulSet, number: i64) -> ControllerRevision {
    let data = data(set);
    let collisions = set.status.as_ref().and_then(|s| s.collision_count);
    let hash = fingerprint::of(&data, collisions);
    let template = set.spec.as_ref().and_then(|s| s.template.metadata.as_ref());
    let mut labels = template.and_then(|m| m.labels.clone()).unwrap_or_default();
    labels.insert("controller.kubernetes.io/hash".into(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", set.name_any())),
            labels: Some(labels),
            annotations: set.metadata.annotations.clone().map(|mut annotations| {
                annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
                annotations
            }),
            ..ObjectMeta::default()
        },
        data: Some(data),
        revision: number,
    }
}
