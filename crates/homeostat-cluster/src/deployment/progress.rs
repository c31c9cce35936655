//! The status of a Deployment: counters, and the conditions `Available`, `Progressing`. Pure.

use std::time::Duration;

use homeostat::kube::ResourceExt;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus,
};

use super::condition::{find, refresh, set};
use super::limits;
use super::revision::{Sets, replicas};

/// What this reconcile did about the current ReplicaSet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Made it.
    Created,
    /// It was there.
    Found,
    /// There is none yet.
    Nothing,
}

/// The status that the sets amount to.
pub(super) fn status(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sets: &Sets,
    step: Step,
    now: Timestamp,
) -> DeploymentStatus {
    let before = deployment.status.clone().unwrap_or_default();
    let desired = spec.replicas.unwrap_or(1);
    let mut counted = count(deployment, &before, sets);
    let mut conditions = before.conditions.clone().unwrap_or_default();
    let available = counted.available_replicas.unwrap_or(0);
    if available >= desired - limits::max_unavailable(spec) {
        let message = "Deployment has minimum availability.";
        set(&mut conditions, "Available", "True", "MinimumReplicasAvailable", message, now);
    } else {
        let message = "Deployment does not have minimum availability.";
        set(&mut conditions, "Available", "False", "MinimumReplicasUnavailable", message, now);
    }
    let failure = sets.all().find_map(|set| {
        set.status.as_ref()?.conditions.iter().flatten().find(|c| c.type_ == "ReplicaFailure")
    });
    match failure {
        Some(c) => {
            let reason = c.reason.as_deref().unwrap_or("FailedCreate");
            let message = c.message.as_deref().unwrap_or_default();
            set(&mut conditions, "ReplicaFailure", &c.status, reason, message, now);
        }
        None => conditions.retain(|c| c.type_ != "ReplicaFailure"),
    }
    if has_deadline(spec) {
        let report = Report { deployment, spec, sets, step, before: &before, after: &counted, now };
        report.progress(&mut conditions);
    }
    counted.conditions = Some(conditions);
    counted
}

fn count(deployment: &Deployment, before: &DeploymentStatus, sets: &Sets) -> DeploymentStatus {
    let sum = |field: &dyn Fn(&k8s_openapi::api::apps::v1::ReplicaSetStatus) -> i32| {
        sets.all().filter_map(|set| set.status.as_ref()).map(field).sum::<i32>()
    };
    let positive = |number: i32| (number > 0).then_some(number);
    let available = sum(&|s| s.available_replicas.unwrap_or(0));
    let wanted: i32 = sets.all().map(|set| replicas(set)).sum();
    let updated = sets.new.as_ref().and_then(|set| set.status.as_ref()).map_or(0, |s| s.replicas);
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: positive(sum(&|s| s.replicas)),
        updated_replicas: positive(updated),
        ready_replicas: positive(sum(&|s| s.ready_replicas.unwrap_or(0))),
        available_replicas: positive(available),
        unavailable_replicas: positive(wanted - available),
        terminating_replicas: Some(sum(&|s| s.terminating_replicas.unwrap_or(0))),
        collision_count: before.collision_count,
        conditions: None,
    }
}

fn has_deadline(spec: &DeploymentSpec) -> bool {
    spec.progress_deadline_seconds != Some(i32::MAX)
}

struct Report<'a> {
    deployment: &'a Deployment,
    spec: &'a DeploymentSpec,
    sets: &'a Sets,
    step: Step,
    before: &'a DeploymentStatus,
    after: &'a DeploymentStatus,
    now: Timestamp,
}

