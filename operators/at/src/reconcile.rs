//! One pass of the loop for an `At`.

use std::sync::Arc;

use homeostat::condition::{self, Condition};
use homeostat::context::EventType;
use homeostat::k8s_openapi::api::core::v1::{
    Container, ContainerStatus, Pod, PodSchedulingGate, PodSpec,
};
use homeostat::pod::{self, Trouble};
use homeostat::{Context, Error, Key, Outcome, Result, labels};
use jiff::SignedDuration;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use serde_json::json;

use crate::{At, AtStatus, OPERATOR, Phase};

/// Keeps a Pod from being scheduled until it is on record.
const GATE: &str = "cnat.programming-kubernetes.info/on-record";

/// The reason when nobody can tell how the command would have ended.
const POD_LOST: &str = "PodLost";
const LOST: &str = "the Pod was removed before the command ended; it is not run again";

/// What a node says of a container whose end it did not see.
const UNSEEN: &str = "ContainerStatusUnknown";

/// The reasons when it is known how the command ended.
const SUCCEEDED: &str = "Succeeded";
const WENT_WELL: &str = "the command succeeded";
const COMMAND_FAILED: &str = "CommandFailed";

/// Waits for the schedule, runs the command once, and follows it to its end.
///
/// # Errors
/// A bad schedule, a Pod that the API refuses and a stranger's Pod of the same name wait for a
/// change; all else is retried.
pub async fn reconcile(at: Arc<At>, ctx: Context<At>) -> Result<Outcome> {
    if at.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::Done);
    }
    let has_begun =
        |status: &&AtStatus| status.phase == Some(Phase::Done) || status.pod_uid.is_some();
    let Some(status) = at.status.as_ref().filter(has_begun) else {
        return begin(&at, &ctx).await;
    };
    let edited = status.observed_generation < at.metadata.generation;
    if edited {
        ctx.event(EventType::Warning, "EditIgnored", EDIT_IGNORED);
    }
    match (status.phase, status.pod_uid.as_deref()) {
        (Some(Phase::Done), _) if edited => {
            ctx.status(status.clone().with_edit_ignored()).await?;
            Ok(Outcome::Done)
        }
        (Some(Phase::Done), _) | (_, None) => Ok(Outcome::Done),
        (_, Some(uid)) => follow(&at, uid, &ctx).await,
    }
}

/// What somebody is told who changes an `At` that has begun.
const EDIT_IGNORED: &str = "the command runs once, and ran or runs as it was before this edit; \
                            create another At to run it again or to run another one";

/// Until a Pod is on record: wait for the schedule, make the Pod, record it, let it go. The Pod
/// cannot run before the last step, so any of them may be repeated, with another Pod too.
async fn begin(at: &At, ctx: &Context<At>) -> Result<Outcome> {
    let due = match at.spec.due() {
        Ok(due) => due,
        Err(error) => {
            ctx.status(AtStatus::refused("BadSchedule", error.to_string())).await?;
            return Err(Error::terminal(error));
        }
    };
    if ctx.now() < due {
        ctx.status(AtStatus::pending(at)).await?;
        return Ok(Outcome::RequeueAt(due));
    }
    ctx.event(EventType::Normal, "Due", "the scheduled time has come");
    let made = ctx.create(pod_for(at)).await.map_err(Error::terminal_if_invalid);
    if let Err(error) = &made
        && error.is_terminal()
    {
        ctx.status(AtStatus::refused(error.reason(), error.chain())).await?;
    }
    let pod = made?;
    // A Pod that only a lagging cache still shows must not become the one on record.
    if recorded_live(at, &pod.uid().unwrap_or_default(), ctx).await?.is_none() {
        return Err(Error::Stale(format!("{} is gone already", pod_name(at))));
    }
    ctx.status(AtStatus::following(&pod, None)).await?;
    open_gate(&pod, ctx).await?;
    Ok(Outcome::Done)
}

