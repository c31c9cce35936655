//! The scheduler: gives every Pod that has no node one that suits it.
//!
//! [`fit`] is the whole judgement and pure: readiness, `unschedulable`, taints, node selector and
//! required node affinity. A Pod whose volume claims are not bound waits for them. Among the suitable nodes the one with the fewest Pods wins. Resources
//! are not counted: Pods are processes of one host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, EventType, Key, Kind, Outcome, Result};
use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PersistentVolumeClaim, Pod, PodSpec, Taint,
    Toleration,
};
use serde_json::{Value, json};

use crate::{pod, write};

/// The Pods that wait for a node to change.
type Waiting = Arc<Mutex<BTreeSet<Key>>>;

/// The controller.
pub(crate) fn controller() -> Controller<Pod> {
    let waiting = Waiting::default();
    let (woken, claimed) = (Arc::clone(&waiting), Arc::clone(&waiting));
    Controller::new(move |pod, ctx| reconcile(pod, ctx, Arc::clone(&waiting)))
        .named("default-scheduler")
        .watches::<Node>(move |_| {
            woken.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
        })
        .watches::<PersistentVolumeClaim>(move |claim| {
            let waiting = claimed.lock().unwrap_or_else(PoisonError::into_inner);
            let same = |key: &&Key| key.namespace.as_deref() == claim.metadata.namespace.as_deref();
            waiting.iter().filter(same).cloned().collect()
        })
}

async fn reconcile(pod: Arc<Pod>, ctx: Context<Pod>, waiting: Waiting) -> Result<Outcome> {
    let Some(spec) = &pod.spec else { return Ok(Outcome::Done) };
    let wait = |is_waiting: bool| {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if is_waiting { waiting.insert(ctx.key().clone()) } else { waiting.remove(ctx.key()) }
    };
    let ours = spec.scheduler_name.as_deref().is_none_or(|name| name == "default-scheduler");
    let assigned = spec.node_name.as_deref().is_some_and(|name| !name.is_empty());
    if !ours || assigned || !pod::is_active(&pod) {
        wait(false);
        return Ok(Outcome::Done);
    }
    if spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
        return Ok(Outcome::Done);
    }
    // Noted before looking: a node or a claim that comes in between wakes this Pod again.
    wait(true);
    if let Some(message) = unbound_claim(spec, &ctx).await? {
        refuse(&pod, &ctx, &message).await?;
        return Ok(Outcome::Done);
    }
    let nodes = ctx.list_in::<Node>(None, "").await?;
    let mut load: BTreeMap<String, usize> = BTreeMap::new();
    for other in ctx.list_in::<Pod>(None, "").await? {
        if let Some(node) = other.spec.as_ref().and_then(|s| s.node_name.clone()) {
            *load.entry(node).or_default() += usize::from(pod::is_active(&other));
        }
    }
    let suitable = nodes
        .iter()
        .filter(|node| fit(spec, node).is_ok())
        .min_by_key(|node| (load.get(&node.name_any()).copied(), node.name_any()));
    match suitable {
        Some(node) => {
            bind(&pod, &ctx, &node.name_any()).await?;
            wait(false);
        }
        None => refuse(&pod, &ctx, &explain(spec, &nodes)).await?,
    }
    Ok(Outcome::Done)
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

/// `0/2 nodes are available: 1 node(s) were unschedulable, 1 ...`
fn explain(spec: &PodSpec, nodes: &[Arc<Node>]) -> String {
    if nodes.is_empty() {
        return "no nodes available to schedule pods".into();
    }
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for reason in nodes.iter().filter_map(|node| fit(spec, node).err()) {
        *reasons.entry(reason).or_default() += 1;
    }
    let reasons: Vec<String> =
        reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
    format!("0/{} nodes are available: {}.", nodes.len(), reasons.join(", "))
}

