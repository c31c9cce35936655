//! Jobs: run Pods until enough of them have succeeded, or too many have failed.
//!
//! [`count`] tells which Pods are already in the counters, [`policy`] what the Job says of failures,
//! [`verdict`] whether it is over, [`pause`] when to try again, [`plan`] what to do next; all are pure.
//! A finished Pod keeps the tracking finalizer until the status that counts it is written, so no
//! result is lost and none is counted twice, whatever is deleted or crashes in between.

mod count;
mod indexed;
mod indexes;
mod observed;
mod orphan;
mod pause;
mod plan;
mod policy;
mod verdict;

use std::sync::Arc;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, EventType, Key, Kind, Outcome, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Map, json};

use crate::{claim, write};

use self::plan::Action;

pub(crate) use self::orphan::controller as orphan_controller;

/// The finalizer of a Pod whose result is not counted yet.
pub(crate) const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// The controller.
pub(crate) fn controller() -> Controller<Job> {
    Controller::new(reconcile).named("job-controller").owns::<Pod>()
}

async fn reconcile(job: Arc<Job>, ctx: Context<Job>) -> Result<Outcome> {
    let Some(spec) = &job.spec else { return Ok(Outcome::Done) };
    let is_foreign =
        spec.managed_by.as_deref().is_some_and(|by| by != "kubernetes.io/job-controller");
    if is_foreign {
        return Ok(Outcome::Done);
    }
    if job.metadata.deletion_timestamp.is_some() {
        // Nobody reads the counters any more, and the Job may wait for its Pods.
        for pod in ctx.owned::<Pod>().await? {
            untrack(&ctx, &pod).await?;
        }
        return Ok(Outcome::Done);
    }
    if let Some(at) = verdict::expiry(&job) {
        return expire(&job, &ctx, at).await;
    }
    let Some(selector) = &spec.selector else { return Ok(Outcome::Done) };
    let pods = claim::claim_tracked(&*job, &ctx, selector, TRACKING).await?;
    let refs: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
    let mut plan = plan::plan(&job, spec, &refs, ctx.now());
    let mut failure = None;
    for action in &plan.actions {
        if failure.is_some() {
            plan::undo(&mut plan.status, action);
        } else if let Err(error) = carry_out(&job, &ctx, action).await {
            // What cannot be done now must not keep what has happened from being counted.
            plan::undo(&mut plan.status, action);
            failure = Some(error);
        }
    }
    if !plan.actions.is_empty() {
        // What was made must be in the cache before the next reconcile counts.
        ctx.owned::<Pod>().await?;
    }
    write::status(&ctx, job.as_ref(), job.status.as_ref(), &plan.status, Map::new()).await?;
    // The status that was read holds the results of these Pods: they cannot be lost any more.
    for pod in &plan.counted {
        untrack(&ctx, pod).await?;
    }
    for (kind, reason, note) in plan.events {
        ctx.event(kind, &reason, note);
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(plan.wake.map_or(Outcome::Done, Outcome::RequeueAt)),
    }
}

/// Deletes a finished Job whose time to live has passed, with its Pods.
async fn expire(job: &Job, ctx: &Context<Job>, at: jiff::Timestamp) -> Result<Outcome> {
    if ctx.now() < at {
        // The results are final, but stragglers still hold the finalizer.
        for pod in ctx.owned::<Pod>().await? {
            untrack(ctx, &pod).await?;
        }
        let never = at == jiff::Timestamp::MAX;
        return Ok(if never { Outcome::Done } else { Outcome::RequeueAt(at) });
    }
    let uid = job.uid().unwrap_or_default();
    write::delete(ctx.client(), &Kind::of::<Job>(), ctx.key(), &uid, "Foreground").await?;
    Ok(Outcome::Done)
}

async fn carry_out(job: &Job, ctx: &Context<Job>, action: &Action<'_>) -> Result<()> {
    match action {
        Action::Create(place) => {
            let created = ctx.create(plan::pod(job, *place)).await.inspect_err(|error| {
                ctx.event(EventType::Warning, "FailedCreate", format!("Error creating: {error}"));
            })?;
            let note = format!("Created pod: {}", created.name_any());
            ctx.event(EventType::Normal, "SuccessfulCreate", note);
        }
        Action::Remove(pod) | Action::Stop(pod) => {
            if matches!(action, Action::Remove(_)) {
                untrack(ctx, pod).await?;
            }
            ctx.delete(*pod).await?;
            let note = format!("Deleted pod: {}", pod.name_any());
            ctx.event(EventType::Normal, "SuccessfulDelete", note);
        }
    }
    Ok(())
}

/// Takes the tracking finalizer from a Pod.
async fn untrack(ctx: &Context<Job>, pod: &Pod) -> Result<()> {
    remove_tracking(ctx.client(), pod).await
}

/// Takes the tracking finalizer from a Pod; one that is gone needs nothing.
async fn remove_tracking(client: &homeostat::kube::Client, pod: &Pod) -> Result<()> {
    if !pod.finalizers().iter().any(|name| name == TRACKING) {
        return Ok(());
    }
    let rest: Vec<_> = pod.finalizers().iter().filter(|name| *name != TRACKING).collect();
    let patch = json!({"metadata": {
        "uid": pod.uid(), "resourceVersion": pod.resource_version(), "finalizers": rest,
    }});
    write::patch(client, &Kind::of::<Pod>(), &Key::of(pod), None, &patch).await?;
    Ok(())
}
