//! StatefulSets: Pods with a name, a number and a disk of their own.
//!
//! [`ordinal`] makes Pods and claims, [`revision`] knows which template each comes from, [`plan`]
//! decides the one next step; this file carries it out and reports. [`claims`] makes the claims and
//! gives them the owners that [`retention`] names.

mod claims;
mod ordinal;
mod plan;
mod retention;
mod revision;

use std::sync::Arc;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, EventType, Outcome, Result};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::Map;

use crate::history::Revisions;
use crate::revise::revise;
use crate::selector::Interest;
use crate::{claim, pod, revise, write};

use self::plan::{Action, Observed};

/// The controller.
pub(crate) fn controller() -> Controller<StatefulSet> {
    let interest = Interest::default();
    let (orphans, claims) = (interest.clone(), interest.clone());
    Controller::new(move |set, ctx| reconcile(set, ctx, interest.clone()))
        .named("statefulset-controller")
        .owns::<Pod>()
        .owns::<ControllerRevision>()
        .watches::<PersistentVolumeClaim>(move |claim| {
            let meta = &claim.metadata;
            claims.matching(meta.namespace.as_deref(), meta.labels.as_ref())
        })
        .watches::<Pod>(move |pod| {
            let meta = &pod.metadata;
            if claim::controller_of(meta).is_some() {
                return Vec::new();
            }
            orphans.matching(meta.namespace.as_deref(), meta.labels.as_ref())
        })
}

async fn reconcile(
    set: Arc<StatefulSet>,
    ctx: Context<StatefulSet>,
    interest: Interest,
) -> Result<Outcome> {
    let Some(spec) = &set.spec else { return Ok(Outcome::Done) };
    interest.record(ctx.key(), &spec.selector);
    let Some(revisions) = revisions(&set, &ctx).await? else { return Ok(Outcome::Requeue) };
    let mut failure = None;
    if set.metadata.deletion_timestamp.is_none() {
        let pods = pods_of(&set, &ctx).await?;
        let observed = Observed { set: &set, spec, revisions: &revisions, pods: &pods };
        // Before a Pod goes its claims must belong to it.
        claims::keep(&observed, &ctx).await?;
        for action in plan::plan(&observed, ctx.now()) {
            if let Err(error) = carry_out(&set, &ctx, &revisions, action).await {
                failure = Some(error);
                break;
            }
        }
    }
    // Read again: what was written above is counted below, and the next reconcile sees it too.
    let pods = pods_of(&set, &ctx).await?;
    let observed = Observed { set: &set, spec, revisions: &revisions, pods: &pods };
    let status = plan::status(&observed, ctx.now());
    trim_history(&set, &ctx, &revisions, &status, &pods).await?;
    write::status(&ctx, set.as_ref(), set.status.as_ref(), &status, Map::new()).await?;
    match failure {
        Some(error) => Err(error),
        None => {
            let ready = pods.iter().map(AsRef::as_ref);
            Ok(pod::next_availability(ready, spec.min_ready_seconds, ctx.now())
                .map_or(Outcome::Done, Outcome::RequeueAt))
        }
    }
}

async fn pods_of(set: &StatefulSet, ctx: &Context<StatefulSet>) -> Result<Vec<Arc<Pod>>> {
    let Some(spec) = &set.spec else { return Ok(Vec::new()) };
    let is_member = |pod: &Pod| ordinal::of(set, pod).is_some();
    let mut pods = claim::claim(set, ctx, &spec.selector, is_member).await?;
    pods.retain(|pod| is_member(pod));
    Ok(pods)
}

/// The history, with the revision of the current template at its head; `None` when a hash
/// collision was counted and the reconcile has to start over.
async fn revisions(set: &StatefulSet, ctx: &Context<StatefulSet>) -> Result<Option<Revisions>> {
    let revisions = revise::history(set, ctx).await?;
    if set.metadata.deletion_timestamp.is_some() {
        return Ok(Some(revisions));
    }
    revise(set, ctx, revisions).await
}

async fn carry_out(
    set: &StatefulSet,
    ctx: &Context<StatefulSet>,
    revisions: &Revisions,
    action: Action<'_>,
) -> Result<()> {
    let owner = set.name_any();
    match action {
        Action::Create { ordinal, revision } => {
            let Some(template) = revision::template(revisions, &revision, set) else {
                return Ok(());
            };
            let pod = ordinal::pod(set, &template, ordinal, &revision);
            if !claims::make(set, ctx, &pod, ordinal).await? {
                return Ok(());
            }
            let name = pod.name_any();
            ctx.create(pod).await.inspect_err(|error| {
                let note =
                    format!("Create Pod {name} in StatefulSet {owner} failed error: {error}");
                ctx.event(EventType::Warning, "FailedCreate", note);
            })?;
            let note = format!("Create Pod {name} in StatefulSet {owner} successful");
            ctx.event(EventType::Normal, "SuccessfulCreate", note);
        }
        Action::Delete(pod) => {
            ctx.delete(pod).await?;
            let note = format!("Delete Pod {} in StatefulSet {owner} successful", pod.name_any());
            ctx.event(EventType::Normal, "SuccessfulDelete", note);
        }
    }
    Ok(())
}

async fn trim_history(
    set: &StatefulSet,
    ctx: &Context<StatefulSet>,
    revisions: &Revisions,
    status: &StatefulSetStatus,
    pods: &[Arc<Pod>],
) -> Result<()> {
    for stale in revision::beyond_history(revisions, set, status, pods) {
        ctx.delete(stale.as_ref()).await?;
    }
    Ok(())
}