/// Whether a Pod may run on a node, or why not.
pub(crate) fn fit(pod: &PodSpec, node: &Node) -> Result<(), String> {
    let tolerations = pod.tolerations.as_deref().unwrap_or_default();
    let spec = node.spec.clone().unwrap_or_default();
    if spec.unschedulable == Some(true) {
        let cordon = Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            effect: "NoSchedule".into(),
            ..Taint::default()
        };
        if !tolerations.iter().any(|t| tolerates(t, &cordon)) {
            return Err("node(s) were unschedulable".into());
        }
    }
    for taint in spec.taints.iter().flatten().filter(|t| t.effect != "PreferNoSchedule") {
        if !tolerations.iter().any(|t| tolerates(t, taint)) {
            let value = taint.value.as_deref().unwrap_or_default();
            return Err(format!("node(s) had untolerated taint(s) {{{}: {value}}}", taint.key));
        }
    }
    let selected = pod.node_selector.iter().flatten().all(|(k, v)| node.labels().get(k) == Some(v));
    let required = pod
        .affinity
        .as_ref()
        .and_then(|a| a.node_affinity.as_ref())
        .and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
    let wanted = required.is_none_or(|r| r.node_selector_terms.iter().any(|t| term(t, node)));
    if selected && wanted {
        Ok(())
    } else {
        Err("node(s) didn't match Pod's node affinity/selector".into())
    }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().is_none_or(|e| e.is_empty() || e == taint.effect);
    let exists = toleration.operator.as_deref() == Some("Exists");
    let key = toleration.key.as_deref().unwrap_or_default();
    let matches = if key.is_empty() {
        exists
    } else {
        key == taint.key
            && (exists
                || toleration.value.as_deref().unwrap_or_default()
                    == taint.value.as_deref().unwrap_or_default())
    };
    effect && matches
}

fn term(term: &NodeSelectorTerm, node: &Node) -> bool {
    let name = node.name_any();
    let label = |key: &str| node.labels().get(key).map(String::as_str);
    let field = |key: &str| (key == "metadata.name").then_some(name.as_str());
    let labels = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    !(labels.is_empty() && fields.is_empty())
        && labels.iter().all(|r| requirement(r, label(&r.key)))
        && fields.iter().all(|r| requirement(r, field(&r.key)))
}

fn requirement(requirement: &NodeSelectorRequirement, found: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = || found.is_some_and(|found| values.iter().any(|value| value == found));
    let compare = |test: fn(i64, i64) -> bool| {
        let number = |text: &str| text.parse::<i64>().ok();
        match (found.and_then(number), values.first().and_then(|v| number(v))) {
            (Some(found), Some(bound)) => test(found, bound),
            _ => false,
        }
    };
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => compare(|found, bound| found > bound),
        "Lt" => compare(|found, bound| found < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(value: Value) -> Node {
        serde_json::from_value(value).unwrap()
    }

    fn pod(mut value: Value) -> PodSpec {
        value["containers"] = json!([]);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_cordoned_or_tainted_node_takes_only_who_tolerates_it() {
        let cordoned = node(json!({"metadata": {"name": "n"}, "spec": {"unschedulable": true}}));
        assert!(fit(&pod(json!({})), &cordoned).is_err());
        assert!(fit(&pod(json!({"tolerations": [{"operator": "Exists"}]})), &cordoned).is_ok());
        let tainted = node(json!({"metadata": {"name": "n"},
            "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}}));
        assert!(fit(&pod(json!({})), &tainted).is_err());
        let tolerant = pod(json!({"tolerations": [{"key": "gpu", "value": "yes"}]}));
        assert!(fit(&tolerant, &tainted).is_ok());
    }

    #[test]
    fn selector_and_affinity_must_both_hold() {
        let node = node(json!({"metadata": {"name": "n", "labels": {"disk": "ssd"}}}));
        assert!(fit(&pod(json!({"nodeSelector": {"disk": "ssd"}})), &node).is_ok());
        assert!(fit(&pod(json!({"nodeSelector": {"disk": "hdd"}})), &node).is_err());
        let by_name = |name: &str| {
            pod(json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]}}}}))
        };
        assert!(fit(&by_name("n"), &node).is_ok());
        assert!(fit(&by_name("m"), &node).is_err());
    }

    #[test]
    fn the_message_counts_nodes_by_reason() {
        let nodes = [
            Arc::new(node(json!({"metadata": {"name": "a"}, "spec": {"unschedulable": true}}))),
            Arc::new(node(json!({"metadata": {"name": "b"}, "spec": {"unschedulable": true}}))),
        ];
        assert_eq!(
            explain(&pod(json!({})), &nodes),
            "0/2 nodes are available: 2 node(s) were unschedulable."
        );
    }
}
