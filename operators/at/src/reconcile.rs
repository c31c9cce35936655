//! One pass of the loop for an `At`.

use std::sync::Arc;

use homeostat::context::EventType;
use homeostat::k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use homeostat::{Context, Error, Outcome, Result, condition, labels};
use kube::api::ObjectMeta;
use kube::{Api, ResourceExt};

use crate::{At, AtStatus, OPERATOR, Phase};

/// Waits for the schedule, runs the command once, and follows it to its end.
///
/// # Errors
/// A bad schedule and a stranger's Pod of the same name wait for a change; all else is retried.
pub async fn reconcile(at: Arc<At>, ctx: Context<At>) -> Result<Outcome> {
    let phase = at.status.as_ref().and_then(|status| status.phase);
    if phase == Some(Phase::Done) || at.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::Done);
    }
    let due = at.spec.due().map_err(Error::terminal)?;
    if phase.is_none() || phase == Some(Phase::Pending) {
        if ctx.now() < due {
            ctx.status(AtStatus::pending(&at)).await?;
            return Ok(Outcome::RequeueAt(due));
        }
        ctx.event(EventType::Normal, "Due", "the scheduled time has come");
    } else if lost(&at, &ctx).await? {
        ctx.event(EventType::Warning, "PodLost", "the Pod was removed before the command ended");
        ctx.status(AtStatus::lost()).await?;
        return Ok(Outcome::Done);
    }
    let pod = ctx.create(pod_for(&at)).await?;
    let status = AtStatus::following(&pod);
    if status.phase == Some(Phase::Done) {
        ctx.event(EventType::Normal, "Finished", "the command has ended");
    }
    ctx.status(status).await?;
    Ok(Outcome::Done)
}

/// Whether the Pod that was seen running is gone. Asks the API, not the cache: the cache of Pods
/// may be behind that of Ats, and a command must not run twice (nor be given up) for that.
async fn lost(at: &At, ctx: &Context<At>) -> Result<bool> {
    let name = pod_name(at);
    if ctx.get::<Pod>(&name).await?.is_some() {
        return Ok(false);
    }
    let pods: Api<Pod> = Api::namespaced(ctx.client().clone(), &at.namespace().unwrap_or_default());
    Ok(pods.get_opt(&name).await?.is_none())
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
        Self::new(Phase::Pending, vec![condition::not_ready("Scheduled", message)])
    }

    fn following(pod: &Pod) -> Self {
        let status = pod.status.as_ref();
        match status.and_then(|status| status.phase.as_deref()) {
            Some("Succeeded") => {
                Self::new(Phase::Done, vec![condition::ready("Succeeded", "the command succeeded")])
            }
            Some("Failed") => {
                let message = format!("the command failed{}", exit_code(pod));
                Self::new(
                    Phase::Done,
                    vec![
                        condition::not_ready("Failed", message.clone()),
                        condition::degraded("CommandFailed", message),
                    ],
                )
            }
            _ => {
                Self::new(Phase::Running, vec![condition::not_ready("Running", "the command runs")])
            }
        }
    }

    fn lost() -> Self {
        let message = "the Pod was removed before the command ended; it is not run again";
        Self::new(
            Phase::Done,
            vec![condition::not_ready("PodLost", message), condition::degraded("PodLost", message)],
        )
    }

    fn new(phase: Phase, conditions: Vec<homeostat::condition::Condition>) -> Self {
        Self { phase: Some(phase), conditions, observed_generation: None }
    }
}

/// ` with exit code 3`, where the Pod says so.
fn exit_code(pod: &Pod) -> String {
    let container =
        pod.status.as_ref().and_then(|status| status.container_statuses.as_ref()?.first());
    let terminated = container.and_then(|status| status.state.as_ref()?.terminated.as_ref());
    terminated.map_or_else(String::new, |end| format!(" with exit code {}", end.exit_code))
}
