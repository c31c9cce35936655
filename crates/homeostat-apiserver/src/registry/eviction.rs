//! `POST pods/eviction`: deletes a Pod unless a disruption budget forbids it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::Tracking;
use super::options::{DeleteOptions, Query, WriteOptions};
use super::update::{Area, Update};
use super::{Body, Registry, Target, Writer, metadata, posted, seconds};
use crate::admission;
use crate::status::Status;

const BUDGETS: &str = "poddisruptionbudgets";
/// A budget with more Pods on their way out than this is stuck.
const MOST_DISRUPTED: usize = 2000;

impl Registry {
    /// Evicts the Pod.
    ///
    /// # Errors
    /// 429 when its budget is used up, 500 when it has more than one.
    pub fn evict(
        &self,
        target: &Target,
        mut body: Body,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        // The version before is read the same way.
        if body.value["apiVersion"] == "policy/v1beta1" {
            body.value["apiVersion"] = "policy/v1".into();
        }
        let writer = self.writer_at(&options.inquiry);
        let review = writer.posted(target, "eviction", body, options)?;
        posted::check_name(target, &review)?;
        admission::validate(&review)?;
        let wanted = DeleteOptions::parse(&Query::new(), review.object.get("deleteOptions"))?;
        let wanted = DeleteOptions {
            inquiry: Arc::clone(&options.inquiry),
            user: options.user.clone(),
            dry_run: wanted.dry_run || options.dry_run,
            ..wanted
        };
        let pod = writer.live(target)?.1;
        if !is_unguarded(&pod) {
            writer.use_budget(&pod, &wanted)?;
        }
        super::delete::check_preconditions(target, &pod, &wanted)?;
        if !wanted.dry_run {
            writer.mark_evicted(target, options)?;
        }
        let (stored, marked) = writer.live(target)?;
        writer.delete_admitted(target, &wanted, stored, &marked)?;
        Ok(posted::done())
    }
}

/// Pods that do no work any more, or not yet, are no loss.
fn is_unguarded(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or("");
    metadata::is_deleting(pod) || matches!(phase, "Succeeded" | "Failed" | "Pending")
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

impl Writer<'_> {
    /// Takes the Pod off its budget, if it has one.
    fn use_budget(&self, pod: &Value, wanted: &DeleteOptions) -> Result<(), Status> {
        let Some(budget) = self.budget_of(pod)? else { return Ok(()) };
        let number = |pointer: &str| budget.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
        let (healthy, desired) =
            (number("/status/currentHealthy"), number("/status/desiredHealthy"));
        if !is_ready(pod) {
            let always =
                budget.pointer("/spec/unhealthyPodEvictionPolicy") == Some(&json!("AlwaysAllow"));
            if always || (healthy >= desired && desired > 0) {
                return Ok(());
            }
        }
        let name = metadata::name(&budget);
        if number("/status/observedGeneration") < metadata::generation(&budget) {
            let words =
                format!("The disruption budget {name} is still being processed by the server.");
            return Err(too_many(&words, Some(10)));
        }
        let allowed = number("/status/disruptionsAllowed");
        let disrupted = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
        let refuse = |why: &str| {
            let mut status = Status::new(
                403,
                "Forbidden",
                format!("poddisruptionbudget.policy {name:?} is forbidden: {why}"),
            );
            let details = json!({"name": name, "group": "policy", "kind": "poddisruptionbudget"});
            status.details = Some(Box::new(details));
            Err(status)
        };
        if allowed < 0 {
            return refuse("pdb disruptions allowed is negative");
        }
        if disrupted.is_some_and(|pods| pods.len() > MOST_DISRUPTED) {
            return refuse(
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            );
        }
        if allowed == 0 {
            return Err(too_many(&exhausted(&budget, healthy, desired), None));
        }
        if wanted.dry_run {
            return Ok(());
        }
        self.note_disruption(&budget, metadata::name(pod), allowed - 1, wanted)
    }

    /// The budget that guards the Pod.
    fn budget_of(&self, pod: &Value) -> Result<Option<Value>, Status> {
        let range = super::Range {
            namespace: Some(metadata::namespace(pod).to_owned()),
            ..Default::default()
        };
        let all = self.registry.store.list("poddisruptionbudgets.policy", &range);
        let labels = metadata::labels(pod);
        let mut found = Vec::new();
        for stored in all.map(|page| page.items).unwrap_or_default() {
            let budget = stored.value();
            let selector = budget.pointer("/spec/selector").filter(|selector| selector.is_object());
            if selector.is_some_and(|selector| admission::selects(selector, &labels)) {
                found.push(budget);
            }
        }
        if found.len() > 1 {
            return Err(Status::new(
                500,
                "",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource \
                 does not support.",
            ));
        }
        Ok(found.pop())
    }

    /// Tells the budget's controller that the Pod is about to go.
    fn note_disruption(
        &self,
        budget: &Value,
        pod: &str,
        allowed: i64,
        wanted: &DeleteOptions,
    ) -> Result<(), Status> {
        let catalogue = self.registry.catalogue();
        let Some(kind) = catalogue.find("policy", "v1", BUDGETS) else { return Ok(()) };
        let target = Target {
            kind: Arc::clone(kind),
            namespace: metadata::namespace(budget).to_owned(),
            name: metadata::name(budget).to_owned(),
        };
        let options = WriteOptions {
            manager: "kube-apiserver".to_owned(),
            inquiry: Arc::clone(&wanted.inquiry),
            ..WriteOptions::default()
        };
        let now = seconds(self.time);
        let update = Update {
            area: Area::Status,
            tracking: Tracking::Update,
            unconditional: true,
            take: None,
        };
        self.update(&target, update, &options, |live| {
            let mut next = live.clone();
            next["status"]["disruptionsAllowed"] = allowed.into();
            next["status"]["disruptedPods"][pod] = now.clone().into();
            if allowed == 0 {
                used_up(&mut next, &now);
            }
            Ok(next)
        })?;
        Ok(())
    }

    /// Says on the Pod that it goes because somebody asked for it.
    fn mark_evicted(&self, target: &Target, options: &WriteOptions) -> Result<(), Status> {
        let update = Update {
            area: Area::Part("eviction"),
            tracking: Tracking::Done,
            unconditional: true,
            take: None,
        };
        let now = seconds(self.time);
        self.update(target, update, options, |live| {
            let mut pod = live.clone();
            let Some(status) = pod["status"].as_object_mut() else { return Ok(pod) };
            let conditions = status.entry("conditions").or_insert_with(|| json!([]));
            if let Value::Array(conditions) = conditions {
                let is_said = |condition: &Value| {
                    condition["type"] == "DisruptionTarget" && condition["status"] == "True"
                };
                if !conditions.iter().any(is_said) {
                    conditions.retain(|condition| condition["type"] != "DisruptionTarget");
                    conditions.push(json!({
                        "type": "DisruptionTarget",
                        "status": "True",
                        "lastProbeTime": null,
                        "lastTransitionTime": now,
                        "reason": "EvictionByEvictionAPI",
                        "message": "Eviction API: evicting",
                    }));
                }
            }
            Ok(pod)
        })?;
        Ok(())
    }
}

