//! ReplicaSets: keep as many Pods as asked for. [`plan`] decides, the reconcile carries out.
//!
//! Pods are counted by uid of their controller, never by name. A reconcile that created or removed
//! Pods reads them back before it returns, so the next one never counts short and creates twice.

use std::sync::Arc;

use homeostat::{Context, Controller, EventType, Outcome, Result};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use serde_json::Map;

use crate::selector::Interest;
use crate::{claim, pod, selector, write};

/// How many Pods one reconcile creates or removes at most; the rest follows in the next.
const BURST: usize = 500;

/// The controller.
pub(crate) fn controller() -> Controller<ReplicaSet> {
    let interest = Interest::default();
    let orphans = interest.clone();
    Controller::new(move |set, ctx| reconcile(set, ctx, interest.clone()))
        .named("replicaset-controller")
        .owns::<Pod>()
        .watches::<Pod>(move |pod| {
            let meta = &pod.metadata;
            if claim::controller_of(meta).is_some() {
                return Vec::new();
            }
            orphans.matching(meta.namespace.as_deref(), meta.labels.as_ref())
        })
}

/// How many Pods to add, or which to remove.
#[derive(Debug, PartialEq)]
pub(crate) enum Plan<'a> {
    /// Create this many.
    Create(usize),
    /// Delete these, in this order.
    Delete(Vec<&'a Pod>),
    /// The number is right.
    Nothing,
}

/// Compares the wanted number with the active Pods.
pub(crate) fn plan<'a>(replicas: i32, pods: &[&'a Pod]) -> Plan<'a> {
    let wanted = usize::try_from(replicas).unwrap_or(0);
    let mut active: Vec<&Pod> = pods.iter().copied().filter(|pod| pod::is_active(pod)).collect();
    if active.len() < wanted {
        return Plan::Create((wanted - active.len()).min(BURST));
    }
    let surplus = active.len() - wanted;
    if surplus == 0 {
        return Plan::Nothing;
    }
    active.sort_by_cached_key(|pod| pod::removal_rank(pod));
    active.truncate(surplus.min(BURST));
    Plan::Delete(active)
}

/// The counters for `pods`, keeping the conditions of `old` apart from `failure`.
pub(crate) fn status(
    set: &ReplicaSet,
    pods: &[&Pod],
    failure: Option<(&str, String)>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let spec = set.spec.as_ref();
    let min_ready = spec.and_then(|s| s.min_ready_seconds);
    let template_labels = spec
        .and_then(|s| s.template.as_ref())
        .and_then(|t| t.metadata.as_ref())
        .and_then(|m| m.labels.clone())
        .unwrap_or_default();
    let labelled = selector::exact(&template_labels);
    let count = |test: &dyn Fn(&Pod) -> bool| {
        i32::try_from(pods.iter().filter(|pod| test(pod)).count()).unwrap_or(i32::MAX)
    };
    let positive = |number: i32| (number > 0).then_some(number);
    let active = |test: &dyn Fn(&Pod) -> bool| count(&|p| pod::is_active(p) && test(p));
    let old = set.status.as_ref().and_then(|s| s.conditions.as_ref());
    ReplicaSetStatus {
        replicas: active(&|_| true),
        fully_labeled_replicas: positive(active(&|p| {
            selector::matches(&labelled, p.metadata.labels.as_ref())
        })),
        ready_replicas: positive(active(&pod::is_ready)),
        available_replicas: positive(active(&|p| pod::is_available(p, min_ready, now))),
        terminating_replicas: Some(count(&|p| pod::is_deleting(p) && !pod::is_terminal(p))),
        observed_generation: set.metadata.generation,
        conditions: failure.map(|(reason, message)| {
            let before = old.into_iter().flatten().find(|c| c.type_ == "ReplicaFailure");
            vec![ReplicaSetCondition {
                type_: "ReplicaFailure".into(),
                status: "True".into(),
                reason: Some(reason.to_owned()),
                message: Some(message),
                last_transition_time: before
                    .and_then(|c| c.last_transition_time.clone())
                    .or(Some(Time(now))),
            }]
        }),
    }
}

