//! One pass of the loop for a Database.

use std::sync::Arc;

use homeostat::context::EventType;
use homeostat::k8s_openapi::api::apps::v1::StatefulSet;
use homeostat::k8s_openapi::api::core::v1::{Secret, Service};
use homeostat::{Change, Context, Error, Outcome, Result, condition};

use crate::{Database, DatabaseStatus, PORT, children, credentials};

/// The Service has no address yet.
#[derive(Debug, thiserror::Error)]
#[error("Service {0} has no cluster IP yet")]
struct NoAddress(String);

/// Applies the Service, the Secret and the StatefulSet, in the order they need each other.
///
/// # Errors
/// A stranger's object of the same name waits for a change; all else is retried.
pub async fn reconcile(database: Arc<Database>, ctx: Context<Database>) -> Result<Outcome> {
    if database.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::Done);
    }
    let service = ctx.apply(children::service(&database)).await?;
    let host = address(&service.object)?;
    let password = password(&database, &ctx).await?;
    let data = credentials::data(&password, &host, PORT, &database.spec.database_name);
    let secret = ctx.apply(children::secret(&database, data)).await?;
    let stateful_set = ctx.apply(children::stateful_set(&database, &password)).await?;
    let changes = [
        ("Service", service.change),
        ("Secret", secret.change),
        ("StatefulSet", stateful_set.change),
    ];
    for (kind, change) in changes {
        match change {
            Change::Created => {
                ctx.event(EventType::Normal, "Created", format!("created the {kind}"));
            }
            Change::Changed => ctx.event(
                EventType::Normal,
                "Corrected",
                format!("the {kind} is as declared again"),
            ),
            Change::Unchanged | Change::Deleted => {}
        }
    }
    ctx.status(status(&database, &stateful_set.object, &host)).await?;
    Ok(Outcome::Done)
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
    let password = present.as_deref().and_then(credentials::password_in);
    Ok(password.unwrap_or_else(|| ctx.env().random_alphanumeric(credentials::PASSWORD_LENGTH)))
}

fn status(database: &Database, stateful_set: &StatefulSet, host: &str) -> DatabaseStatus {
    let seen = stateful_set.status.clone().unwrap_or_default();
    let current = seen.observed_generation >= stateful_set.metadata.generation;
    let up = seen.ready_replicas.unwrap_or(0);
    let wanted = database.spec.replicas;
    // One that has yet to start again may have another version or password.
    let ready = current && up == wanted && seen.updated_replicas.unwrap_or(0) == wanted;
    let message = format!("{up} of {wanted} servers are up");
    DatabaseStatus {
        ready,
        endpoint: Some(format!("{host}:{PORT}")),
        conditions: vec![if ready {
            condition::ready("ServersUp", message)
        } else {
            condition::not_ready("Starting", message)
        }],
        observed_generation: None,
    }
}
