//! One pass of the loop for a WebApp.

use std::sync::Arc;

use homeostat::context::EventType;
use homeostat::k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use homeostat::{Change, Context, Outcome, Result, condition};
use kube::ResourceExt;

use crate::{WebApp, WebAppStatus, children};

/// Applies the two children and reports what answers.
///
/// # Errors
/// A stranger's Deployment or Service of the same name waits for a change; all else is retried.
pub async fn reconcile(app: Arc<WebApp>, ctx: Context<WebApp>) -> Result<Outcome> {
    if app.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::Done);
    }
    let deployment = ctx.apply(children::deployment(&app)).await?;
    let service = ctx.apply(children::service(&app)).await?;
    for (kind, change) in [("Deployment", deployment.change), ("Service", service.change)] {
        match change {
            Change::Created => ctx.event(
                EventType::Normal,
                "Created",
                format!("created {kind} {}", app.name_any()),
            ),
            Change::Changed => ctx.event(
                EventType::Normal,
                "Corrected",
                format!("{kind} {} is as declared again", app.name_any()),
            ),
            Change::Unchanged | Change::Deleted => {}
        }
    }
    ctx.status(status(&app, &deployment.object)).await?;
    Ok(Outcome::Done)
}

/// What the Deployment's status means for the WebApp.
fn status(app: &WebApp, deployment: &Deployment) -> WebAppStatus {
    let seen = deployment.status.clone().unwrap_or_default();
    // Counters of an older generation speak of Pods that are about to be replaced.
    let current = seen.observed_generation >= deployment.metadata.generation;
    let available = seen.available_replicas.unwrap_or(0);
    let updated = seen.updated_replicas.unwrap_or(0);
    let wanted = app.spec.replicas;
    let ready =
        current && available == wanted && updated == wanted && seen.replicas.unwrap_or(0) == wanted;
    let mut conditions = vec![if ready {
        condition::ready("AllAvailable", format!("{available} of {wanted} replicas are available"))
    } else {
        condition::not_ready(
            "Progressing",
            format!("{available} of {wanted} replicas are available"),
        )
    }];
    if let Some(message) = trouble(&seen) {
        conditions.push(condition::degraded("DeploymentFailing", message));
    }
    let selector: Vec<String> =
        children::selector(app).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    WebAppStatus {
        available_replicas: available,
        ready,
        selector: Some(selector.join(",")),
        conditions,
        observed_generation: None,
    }
}

/// What the Deployment complains about.
fn trouble(status: &DeploymentStatus) -> Option<String> {
    status.conditions.iter().flatten().find_map(|condition| {
        let stuck = condition.type_ == "Progressing" && condition.status == "False";
        let failing = condition.type_ == "ReplicaFailure" && condition.status == "True";
        (stuck || failing).then(|| condition.message.clone().unwrap_or_default())
    })
}
