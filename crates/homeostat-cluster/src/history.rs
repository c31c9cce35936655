//! The history of a workload's templates, kept as ControllerRevisions. Pure.
//!
//! A revision's data is the strategic merge patch that restores the template, which is what
//! `kubectl rollout undo` sends back.

use std::sync::Arc;

use homeostat::kube::ResourceExt;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, StatefulSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};

use crate::fingerprint;

/// How many revisions that nobody uses are kept where the workload does not say.
const KEPT: i32 = 10;

/// A workload whose templates are kept.
pub(crate) trait Versioned: ResourceExt {
    /// The label of a revision that carries its hash.
    const HASH: &'static str;

    fn template(&self) -> Option<&PodTemplateSpec>;

    /// How often two templates had the same hash.
    fn collisions(&self) -> Option<i32>;
}

impl Versioned for StatefulSet {
    const HASH: &'static str = "controller.kubernetes.io/hash";

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref().map(|spec| &spec.template)
    }

    fn collisions(&self) -> Option<i32> {
        self.status.as_ref()?.collision_count
    }
}

impl Versioned for DaemonSet {
    const HASH: &'static str = "controller-revision-hash";

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref().map(|spec| &spec.template)
    }

    fn collisions(&self) -> Option<i32> {
        self.status.as_ref()?.collision_count
    }
}

/// The revisions of one workload, lowest number first.
#[derive(Debug, Default)]
pub(crate) struct Revisions {
    all: Vec<Arc<ControllerRevision>>,
    update: Option<Arc<ControllerRevision>>,
}

/// How the history has to change for the current template.
#[derive(Debug)]
pub(crate) enum Step {
    /// It is at the head.
    Keep,
    /// It is in the history: give it the next number.
    Move { name: String, number: i64 },
    /// It is new.
    Create(Box<ControllerRevision>),
}

impl Revisions {
    pub(crate) fn sort(mut owned: Vec<Arc<ControllerRevision>>, set: &impl Versioned) -> Self {
        owned.sort_by_key(|r| (r.revision, r.creation_timestamp(), r.name_any()));
        let data = data(set);
        let update = owned.iter().rev().find(|r| r.data.as_ref() == Some(&data)).cloned();
        Self { all: owned, update }
    }

    /// The revision made or moved to the head.
    pub(crate) fn set_update(&mut self, revision: Arc<ControllerRevision>) {
        self.all.retain(|known| known.uid() != revision.uid());
        self.all.push(Arc::clone(&revision));
        self.update = Some(revision);
    }

    /// The revision of the current template, once there is one.
    pub(crate) fn head(&self) -> Option<&ControllerRevision> {
        self.update.as_deref()
    }

    /// The name of the revision of the current template.
    pub(crate) fn update(&self) -> String {
        self.head().map(ResourceExt::name_any).unwrap_or_default()
    }

    pub(crate) fn named(&self, name: &str) -> Option<&ControllerRevision> {
        self.all.iter().map(AsRef::as_ref).find(|r| r.metadata.name.as_deref() == Some(name))
    }

    /// The oldest revisions that nobody uses, beyond `limit`.
    pub(crate) fn idle(
        &self,
        limit: Option<i32>,
        is_used: impl Fn(&ControllerRevision) -> bool,
    ) -> Vec<Arc<ControllerRevision>> {
        let limit = usize::try_from(limit.unwrap_or(KEPT)).unwrap_or(0);
        let mut idle: Vec<_> = self.all.iter().filter(|r| !is_used(r)).cloned().collect();
        idle.truncate(idle.len().saturating_sub(limit));
        idle
    }

    /// What has to be done so that the head of the history is the current template.
    pub(crate) fn step(&self, set: &impl Versioned) -> Step {
        let highest = self.all.last().map_or(0, |r| r.revision);
        match &self.update {
            Some(update) if update.revision == highest => Step::Keep,
            Some(update) => Step::Move { name: update.name_any(), number: highest + 1 },
            None => Step::Create(Box::new(make(set, highest + 1))),
        }
    }
}

/// The template that a revision restores.
pub(crate) fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

fn data(set: &impl Versioned) -> RawExtension {
    let mut template = serde_json::to_value(set.template()).unwrap_or(Value::Null);
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".into(), json!("replace"));
    }
    RawExtension(json!({"spec": {"template": template}}))
}

fn make<K: Versioned>(set: &K, number: i64) -> ControllerRevision {
    let data = data(set);
    let hash = fingerprint::of(&data, set.collisions());
    let template = set.template().and_then(|template| template.metadata.as_ref());
    let mut labels = template.and_then(|m| m.labels.clone()).unwrap_or_default();
    labels.insert(K::HASH.into(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", set.name_any())),
            labels: Some(labels),
            annotations: set.meta().annotations.clone().map(|mut annotations| {
                annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
                annotations
            }),
            ..ObjectMeta::default()
        },
        data: Some(data),
        revision: number,
    }
}
