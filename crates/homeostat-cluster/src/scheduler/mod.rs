//! The scheduler: gives every Pod that has no node one that suits it and has room for it.
//!
//! The judgement is pure: [`fit`] says whether a node is for a Pod at all, [`room`] whether there is
//! room on it, [`verdict`] why there is none. A Pod whose volume claims are not bound waits for them.
//! Among the suitable nodes the one with the fewest Pods wins. It never removes a Pod to make room.

mod fit;
mod room;
mod verdict;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, EventType, Key, Kind, Outcome, Predicate, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod, PodSpec};
use serde_json::{Value, json};

use self::room::{Held, held_on, makes_room, requests};
use self::verdict::Unfit;
use crate::{pod, write};

pub(crate) use self::fit::fit;

/// What is remembered between Pods; clones are the same.
#[derive(Debug, Clone, Default)]
struct Desk(Arc<Mutex<Papers>>);

#[derive(Debug, Default)]
struct Papers {
    /// The Pods that wait for something to change, and who comes first.
    waiting: BTreeMap<Key, Turn>,
    /// By uid: the nodes of Pods that the cache still shows without one.
    assigned: BTreeMap<String, String>,
}

/// The higher priority comes first, then the longer wait.
type Turn = (Reverse<i32>, Option<Timestamp>);

impl Desk {
    fn papers(&self) -> MutexGuard<'_, Papers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those who wait, in their turn.
    fn waiting(&self) -> Vec<Key> {
        let papers = self.papers();
        let mut waiting: Vec<(&Turn, &Key)> =
            papers.waiting.iter().map(|(key, turn)| (turn, key)).collect();
        waiting.sort();
        waiting.into_iter().map(|(_, key)| key.clone()).collect()
    }
}

/// The controller. One Pod after the other: two at once would be given the same room.
pub(crate) fn controller() -> Controller<Pod> {
    let desk = Desk::default();
    let (on_node, on_claim, on_pod, asked) =
        (desk.clone(), desk.clone(), desk.clone(), desk.clone());
    let anybody = Predicate::new(move |_| !asked.papers().waiting.is_empty());
    Controller::new(move |pod, ctx| reconcile(pod, ctx, desk.clone()))
        .named("default-scheduler")
        .concurrency(1)
        .watches::<Node>(move |_| on_node.waiting())
        .watches::<PersistentVolumeClaim>(move |claim| {
            let mut waiting = on_claim.waiting();
            waiting.retain(|key| key.namespace() == claim.metadata.namespace.as_deref());
            waiting
        })
        .watches_when::<Pod>(anybody.and(Predicate::typed(makes_room)), move |_| on_pod.waiting())
}

async fn reconcile(pod: Arc<Pod>, ctx: Context<Pod>, desk: Desk) -> Result<Outcome> {
    let Some(spec) = &pod.spec else { return Ok(Outcome::Done) };
    let ours = spec.scheduler_name.as_deref().is_none_or(|name| name == "default-scheduler");
    let assigned = spec.node_name.as_deref().is_some_and(|name| !name.is_empty());
    if !ours || assigned || !pod::is_active(&pod) {
        desk.papers().waiting.remove(ctx.key());
        return Ok(Outcome::Done);
    }
    if spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
        return Ok(Outcome::Done);
    }
    let since = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let turn = (Reverse(spec.priority.unwrap_or(0)), since);
    // Noted before looking: whatever changes in between wakes this Pod again.
    desk.papers().waiting.insert(ctx.key().clone(), turn);
    let nodes = ctx.list_in::<Node>(None, "").await?;
    let unbound = if nodes.is_empty() { None } else { unbound_claim(spec, &ctx).await? };
    if let Some(reason) = unbound {
        refuse(&pod, &ctx, &verdict::not_yet(spec, &reason, nodes.len())).await?;
        return Ok(Outcome::Done);
    }
    let held = held(&ctx.list_in::<Pod>(None, "").await?, &desk);
    let asked = requests(spec);
    let judge = |node: &Node| -> Result<(), Unfit> {
        fit(spec, node)?;
        held.room(node, &asked)
    };
    let (mut suitable, mut unfit) = (Vec::new(), Vec::new());
    for node in &nodes {
        match judge(node) {
            Ok(()) => suitable.push(node.name_any()),
            Err(why) => unfit.push(why),
        }
    }
    match suitable.into_iter().min_by_key(|name| (held.pods(name), name.clone())) {
        Some(node) => {
            bind(&pod, &ctx, &node).await?;
            let mut papers = desk.papers();
            papers.waiting.remove(ctx.key());
            papers.assigned.insert(pod.uid().unwrap_or_default(), node);
        }
        None => refuse(&pod, &ctx, &verdict::nowhere(spec, &unfit)).await?,
    }
    Ok(Outcome::Done)
}