/// Once a Pod is on record: that one and no other, to its end.
async fn follow(at: &At, uid: &str, ctx: &Context<At>) -> Result<Outcome> {
    let Some(pod) = recorded(at, uid, ctx).await? else {
        ctx.event(EventType::Warning, POD_LOST, LOST);
        ctx.status(AtStatus::lost(Some(uid.to_owned()))).await?;
        return Ok(Outcome::Done);
    };
    open_gate(&pod, ctx).await?;
    let (stuck, patience) = pod::trouble_among([&*pod], ctx.now());
    let status = AtStatus::following(&pod, stuck);
    let before = at.status.as_ref().map_or(&[][..], |status| &status.conditions);
    if status.phase == Some(Phase::Done) {
        match status.conditions.iter().find(|condition| condition.type_ == condition::DEGRADED) {
            Some(failed) => ctx.event(EventType::Warning, &failed.reason, failed.message.clone()),
            None => ctx.event(EventType::Normal, SUCCEEDED, WENT_WELL),
        }
    } else if let Some(news) =
        condition::turned_true(before, &status.conditions, condition::DEGRADED)
    {
        ctx.event(EventType::Warning, &news.reason, &news.message);
    }
    ctx.status(status).await?;
    Ok(patience.map_or(Outcome::Done, Outcome::RequeueAfter))
}

/// The Pod on record. That it is gone is for the API to say, not for the cache, which may be behind.
async fn recorded(at: &At, uid: &str, ctx: &Context<At>) -> Result<Option<Arc<Pod>>> {
    match ctx.get::<Pod>(&pod_name(at)).await?.filter(|pod| pod.uid().as_deref() == Some(uid)) {
        Some(pod) => Ok(Some(pod)),
        None => recorded_live(at, uid, ctx).await,
    }
}

async fn recorded_live(at: &At, uid: &str, ctx: &Context<At>) -> Result<Option<Arc<Pod>>> {
    let key = Key::namespaced(at.namespace().unwrap_or_default(), pod_name(at));
    let found = ctx.get_live::<Pod>(&key).await?;
    Ok(found.filter(|pod| pod.uid().as_deref() == Some(uid)))
}

/// Lets the Pod run, now that it is on record.
async fn open_gate(pod: &Pod, ctx: &Context<At>) -> Result<()> {
    let mut gates = pod.spec.as_ref().and_then(|s| s.scheduling_gates.clone()).unwrap_or_default();
    if !gates.iter().any(|gate| gate.name == GATE) {
        return Ok(());
    }
    gates.retain(|gate| gate.name != GATE);
    // The field goes with its last gate.
    let gates = (!gates.is_empty()).then_some(gates);
    let (uid, key) = (pod.uid(), Key::of(pod));
    let patch = json!({ "metadata": { "uid": uid }, "spec": { "schedulingGates": gates } });
    ctx.merge_patch::<Pod>(&key, &patch).await?;
    Ok(())
}

fn pod_name(at: &At) -> String {
    format!("{}-pod", at.name_any())
}

/// The Pod that runs the command, exactly once.
fn pod_for(at: &At) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(pod_name(at)),
            labels: Some(labels::recommended("at", &at.name_any(), OPERATOR)),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![Container {
                name: "command".to_owned(),
                image: Some("busybox".to_owned()),
                command: Some(vec!["sh".to_owned(), "-c".to_owned(), at.spec.command.clone()]),
                ..Container::default()
            }],
            scheduling_gates: Some(vec![PodSchedulingGate { name: GATE.to_owned() }]),
            // Restarting would run the command again.
            restart_policy: Some("Never".to_owned()),
            ..PodSpec::default()
        }),
        status: None,
    }
}

impl AtStatus {
    fn pending(at: &At) -> Self {
        let message = format!("runs at {}", at.spec.schedule);
        Self::new(Phase::Pending, None, vec![condition::not_ready("Scheduled", message)])
    }

    fn refused(reason: &str, message: String) -> Self {
        let conditions = vec![
            condition::not_ready(reason, message.clone()),
            condition::degraded(reason, message),
        ];
        Self::new(Phase::Pending, None, conditions)
    }

    /// What the Pod makes of it; `stuck` is what keeps it from running.
    fn following(pod: &Pod, stuck: Option<Trouble>) -> Self {
        let (status, uid) = (pod.status.as_ref(), pod.uid());
        match status.and_then(|status| status.phase.as_deref()) {
            Some("Succeeded") => {
                let ready = condition::ready(SUCCEEDED, WENT_WELL);
                Self::new(Phase::Done, uid, vec![ready])
            }
            Some("Failed") if was_removed(pod) => Self::lost(uid),
            Some("Failed") => {
                let message = format!("the command failed{}", exit_code(pod));
                Self::new(
                    Phase::Done,
                    uid,
                    vec![
                        condition::not_ready(COMMAND_FAILED, message.clone()),
                        condition::degraded(COMMAND_FAILED, message),
                    ],
                )
            }
            Some("Running") => {
                let running = condition::not_ready("Running", "the command runs");
                Self::new(Phase::Running, uid, vec![running])
            }
            _ => {
                let starting = condition::not_ready("Starting", "the Pod has yet to start");
                let stuck =
                    stuck.map(|trouble| condition::degraded(trouble.reason, trouble.message));
                Self::new(Phase::Running, uid, [starting].into_iter().chain(stuck).collect())
            }
        }
    }