async fn reconcile(
    set: Arc<ReplicaSet>,
    ctx: Context<ReplicaSet>,
    interest: Interest,
) -> Result<Outcome> {
    let Some(spec) = &set.spec else { return Ok(Outcome::Done) };
    interest.record(ctx.key(), &spec.selector);
    let mut pods = pods_of(&set, &ctx, &spec.selector).await?;
    let mut failure = None;
    if set.metadata.deletion_timestamp.is_none() {
        let refs: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
        let plan = plan(spec.replicas.unwrap_or(1), &refs);
        let changed = plan != Plan::Nothing;
        let result = carry_out(&set, &ctx, spec.template.as_ref(), plan).await;
        if changed {
            pods = pods_of(&set, &ctx, &spec.selector).await?;
        }
        failure = result.err();
    }
    let refs: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
    let told = failure.as_ref().map(|error| ("FailedCreate", error.to_string()));
    let new = status(&set, &refs, told, ctx.now());
    write::status(&ctx, set.as_ref(), set.status.as_ref(), &new, Map::new()).await?;
    if let Some(error) = failure {
        return Err(error);
    }
    let active = refs.into_iter().filter(|pod| pod::is_active(pod));
    Ok(pod::next_availability(active, spec.min_ready_seconds, ctx.now())
        .map_or(Outcome::Done, Outcome::RequeueAt))
}

async fn pods_of(
    set: &ReplicaSet,
    ctx: &Context<ReplicaSet>,
    selector: &LabelSelector,
) -> Result<Vec<Arc<Pod>>> {
    claim::claim(set, ctx, selector, |pod: &Pod| !pod::is_terminal(pod)).await
}

async fn carry_out(
    set: &ReplicaSet,
    ctx: &Context<ReplicaSet>,
    template: Option<&PodTemplateSpec>,
    plan: Plan<'_>,
) -> Result<()> {
    match plan {
        Plan::Nothing => {}
        Plan::Create(count) => {
            let Some(template) = template else { return Ok(()) };
            let mut pod = pod::from_template(template);
            let prefix = set.metadata.name.as_deref().unwrap_or_default();
            pod.metadata.generate_name = Some(format!("{prefix}-"));
            for _ in 0..count {
                let created = ctx.create(pod.clone()).await.inspect_err(|error| {
                    ctx.event(
                        EventType::Warning,
                        "FailedCreate",
                        format!("Error creating: {error}"),
                    );
                })?;
                let name = created.metadata.name.as_deref().unwrap_or_default();
                ctx.event(EventType::Normal, "SuccessfulCreate", format!("Created pod: {name}"));
            }
        }
        Plan::Delete(pods) => {
            for pod in pods {
                ctx.delete(pod).await?;
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                ctx.event(EventType::Normal, "SuccessfulDelete", format!("Deleted pod: {name}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, phase: &str, deleting: bool) -> Pod {
        let deleted = deleting.then_some("2026-01-01T00:00:00Z");
        serde_json::from_value(json!({
            "metadata": {"name": name, "deletionTimestamp": deleted, "labels": {"app": "web"}},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status":
                if phase == "Running" { "True" } else { "False" }}]},
        }))
        .unwrap()
    }

    #[test]
    fn finished_and_leaving_pods_are_replaced() {
        let pods =
            [pod("a", "Running", false), pod("b", "Failed", false), pod("c", "Running", true)];
        let refs: Vec<&Pod> = pods.iter().collect();
        assert_eq!(plan(3, &refs), Plan::Create(2));
        assert_eq!(plan(1, &refs), Plan::Nothing);
        assert_eq!(plan(0, &refs), Plan::Delete(vec![&pods[0]]));
    }

    #[test]
    fn counters_tell_active_ready_and_leaving_pods_apart() {
        let set: ReplicaSet = serde_json::from_value(json!({
            "metadata": {"name": "web", "generation": 4},
            "spec": {"selector": {}, "template": {"metadata": {"labels": {"app": "web"}}}},
        }))
        .unwrap();
        let pods =
            [pod("a", "Running", false), pod("b", "Pending", false), pod("c", "Running", true)];
        let refs: Vec<&Pod> = pods.iter().collect();
        let status = status(&set, &refs, None, Timestamp::UNIX_EPOCH);
        assert_eq!(status.replicas, 2);
        assert_eq!(status.fully_labeled_replicas, Some(2));
        assert_eq!(status.ready_replicas, Some(1));
        assert_eq!(status.available_replicas, Some(1));
        assert_eq!(status.terminating_replicas, Some(1));
        assert_eq!(status.observed_generation, Some(4));
    }
}
