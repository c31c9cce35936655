//! Deployments: one ReplicaSet per Pod template, and an orderly change from one to the next.
//!
//! [`revision`] knows which ReplicaSet is which, [`rollout`] how many replicas each should have
//! within the [`limits`], [`progress`] what to report. All are pure; this file reads, writes and
//! wakes up.

mod condition;
mod limits;
mod progress;
mod revision;
mod rollout;

use std::sync::Arc;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Error, EventType, Key, Outcome, Result};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet};
use serde_json::{Map, json};

use crate::selector::Interest;
use crate::{claim, write};

use self::progress::Step;
use self::revision::{DESIRED, MAXIMUM, REVISION, Sets};

/// The controller.
pub(crate) fn controller() -> Controller<Deployment> {
    let interest = Interest::default();
    let orphans = interest.clone();
    Controller::new(move |deployment, ctx| reconcile(deployment, ctx, interest.clone()))
        .named("deployment-controller")
        .owns::<ReplicaSet>()
        .watches::<ReplicaSet>(move |set| {
            let meta = &set.metadata;
            if claim::controller_of(meta).is_some() {
                return Vec::new();
            }
            orphans.matching(meta.namespace.as_deref(), meta.labels.as_ref())
        })
}

async fn reconcile(
    deployment: Arc<Deployment>,
    ctx: Context<Deployment>,
    interest: Interest,
) -> Result<Outcome> {
    let Some(spec) = &deployment.spec else { return Ok(Outcome::Done) };
    interest.record(ctx.key(), &spec.selector);
    let owned = claim::claim(&*deployment, &ctx, &spec.selector, |_: &ReplicaSet| true).await?;
    let mut sets = Sets::sort(owned, &spec.template);
    if deployment.metadata.deletion_timestamp.is_some() {
        return report(&deployment, spec, &ctx, &sets, Step::Nothing).await;
    }
    let paused = spec.paused == Some(true);
    let mut step = if sets.new.is_some() { Step::Found } else { Step::Nothing };
    if !paused {
        if sets.new.is_none() && rollout::may_create(spec, &sets) {
            let Some(created) = create(&deployment, spec, &ctx, &sets).await? else {
                return collide(&deployment, &ctx).await;
            };
            sets.new = Some(created);
            step = Step::Created;
        }
        annotate(&deployment, &ctx, &mut sets).await?;
    }
    let sizes = rollout::plan(spec, paused, &sets);
    resize(spec, &ctx, &mut sets, &sizes).await?;
    if !paused {
        for stale in revision::beyond_history(spec, &sets) {
            ctx.delete(stale.as_ref()).await?;
            sets.old.retain(|set| set.uid() != stale.uid());
        }
    }
    report(&deployment, spec, &ctx, &sets, step).await
}

/// Creates the ReplicaSet of the current template; `None` when its name is taken by another one.
async fn create(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    ctx: &Context<Deployment>,
    sets: &Sets,
) -> Result<Option<Arc<ReplicaSet>>> {
    let desired = revision::new_set(deployment, spec, sets, rollout::first_size(spec, sets));
    let name = desired.name_any();
    let size = desired.spec.as_ref().and_then(|s| s.replicas).unwrap_or(0);
    match ctx.create(desired).await {
        Ok(set) if revision::same_template(&set, &spec.template) => {
            if size > 0 {
                scaling_event(ctx, &name, 0, size);
            }
            Ok(Some(set))
        }
        Ok(_) | Err(Error::NotOurs { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Counts a hash collision; the next reconcile names the ReplicaSet differently.
async fn collide(deployment: &Deployment, ctx: &Context<Deployment>) -> Result<Outcome> {
    let mut status = deployment.status.clone().unwrap_or_default();
    status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
    write::status(ctx, deployment, deployment.status.as_ref(), &status, Map::new()).await?;
    Ok(Outcome::Done)
}

/// Brings revision and copied annotations of the current ReplicaSet up to date.
async fn annotate(
    deployment: &Deployment,
    ctx: &Context<Deployment>,
    sets: &mut Sets,
) -> Result<()> {
    let Some(new) = &sets.new else { return Ok(()) };
    let changes = revision::annotations_to_change(deployment, new, &sets.old);
    let min_ready = deployment.spec.as_ref().and_then(|s| s.min_ready_seconds);
    let same_min_ready =
        new.spec.as_ref().and_then(|s| s.min_ready_seconds).unwrap_or(0) == min_ready.unwrap_or(0);
    if changes.is_empty() && same_min_ready {
        return Ok(());
    }
    let mut patch = json!({"metadata": {"uid": new.uid(), "annotations": changes}});
    if !same_min_ready {
        patch["spec"] = json!({"minReadySeconds": min_ready});
    }
    sets.new = Some(ctx.merge_patch(&Key::of(new.as_ref()), &patch).await?);
    Ok(())
}

/// Writes the planned sizes, and the annotations by which a later scaling is recognised.
async fn resize(
    spec: &DeploymentSpec,
    ctx: &Context<Deployment>,
    sets: &mut Sets,
    sizes: &[rollout::Size],
) -> Result<()> {
    let desired = spec.replicas.unwrap_or(1);
    let maximum = desired + limits::max_surge(spec);
    for size in sizes {
        let set = sets.by_uid(&size.uid);
        let Some(set) = set else { continue };
        let before = revision::replicas(set);
        let text = |name: &str| set.annotations().get(name).cloned();
        let (desired, maximum) = (desired.to_string(), maximum.to_string());
        if before == size.replicas
            && text(DESIRED).as_ref() == Some(&desired)
            && text(MAXIMUM).as_ref() == Some(&maximum)
        {
            continue;
        }
        let patch = json!({
            "metadata": {"uid": set.uid(), "annotations": {DESIRED: desired, MAXIMUM: maximum}},
            "spec": {"replicas": size.replicas},
        });
        let (key, name) = (Key::of(set.as_ref()), set.name_any());
        let changed = ctx.merge_patch::<ReplicaSet>(&key, &patch).await?;
        if before != size.replicas {
            scaling_event(ctx, &name, before, size.replicas);
        }
        sets.replace(changed);
    }
    Ok(())
}

fn scaling_event(ctx: &Context<Deployment>, name: &str, before: i32, after: i32) {
    let direction = if after > before { "up" } else { "down" };
    let note = format!("Scaled {direction} replica set {name} from {before} to {after}");
    ctx.event(EventType::Normal, "ScalingReplicaSet", note);
}

async fn report(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    ctx: &Context<Deployment>,
    sets: &Sets,
    step: Step,
) -> Result<Outcome> {
    let now = ctx.now();
    let status = progress::status(deployment, spec, sets, step, now);
    let mut metadata = Map::new();
    let revision = sets.new.as_ref().and_then(|set| set.annotations().get(REVISION).cloned());
    if let Some(revision) = revision
        && deployment.annotations().get(REVISION) != Some(&revision)
    {
        metadata.insert("annotations".into(), json!({REVISION: revision}));
    }
    write::status(ctx, deployment, deployment.status.as_ref(), &status, metadata).await?;
    Ok(progress::deadline(spec, &status, now).map_or(Outcome::Done, Outcome::RequeueAt))
}