impl Report<'_> {
    fn progress(&self, conditions: &mut Vec<DeploymentCondition>) {
        let now = self.now;
        let reason = find(conditions, "Progressing").and_then(|c| c.reason.clone());
        let was_paused = reason.as_deref() == Some("DeploymentPaused");
        if self.spec.paused == Some(true) {
            // A rollout that ran into its deadline stays known as such.
            if reason.as_deref() != Some("ProgressDeadlineExceeded") {
                let message = "Deployment is paused";
                set(conditions, "Progressing", "Unknown", "DeploymentPaused", message, now);
            }
            return;
        }
        if was_paused {
            let message = "Deployment is resumed";
            set(conditions, "Progressing", "Unknown", "DeploymentResumed", message, now);
        }
        let subject = match &self.sets.new {
            Some(set) => format!("ReplicaSet \"{}\"", set.name_any()),
            None => format!("Deployment \"{}\"", self.deployment.name_any()),
        };
        if let Some(new) = &self.sets.new {
            let name = new.name_any();
            if self.step == Step::Created {
                let message = format!("Created new replica set \"{name}\"");
                refresh(conditions, "NewReplicaSetCreated", &message, now);
            } else if reason.is_none() {
                let message = format!("Found new replica set \"{name}\"");
                refresh(conditions, "FoundNewReplicaSet", &message, now);
            }
        }
        let finished = self.before.replicas == self.before.updated_replicas
            && reason.as_deref() == Some("NewReplicaSetAvailable")
            && self.after.replicas == self.after.updated_replicas;
        if finished && self.step != Step::Created {
            return;
        }
        if self.is_complete() {
            let message = format!("{subject} has successfully progressed.");
            set(conditions, "Progressing", "True", "NewReplicaSetAvailable", &message, now);
        } else if self.has_progressed() {
            let message = format!("{subject} is progressing.");
            refresh(conditions, "ReplicaSetUpdated", &message, now);
        } else if let Some(at) = expiry(self.spec, conditions)
            && at <= now
        {
            let message = format!("{subject} has timed out progressing.");
            set(conditions, "Progressing", "False", "ProgressDeadlineExceeded", &message, now);
        }
    }

    fn is_complete(&self) -> bool {
        let desired = self.spec.replicas.unwrap_or(1);
        let after = self.after;
        self.sets.new.is_some()
            && after.updated_replicas.unwrap_or(0) == desired
            && after.replicas.unwrap_or(0) == desired
            && after.available_replicas.unwrap_or(0) == desired
    }

    fn has_progressed(&self) -> bool {
        let old = |status: &DeploymentStatus| {
            status.replicas.unwrap_or(0) - status.updated_replicas.unwrap_or(0)
        };
        let (before, after) = (self.before, self.after);
        after.updated_replicas > before.updated_replicas
            || old(after) < old(before)
            || after.ready_replicas > before.ready_replicas
            || after.available_replicas > before.available_replicas
    }
}

/// When the rollout counts as stuck; `None` when it is complete, stuck already, or has no deadline.
fn expiry(spec: &DeploymentSpec, conditions: &[DeploymentCondition]) -> Option<Timestamp> {
    let progressing = find(conditions, "Progressing")?;
    let reason = progressing.reason.as_deref();
    if matches!(
        reason,
        Some("NewReplicaSetAvailable" | "ProgressDeadlineExceeded" | "DeploymentPaused")
    ) {
        return None;
    }
    let seconds = u64::try_from(spec.progress_deadline_seconds.unwrap_or(600)).unwrap_or(0);
    let since = progressing.last_update_time.as_ref()?.0;
    since.checked_add(Duration::from_secs(seconds)).ok()
}

/// When to look again without an event.
pub(super) fn deadline(
    spec: &DeploymentSpec,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Timestamp> {
    if !has_deadline(spec) {
        return None;
    }
    expiry(spec, status.conditions.as_deref()?).filter(|at| *at > now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn sets(available: i32) -> Sets {
        let set = serde_json::from_value(json!({
            "metadata": {"name": "web-1", "uid": "1"}, "spec": {"replicas": 2, "selector": {}},
            "status": {"replicas": 2, "readyReplicas": available, "availableReplicas": available},
        }))
        .unwrap();
        Sets { new: Some(Arc::new(set)), old: vec![] }
    }

    fn reason(status: &DeploymentStatus) -> &str {
        find(status.conditions.as_deref().unwrap(), "Progressing")
            .unwrap()
            .reason
            .as_deref()
            .unwrap()
    }

    #[test]
    fn a_rollout_without_progress_misses_its_deadline_and_one_with_progress_completes() {
        let mut deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"name": "web", "generation": 1},
            "spec": {"replicas": 2, "selector": {}, "template": {}, "progressDeadlineSeconds": 60},
        }))
        .unwrap();
        let spec = deployment.spec.clone().unwrap();
        let mut step = |available, step, now| {
            let status = status(&deployment, &spec, &sets(available), step, at(now));
            deployment.status = Some(status.clone());
            status
        };
        let created = step(0, Step::Created, 0);
        assert_eq!(reason(&created), "ReplicaSetUpdated");
        assert_eq!(deadline(&spec, &created, at(0)), Some(at(60)));
        assert_eq!(reason(&step(0, Step::Found, 59)), "ReplicaSetUpdated");
        assert_eq!(reason(&step(0, Step::Found, 60)), "ProgressDeadlineExceeded");
        assert_eq!(reason(&step(1, Step::Found, 70)), "ReplicaSetUpdated");
        let done = step(2, Step::Found, 80);
        assert_eq!(reason(&done), "NewReplicaSetAvailable");
        assert_eq!(deadline(&spec, &done, at(80)), None);
        assert_eq!(step(2, Step::Found, 90), done, "a converged status does not change");
    }
}