/// The budget allows no more disruptions.
fn used_up(budget: &mut Value, now: &str) {
    let generation = budget.pointer("/status/observedGeneration").cloned();
    let Some(status) = budget["status"].as_object_mut() else { return };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(conditions) = conditions else { return };
    let said = conditions.iter().position(|condition| condition["type"] == "DisruptionAllowed");
    let mut condition = json!({
        "type": "DisruptionAllowed",
        "status": "False",
        "lastTransitionTime": now,
        "reason": "InsufficientPods",
        "message": "",
    });
    if let Some(generation) = generation {
        condition["observedGeneration"] = generation;
    }
    match said {
        Some(place) => {
            if conditions[place]["status"] == "False" {
                condition["lastTransitionTime"] = conditions[place]["lastTransitionTime"].clone();
            }
            conditions[place] = condition;
        }
        None => conditions.push(condition),
    }
}

/// Why a budget allows nothing.
fn exhausted(budget: &Value, healthy: i64, desired: i64) -> String {
    let name = metadata::name(budget);
    let conditions = budget.pointer("/status/conditions").and_then(Value::as_array);
    let denied = conditions.into_iter().flatten().find(|condition| {
        condition["type"] == "DisruptionAllowed"
            && condition["status"] == "False"
            && condition["message"].as_str().is_some_and(|message| !message.is_empty())
    });
    let text = |field: &str| denied.and_then(|denied| denied[field].as_str()).unwrap_or("");
    match denied {
        Some(_) if text("reason") == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed \
             sync: {}",
            text("message")
        ),
        _ if healthy <= desired => format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        ),
        Some(_) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            text("reason"),
            text("message")
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// 429 because of the budget.
fn too_many(why: &str, again_after: Option<u64>) -> Status {
    let words = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut status = Status::new(429, "TooManyRequests", words);
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
    if let Some(seconds) = again_after {
        details["retryAfterSeconds"] = seconds.into();
    }
    status.details = Some(Box::new(details));
    status
}
