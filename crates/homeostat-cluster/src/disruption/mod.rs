//! PodDisruptionBudgets: say in their status how many of their Pods may be evicted now.
//!
//! The API charges each eviction to the budget; this controller gives the charge back once the Pod
//! is on its way out, or when two minutes later it still is not. [`plan`] counts. Never evicts.

mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use homeostat::{Context, Controller, Object, Outcome, Result};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::json;

use self::plan::Scales;
use crate::selector::Interest;
use crate::{claim, selector, write};

/// The controller.
pub(crate) fn controller() -> Controller<PodDisruptionBudget> {
    let interest = Interest::default();
    let selected = interest.clone();
    Controller::new(move |budget, ctx| reconcile(budget, ctx, interest.clone()))
        .named("disruption-controller")
        .reads::<ReplicaSet>()
        .reads::<Deployment>()
        .reads::<StatefulSet>()
        .watches::<Pod>(move |pod| {
            selected.matching(pod.metadata.namespace.as_deref(), pod.metadata.labels.as_ref())
        })
}

async fn reconcile(
    budget: Arc<PodDisruptionBudget>,
    ctx: Context<PodDisruptionBudget>,
    interest: Interest,
) -> Result<Outcome> {
    let Some(spec) = &budget.spec else { return Ok(Outcome::Done) };
    let mut pods = Vec::new();
    // Without a selector a budget is for no Pod at all, with an empty one for all.
    if let Some(wanted) = &spec.selector {
        interest.record(ctx.key(), wanted);
        pods = ctx.list::<Pod>().await?;
        pods.retain(|pod| selector::matches(wanted, pod.metadata.labels.as_ref()));
    }
    let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
    let scales =
        if plan::asks_for_scales(spec) { scales(&pods, &ctx).await? } else { Ok(BTreeMap::new()) };
    let (status, again) = plan::status(&budget, &pods, &scales, ctx.now());
    if budget.status.as_ref() != Some(&status) {
        // An eviction may be charged meanwhile: then this one counts anew.
        let seen = [("resourceVersion".to_owned(), json!(budget.metadata.resource_version))];
        let metadata = seen.into_iter().collect();
        write::status(&ctx, budget.as_ref(), budget.status.as_ref(), &status, metadata).await?;
    }
    Ok(again.map_or(Outcome::Done, Outcome::RequeueAt))
}

/// How many Pods the workloads of these Pods ask for. A Pod without one is not counted; one whose
/// workload cannot be asked makes the number unknown.
async fn scales(pods: &[&Pod], ctx: &Context<PodDisruptionBudget>) -> Result<Scales> {
    let mut scales = BTreeMap::new();
    let mut asked = BTreeSet::new();
    for pod in pods {
        let Some(owner) = claim::controller_of(&pod.metadata) else { continue };
        if !asked.insert(&owner.uid) {
            continue;
        }
        let Some((uid, replicas)) = scale_of(owner, ctx).await? else {
            let pod = pod.metadata.name.as_deref().unwrap_or_default();
            let what = format!("{} {:?}", owner.kind, owner.name);
            return Ok(Err(format!("found no controllers for pod {pod:?}: {what} has no scale")));
        };
        scales.insert(uid, replicas);
    }
    Ok(Ok(scales))
}

/// The uid of the workload that decides how many of these Pods there are, and that number: of a
/// ReplicaSet its Deployment, unless it stands alone.
async fn scale_of(
    owner: &OwnerReference,
    ctx: &Context<PodDisruptionBudget>,
) -> Result<Option<(String, i32)>> {
    let scale = |owner: &OwnerReference, replicas: Option<i32>| {
        Some((owner.uid.clone(), replicas.unwrap_or(1)))
    };
    match owner.kind.as_str() {
        "StatefulSet" => {
            let set = the::<StatefulSet>(owner, ctx).await?;
            Ok(set.and_then(|set| scale(owner, set.spec.as_ref().and_then(|spec| spec.replicas))))
        }
        "ReplicaSet" => {
            let Some(set) = the::<ReplicaSet>(owner, ctx).await? else { return Ok(None) };
            let above = claim::controller_of(&set.metadata);
            let Some(above) = above.filter(|above| above.kind == "Deployment") else {
                return Ok(scale(owner, set.spec.as_ref().and_then(|spec| spec.replicas)));
            };
            let deployment = the::<Deployment>(above, ctx).await?;
            Ok(deployment
                .and_then(|it| scale(above, it.spec.as_ref().and_then(|spec| spec.replicas))))
        }
        _ => Ok(None),
    }
}

/// The very object that the reference means, not a namesake.
async fn the<T: Object>(
    owner: &OwnerReference,
    ctx: &Context<PodDisruptionBudget>,
) -> Result<Option<Arc<T>>> {
    let found = ctx.get::<T>(&owner.name).await?;
    Ok(found.filter(|object| object.meta().uid.as_deref() == Some(&owner.uid)))
}
