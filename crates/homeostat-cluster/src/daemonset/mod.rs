//! DaemonSets: one Pod on every node that suits.
//!
//! [`place`] knows which node a Pod is for, [`plan`] decides; both are pure. This file carries out
//! and reports.

mod place;
mod plan;
mod retry;

use std::sync::{Arc, Mutex, PoisonError};

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, EventType, Outcome, Result};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::Map;

use self::plan::{Observed, Plan};
use self::retry::Retry;
use crate::history::{Revisions, Versioned};
use crate::revise::revise;
use crate::selector::Interest;
use crate::{claim, pod, revise, write};

/// The controller.
pub(crate) fn controller() -> Controller<DaemonSet> {
    let (interest, retry) = (Interest::default(), Arc::new(Mutex::new(Retry::default())));
    let (orphans, everyone) = (interest.clone(), interest.clone());
    Controller::new(move |set, ctx| reconcile(set, ctx, interest.clone(), Arc::clone(&retry)))
        .named("daemonset-controller")
        .owns::<Pod>()
        .owns::<ControllerRevision>()
        .watches::<Node>(move |_| everyone.all())
        .watches::<Pod>(move |pod| {
            let meta = &pod.metadata;
            if claim::controller_of(meta).is_some() {
                return Vec::new();
            }
            orphans.matching(meta.namespace.as_deref(), meta.labels.as_ref())
        })
}

async fn reconcile(
    set: Arc<DaemonSet>,
    ctx: Context<DaemonSet>,
    interest: Interest,
    retry: Arc<Mutex<Retry>>,
) -> Result<Outcome> {
    let Some(spec) = &set.spec else { return Ok(Outcome::Done) };
    interest.record(ctx.key(), &spec.selector);
    if set.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::Done);
    }
    let Some(revisions) = revisions(&set, &ctx).await? else { return Ok(Outcome::Requeue) };
    let hash = revisions.head().and_then(|head| head.labels().get(DaemonSet::HASH).cloned());
    let hash = hash.unwrap_or_default();
    let nodes = ctx.list_in::<Node>(None, "").await?;
    let pods = pods_of(&set, &ctx).await?;
    let observed = Observed { set: &set, spec, hash: &hash, nodes: &nodes, pods: &pods };
    let plan = {
        let mut retry = retry.lock().unwrap_or_else(PoisonError::into_inner);
        plan::plan(&observed, &mut retry, ctx.now())
    };
    let (wake, failure) = (plan.wake, carry_out(&set, &ctx, &hash, plan).await.err());
    // Read again: what was written above is counted below, and the next reconcile sees it too.
    let pods = pods_of(&set, &ctx).await?;
    let observed = Observed { pods: &pods, ..observed };
    let status = plan::status(&observed, ctx.now());
    let is_used = |revision: &ControllerRevision| {
        let hash = revision.labels().get(DaemonSet::HASH);
        revision.name_any() == revisions.update()
            || pods.iter().any(|pod| pod.labels().get(DaemonSet::HASH) == hash)
    };
    for stale in revisions.idle(spec.revision_history_limit, is_used) {
        ctx.delete(stale.as_ref()).await?;
    }
    write::status(&ctx, set.as_ref(), set.status.as_ref(), &status, Map::new()).await?;
    if let Some(error) = failure {
        return Err(error);
    }
    let ready = pods.iter().map(AsRef::as_ref);
    let available = pod::next_availability(ready, spec.min_ready_seconds, ctx.now());
    Ok(wake.into_iter().chain(available).min().map_or(Outcome::Done, Outcome::RequeueAt))
}

async fn pods_of(set: &DaemonSet, ctx: &Context<DaemonSet>) -> Result<Vec<Arc<Pod>>> {
    let Some(spec) = &set.spec else { return Ok(Vec::new()) };
    claim::claim(set, ctx, &spec.selector, |_: &Pod| true).await
}

/// The history, with the revision of the current template at its head; `None` when a hash
/// collision was counted and the reconcile has to start over.
async fn revisions(set: &DaemonSet, ctx: &Context<DaemonSet>) -> Result<Option<Revisions>> {
    let revisions = revise::history(set, ctx).await?;
    revise(set, ctx, revisions).await
}

async fn carry_out(
    set: &DaemonSet,
    ctx: &Context<DaemonSet>,
    hash: &str,
    plan: Plan<'_>,
) -> Result<()> {
    for (kind, reason, note) in plan.events {
        ctx.event(kind, reason, note);
    }
    for node in &plan.create {
        let Some(pod) = place::pod(set, node, hash) else { return Ok(()) };
        let created = ctx.create(pod).await.inspect_err(|error| {
            ctx.event(EventType::Warning, "FailedCreate", format!("Error creating: {error}"));
        })?;
        let note = format!("Created pod: {}", created.name_any());
        ctx.event(EventType::Normal, "SuccessfulCreate", note);
    }
    for pod in plan.delete {
        ctx.delete(pod).await?;
        let note = format!("Deleted pod: {}", pod.name_any());
        ctx.event(EventType::Normal, "SuccessfulDelete", note);
    }
    Ok(())
}