/// What all Pods hold, those included that the cache does not show on their node yet. Forgets what
/// was noted of Pods that are gone, or known to be where they are.
fn held(pods: &[Arc<Pod>], desk: &Desk) -> Held {
    let (mut held, mut papers) = (Held::default(), desk.papers());
    let mut unknown = std::mem::take(&mut papers.assigned);
    for pod in pods {
        let Some(spec) = &pod.spec else { continue };
        if let Some(node) = held_on(pod) {
            held.add(node, spec);
        } else if let Some((uid, node)) =
            unknown.remove_entry(pod.metadata.uid.as_deref().unwrap_or_default())
            && spec.node_name.is_none()
        {
            held.add(&node, spec);
            papers.assigned.insert(uid, node);
        }
    }
    let there: BTreeSet<Key> = pods.iter().map(|pod| Key::of(pod.as_ref())).collect();
    papers.waiting.retain(|key, _| there.contains(key));
    held
}

/// Why the Pod's volumes keep it waiting, if they do.
async fn unbound_claim(spec: &PodSpec, ctx: &Context<Pod>) -> Result<Option<String>> {
    let claims = spec.volumes.iter().flatten().filter_map(|v| v.persistent_volume_claim.as_ref());
    for name in claims.map(|source| &source.claim_name) {
        let Some(claim) = ctx.get::<PersistentVolumeClaim>(name).await? else {
            return Ok(Some(format!("persistentvolumeclaim \"{name}\" not found")));
        };
        if claim.status.as_ref().and_then(|s| s.phase.as_deref()) != Some("Bound") {
            return Ok(Some("pod has unbound immediate PersistentVolumeClaims".into()));
        }
    }
    Ok(None)
}

async fn bind(pod: &Pod, ctx: &Context<Pod>, node: &str) -> Result<()> {
    let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, "uid": pod.uid()},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    write::post(ctx.client(), &Kind::of::<Pod>(), ctx.key(), "binding", &binding).await?;
    let note = format!("Successfully assigned {namespace}/{name} to {node}");
    ctx.event(EventType::Normal, "Scheduled", note);
    Ok(())
}

/// Says on the Pod why it waits; once per reason.
async fn refuse(pod: &Pod, ctx: &Context<Pod>, message: &str) -> Result<()> {
    let told = pod::condition(pod, "PodScheduled")
        .is_some_and(|c| c.status == "False" && c.message.as_deref() == Some(message));
    if told {
        return Ok(());
    }
    ctx.event(EventType::Warning, "FailedScheduling", message);
    let mut conditions: Vec<Value> = Vec::new();
    for condition in pod.status.iter().flat_map(|s| s.conditions.iter().flatten()) {
        if condition.type_ != "PodScheduled" {
            conditions.push(serde_json::to_value(condition).map_err(homeostat::Error::terminal)?);
        }
    }
    let since = pod::condition(pod, "PodScheduled")
        .filter(|c| c.status == "False")
        .and_then(|c| c.last_transition_time.as_ref())
        .map_or_else(|| ctx.now(), |t| t.0);
    conditions.push(json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
        "lastTransitionTime": k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(since),
    }));
    let patch = json!({"metadata": {"uid": pod.uid()}, "status": {"conditions": conditions}});
    write::patch(ctx.client(), &Kind::of::<Pod>(), ctx.key(), Some("status"), &patch).await?;
    Ok(())
}
