//! One pass of the loop for a WebApp.

use std::sync::Arc;

use homeostat::k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use homeostat::k8s_openapi::api::core::v1::Pod;
use homeostat::pod::Trouble;
use homeostat::{Context, Error, EventType, Outcome, Result, condition, labels, pod};

use crate::{WebApp, WebAppStatus, children};

/// Applies the two children and reports what answers.
///
/// # Errors
/// A stranger's Deployment or Service of the same name waits until it goes or is given up, a spec
/// that the API refuses in a child waits for an edit; all else is retried.
pub async fn reconcile(app: Arc<WebApp>, ctx: Context<WebApp>) -> Result<Outcome> {
    if app.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::Done);
    }
    let kept = keep(&app, &ctx).await;
    if let Err(error) = &kept
        && error.is_terminal()
    {
        // Whatever was ready before is not what is asked for now.
        let conditions = vec![condition::not_ready(error.reason(), error.chain())];
        let before = app.status.clone().unwrap_or_default();
        ctx.status(WebAppStatus { ready: false, conditions, ..before }).await?;
    }
    kept
}

async fn keep(app: &WebApp, ctx: &Context<WebApp>) -> Result<Outcome> {
    let invalid = Error::terminal_if_invalid;
    let deployment = ctx.apply(children::deployment(app)).await.map_err(invalid)?;
    let service = ctx.apply(children::service(app)).await.map_err(invalid)?;
    ctx.announce(&deployment);
    ctx.announce(&service);
    let selector = labels::to_selector(&children::selector(app));
    let pods = ctx.list_labelled::<Pod>(&selector).await?;
    let (stuck, patience) = pod::trouble_among(pods.iter().map(AsRef::as_ref), ctx.now());
    let status = status(app, &deployment.object, stuck);
    let before = app.status.as_ref().map_or(&[][..], |status| &status.conditions);
    if let Some(news) = condition::turned_true(before, &status.conditions, condition::DEGRADED) {
        ctx.event(EventType::Warning, &news.reason, &news.message);
    }
    ctx.status(WebAppStatus { selector: Some(selector), ..status }).await?;
    Ok(patience.map_or(Outcome::Done, Outcome::RequeueAfter))
}

/// What the Deployment's status means for the WebApp.
fn status(app: &WebApp, deployment: &Deployment, stuck: Option<Trouble>) -> WebAppStatus {
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
    if let Some(trouble) = stuck {
        conditions.push(condition::degraded(trouble.reason, trouble.message));
    } else if let Some(message) = trouble(&seen) {
        conditions.push(condition::degraded("DeploymentFailing", message));
    }
    WebAppStatus { available_replicas: available, ready, conditions, ..WebAppStatus::default() }
}

/// What the Deployment complains about.
fn trouble(status: &DeploymentStatus) -> Option<String> {
    status.conditions.iter().flatten().find_map(|condition| {
        let stuck = condition.type_ == "Progressing" && condition.status == "False";
        let failing = condition.type_ == "ReplicaFailure" && condition.status == "True";
        (stuck || failing).then(|| condition.message.clone().unwrap_or_default())
    })
}