    fn lost(uid: Option<String>) -> Self {
        let conditions =
            vec![condition::not_ready(POD_LOST, LOST), condition::degraded(POD_LOST, LOST)];
        Self::new(Phase::Done, uid, conditions)
    }

    /// The same, and that it does not follow the spec any more.
    fn with_edit_ignored(mut self) -> Self {
        let ready = |condition: &&mut Condition| condition.type_ == condition::READY;
        if let Some(ready) = self.conditions.iter_mut().find(ready)
            && !ready.message.ends_with(EDIT_IGNORED)
        {
            ready.message = format!("{}; {EDIT_IGNORED}", ready.message);
        }
        // Of the generation that it is written for.
        self.observed_generation = None;
        self
    }

    fn new(phase: Phase, pod_uid: Option<String>, conditions: Vec<Condition>) -> Self {
        Self { phase: Some(phase), pod_uid, conditions, observed_generation: None }
    }
}

/// Whether the command was ended by somebody who removed the Pod: it had not ended before.
fn was_removed(pod: &Pod) -> bool {
    let Some(deleted) = &pod.metadata.deletion_timestamp else { return false };
    // The time stamp is that by which it has to be over.
    let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
    let asked = deleted.0.saturating_sub(grace).unwrap_or(deleted.0);
    let ended = container(pod).and_then(|container| {
        container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref().map(|time| time.0)
    });
    // Both are whole seconds: within the same one it was the removal.
    ended.is_none_or(|ended| ended >= asked)
}

fn container(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

/// ` with exit code 3`, where the Pod says so.
fn exit_code(pod: &Pod) -> String {
    let terminated = container(pod).and_then(|status| status.state.as_ref()?.terminated.as_ref());
    terminated.map_or_else(String::new, |end| {
        let unseen = end.reason.as_deref() == Some(UNSEEN);
        let why = if unseen { ": its node ended before it, or with it" } else { "" };
        format!(" with exit code {}{why}", end.exit_code)
    })
}

#[cfg(test)]
mod tests {
    use homeostat::k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;

    fn reason(removed: Option<(&str, i64)>, ended: &str) -> String {
        let (stamp, grace) = removed.unzip();
        let state = json!({ "terminated": { "exitCode": 143, "finishedAt": ended } });
        let container = json!({ "name": "command", "image": "busybox", "imageID": "", "ready": false,
            "restartCount": 0, "state": state });
        let metadata: Value =
            json!({ "uid": "1", "deletionTimestamp": stamp, "deletionGracePeriodSeconds": grace });
        let pod: Pod = serde_json::from_value(json!({ "metadata": metadata,
            "status": { "phase": "Failed", "containerStatuses": [container] } }))
        .unwrap();
        let status = AtStatus::following(&pod, None);
        assert_eq!(status.phase, Some(Phase::Done));
        status.conditions.into_iter().find(|one| one.type_ == condition::DEGRADED).unwrap().reason
    }

    #[test]
    fn a_command_that_failed_is_told_from_one_whose_pod_was_removed() {
        assert_eq!(reason(None, "2026-01-01T00:00:05Z"), "CommandFailed");
        // Asked to go at second 10, with 30 seconds to do so.
        let removed = Some(("2026-01-01T00:00:40Z", 30));
        assert_eq!(reason(removed, "2026-01-01T00:00:12Z"), POD_LOST);
        assert_eq!(reason(removed, "2026-01-01T00:00:10Z"), POD_LOST);
        assert_eq!(reason(removed, "2026-01-01T00:00:09Z"), "CommandFailed");
    }

    #[test]
    fn a_command_that_went_with_its_node_is_told_as_such() {
        let ended = |reason: &str| {
            let end = json!({ "exitCode": 137, "reason": reason });
            let container = json!({ "name": "command", "ready": false, "restartCount": 0,
                "image": "busybox", "imageID": "", "state": { "terminated": end } });
            let pod = json!({ "status": { "containerStatuses": [container] } });
            exit_code(&serde_json::from_value(pod).unwrap())
        };
        assert_eq!(ended("Error"), " with exit code 137");
        assert_eq!(ended(UNSEEN), " with exit code 137: its node ended before it, or with it");
    }
}
