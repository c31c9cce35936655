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
    let (wanted, there) = (app.spec.replicas, seen.replicas.unwrap_or(0));
    let ready = current && available == wanted && updated == wanted && there == wanted;
    let counted = format!("{available} of {wanted} replicas are available");
    // Those of the version before may all be available: that is not what is asked for.
    let older = there - updated;
    let mut conditions = vec![if ready {
        condition::ready("AllAvailable", counted)
    } else if !current {
        let message = format!("the Deployment has yet to take the change up; {counted}");
        condition::not_ready("RollingOut", message)
    } else if older > 0 {
        let message = format!(
            "{older} of the version before are kept until others take their place; {updated} of {wanted} of the \
             declared version were begun"
        );
        condition::not_ready("RollingOut", message)
    } else {
        condition::not_ready("Starting", counted)
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::WebAppSpec;

    fn told(generation: i64, seen: &Value) -> (String, String) {
        let spec = WebAppSpec { image: "hello:2".to_owned(), replicas: 2, port: 8080 };
        let deployment = json!({ "metadata": { "generation": generation }, "status": seen });
        let deployment = serde_json::from_value(deployment).unwrap();
        let condition = status(&WebApp::new("site", spec), &deployment, None).conditions.remove(0);
        (condition.reason, condition.message)
    }

    #[test]
    fn a_version_that_does_not_come_up_is_not_hidden_by_the_one_before() {
        let seen = json!({ "observedGeneration": 2, "replicas": 3, "updatedReplicas": 1,
            "availableReplicas": 2 });
        let (reason, message) = told(2, &seen);
        assert_eq!(reason, "RollingOut");
        assert!(message.starts_with("2 of the version before"), "{message}");
        assert!(message.contains("1 of 2 of the declared version were begun"), "{message}");
        let (reason, message) = told(3, &seen);
        assert_eq!(reason, "RollingOut");
        assert!(message.contains("has yet to take the change up"), "{message}");
    }

    #[test]
    fn one_that_begins_is_told_from_one_that_changes() {
        let seen = json!({ "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2,
            "availableReplicas": 1 });
        let said = ("Starting".to_owned(), "1 of 2 replicas are available".to_owned());
        assert_eq!(told(1, &seen), said);
    }
}
