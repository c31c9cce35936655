//! One pass of the loop for a Database.

use std::sync::Arc;

use homeostat::k8s_openapi::api::apps::v1::StatefulSet;
use homeostat::k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret, Service};
use homeostat::pod::Trouble;
use homeostat::{Context, Error, EventType, Outcome, Result, condition, labels, pod};
use kube::ResourceExt;

use crate::made::{Made, Refusal};
use crate::stuck;
use crate::{Database, DatabaseStatus, children, credentials};

/// The Service has no address yet.
#[derive(Debug, thiserror::Error)]
#[error("Service {0} has no cluster IP yet")]
struct NoAddress(String);

/// Applies the Service, the Secret and the StatefulSet, in the order they need each other, and takes
/// the claims that the StatefulSet makes.
///
/// # Errors
/// A stranger's object of the same name waits until that goes or is given up, a spec that the API
/// refuses in a child or that the data does not allow waits for an edit (the latter with everything
/// else in place); all else is retried.
pub async fn reconcile(database: Arc<Database>, ctx: Context<Database>) -> Result<Outcome> {
    if database.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::Done);
    }
    let kept = keep(&database, &ctx).await;
    if let Err(error) = &kept
        && error.is_terminal()
    {
        // Whatever was ready before is not what is asked for now.
        let conditions = vec![condition::not_ready(error.reason(), error.chain())];
        let before = database.status.clone().unwrap_or_default();
        ctx.status(DatabaseStatus { ready: false, conditions, ..before }).await?;
    }
    let (refused, outcome) = kept?;
    refused.map_or(Ok(outcome), |refused| Err(Error::terminal(refused)))
}

/// Says what of the spec could not be carried out, and when to look again.
async fn keep(database: &Database, ctx: &Context<Database>) -> Result<(Option<Refusal>, Outcome)> {
    let selector = labels::to_selector(&children::selector(database));
    let mut claims = ctx.list_labelled::<PersistentVolumeClaim>(&selector).await?;
    claims.retain(|claim| claim.metadata.deletion_timestamp.is_none());
    let present = ctx.get::<StatefulSet>(&database.name_any()).await?;
    let pods = ctx.list_labelled::<Pod>(&selector).await?;
    let made = Made::read(present.as_deref(), &claims, &pods);
    for claim in &claims {
        ctx.apply_made_for_us(children::owned_claim(database, claim.name_any(), &made)).await?;
    }
    let (spec, refused) = made.settle(database.spec.clone());
    let database = Database { spec, ..database.clone() };

    let invalid = Error::terminal_if_invalid;
    let service = ctx.apply(children::service(&database)).await.map_err(invalid)?;
    let host = address(&service.object)?;
    let password = password(&database, ctx).await?;
    let administrator = credentials::administrator(&database.spec, &host, &password);
    let secret = ctx.apply(children::secret(&database, &administrator)).await.map_err(invalid)?;
    let wish = children::stateful_set(&database, &password);
    let has_other_password = present.is_some_and(|set| children::password_differs(&set, &wish));
    let stateful_set = ctx.apply(wish).await.map_err(invalid)?;
    ctx.announce(&service);
    ctx.announce(&secret);
    ctx.announce(&stateful_set);
    if has_other_password {
        let name = children::secret_name(&database);
        let note =
            format!("the password in Secret {name} is another one: the servers restart with it");
        ctx.event(EventType::Normal, "PasswordChanged", note);
    }
    for pod in stuck::on_an_older_wish(&stateful_set.object, &pods) {
        let note = format!("Pod {} does not start and is no longer as declared", pod.name_any());
        ctx.event(EventType::Normal, "Replaced", note);
        ctx.delete(pod).await?;
    }
    let (stuck, patience) = pod::trouble_among(pods.iter().map(AsRef::as_ref), ctx.now());
    let mut status = status(&database, &stateful_set.object, stuck);
    status.endpoint = Some(administrator.endpoint());
    let before = database.status.as_ref().map_or(&[][..], |status| &status.conditions);
    if let Some(refused) = &refused {
        // The runtime has an event for that.
        status.conditions.retain(|condition| condition.type_ != condition::DEGRADED);
        status.conditions.push(condition::degraded(refused.reason(), refused.to_string()));
    } else if let Some(news) =
        condition::turned_true(before, &status.conditions, condition::DEGRADED)
    {
        ctx.event(EventType::Warning, &news.reason, &news.message);
    }
    ctx.status(status).await?;
    Ok((refused, patience.map_or(Outcome::Done, Outcome::RequeueAfter)))
}

fn address(service: &Service) -> Result<String> {
    let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.clone());
    address.filter(|address| !address.is_empty()).ok_or_else(|| {
        Error::transient(NoAddress(service.metadata.name.clone().unwrap_or_default()))
    })
}

/// The password that is there, or a new one.
async fn password(database: &Database, ctx: &Context<Database>) -> Result<String> {
    let present = ctx.get::<Secret>(&children::secret_name(database)).await?;
    let password = present.as_deref().and_then(operator_credentials::password_in);
    Ok(password.unwrap_or_else(|| operator_credentials::new_password(ctx.env())))
}

fn status(
    database: &Database,
    stateful_set: &StatefulSet,
    stuck: Option<Trouble>,
) -> DatabaseStatus {
    let seen = stateful_set.status.clone().unwrap_or_default();
    let current = seen.observed_generation >= stateful_set.metadata.generation;
    let up = seen.ready_replicas.unwrap_or(0);
    let wanted = database.spec.replicas;
    // One that has yet to start again may have another version or password.
    let ready = current && up == wanted && seen.updated_replicas.unwrap_or(0) == wanted;
    let message = format!("{up} of {wanted} servers are up");
    let ready_condition = if ready {
        condition::ready("ServersUp", message)
    } else {
        condition::not_ready("Starting", message)
    };
    let degraded = stuck.map(|trouble| condition::degraded(trouble.reason, trouble.message));
    DatabaseStatus {
        ready,
        conditions: [ready_condition].into_iter().chain(degraded).collect(),
        ..DatabaseStatus::default()
    }
}
