//! One pass of the loop for a LogicalDatabase.

use std::time::Duration;

use homeostat::context::EventType;
use homeostat::k8s_openapi::api::core::v1::Secret;
use homeostat::{Change, Context, Error, Key, Outcome, Result, condition};
use kube::ResourceExt;

use crate::references::References;
use crate::server::{Address, Found, Server, ServerError, is_refused_login};
use crate::{DeletionPolicy, FINALIZER, LogicalDatabase, LogicalDatabaseStatus, children, sql};

/// How often the server is looked at: it sends no events.
const CHECK_EVERY: Duration = Duration::from_secs(10);

pub(crate) async fn reconcile(
    object: &LogicalDatabase,
    ctx: &Context<LogicalDatabase>,
    references: &References,
) -> Result<Outcome> {
    if ctx.finalizer(FINALIZER, || clean_up(object, ctx)).await? {
        references.forget(ctx.key());
        return Ok(Outcome::Done);
    }
    let namespace = object.namespace().unwrap_or_default();
    references.set(ctx.key(), Key::namespaced(namespace, object.spec.server_secret.as_str()));

    let Some(server_secret) = ctx.get::<Secret>(&object.spec.server_secret).await? else {
        let message = format!("Secret {} does not exist yet", object.spec.server_secret);
        ctx.status(status(object, None, false, "WaitingForServer", &message)).await?;
        return Ok(Outcome::Done);
    };
    let administrator = Address::from_secret(&server_secret).map_err(classify)?;
    let external_id = administrator.external_id(&object.spec.database_name);
    if recorded(object) != Some(external_id.as_str()) {
        // The intent comes first: after a crash, what is found under this name is ours to finish.
        let connection = administrator.connect().await.map_err(classify)?;
        refuse_strangers(object, &connection).await?;
        ctx.status(status(
            object,
            Some(external_id.clone()),
            false,
            "Creating",
            "making role and database",
        ))
        .await?;
    }
    let role = credentials(object, ctx, &administrator).await?;
    let repaired = ensure(object, &administrator, &role).await?;
    if repaired {
        ctx.event(
            EventType::Normal,
            "Provisioned",
            format!("role and database are in place at {external_id}"),
        );
    }
    let message = format!("{} can log in to {}", role.username, role.database);
    ctx.status(status(object, Some(external_id), true, "Provisioned", &message)).await?;
    Ok(Outcome::RequeueAfter(CHECK_EVERY))
}

fn recorded(object: &LogicalDatabase) -> Option<&str> {
    object.status.as_ref()?.external_id.as_deref()
}

/// What marks a database or a role in the server as made by this object.
fn mark(object: &LogicalDatabase) -> String {
    format!("homeostat.dev/uid={}", object.uid().unwrap_or_default())
}

/// Before anything is recorded: nothing of that name may be there, unless it bears our mark.
async fn refuse_strangers(object: &LogicalDatabase, server: &Server) -> Result<()> {
    let (database, role) = (&object.spec.database_name, &object.spec.owner);
    let found = [
        ("database", database, server.find_database(database).await.map_err(classify)?),
        ("role", role, server.find_role(role).await.map_err(classify)?),
    ];
    for (what, name, found) in found {
        let stranger = |found: Found| found.mark.as_deref() != Some(mark(object).as_str());
        if found.is_some_and(stranger) {
            return Err(classify(ServerError::Stranger { what, name: name.clone() }));
        }
    }
    Ok(())
}

/// The role's address and password: the password that is there, or a new one, kept in the Secret.
async fn credentials(
    object: &LogicalDatabase,
    ctx: &Context<LogicalDatabase>,
    administrator: &Address,
) -> Result<Address> {
    let present = ctx.get::<Secret>(&children::secret_name(object)).await?;
    let password = present.as_deref().and_then(|secret| Address::from_secret(secret).ok());
    let password = password.map_or_else(
        || ctx.env().random_alphanumeric(children::PASSWORD_LENGTH),
        |known| known.password,
    );
    let role = administrator.as_role(&object.spec.owner, &password, &object.spec.database_name);
    let applied = ctx.apply(children::secret(object, &role)).await?;
    if applied.change == Change::Created {
        ctx.event(
            EventType::Normal,
            "Created",
            format!("created Secret {}", children::secret_name(object)),
        );
    }
    Ok(role)
}

/// Makes what is missing; tells whether anything was.
async fn ensure(object: &LogicalDatabase, administrator: &Address, role: &Address) -> Result<bool> {
    // The whole promise in one question: can the role log in to its database?
    match role.connect().await {
        Ok(connection) => {
            let found = connection.find_database(&role.database).await.map_err(classify)?;
            if found.and_then(|found| found.owner).as_deref() == Some(role.username.as_str()) {
                return Ok(false);
            }
        }
        Err(error) if is_refused_login(&error) || is_missing_database(&error) => {}
        Err(error) => return Err(classify(error)),
    }
    let server = administrator.connect().await.map_err(classify)?;
    provision(object, &server, role).await.map_err(classify)?;
    Ok(true)
}

fn is_missing_database(error: &ServerError) -> bool {
    let ServerError::Connect { source, .. } = error else { return false };
    source.code() == Some(&tokio_postgres::error::SqlState::INVALID_CATALOG_NAME)
}

async fn provision(
    object: &LogicalDatabase,
    server: &Server,
    role: &Address,
) -> Result<(), ServerError> {
    let mark = mark(object);
    match server.find_role(&role.username).await? {
        Some(found) if found.mark.as_deref() != Some(mark.as_str()) => {
            return Err(ServerError::Stranger { what: "role", name: role.username.clone() });
        }
        Some(_) => {
            server
                .run("to repair the role", &sql::alter_role(&role.username, &role.password))
                .await?;
        }
        None => {
            server
                .run("to make the role", &sql::create_role(&role.username, &role.password, &mark))
                .await?;
        }
    }
    // A database cannot be made and marked in one transaction: the recorded intent covers the gap.
    let statement = match server.find_database(&role.database).await? {
        Some(_) => sql::own_database(&role.database, &role.username),
        None => sql::create_database(&role.database, &role.username),
    };
    server.run("to make the database", &statement).await?;
    server.run("to mark the database", &sql::mark_database(&role.database, &mark)).await
}

/// A name taken by a stranger waits for an edit; everything else may pass.
fn classify(error: ServerError) -> Error {
    match error {
        ServerError::Stranger { .. } | ServerError::Credentials { .. } => Error::terminal(error),
        ServerError::Connect { .. } | ServerError::Refused { .. } => Error::transient(error),
    }
}

/// Leaves the server as the deletion policy says.
async fn clean_up(object: &LogicalDatabase, ctx: &Context<LogicalDatabase>) -> Result<()> {
    if object.spec.deletion_policy == DeletionPolicy::Retain || recorded(object).is_none() {
        return Ok(());
    }
    // Without its Secret the server is gone, or nobody can reach it any more: nothing to clean.
    let Some(secret) = ctx.get::<Secret>(&object.spec.server_secret).await? else { return Ok(()) };
    let Ok(administrator) = Address::from_secret(&secret) else { return Ok(()) };
    let server = administrator.connect().await.map_err(classify)?;
    let (database, role) = (&object.spec.database_name, &object.spec.owner);
    let ours = |found: Option<Found>| {
        found.is_some_and(|found| found.mark.as_deref() == Some(mark(object).as_str()))
    };
    if ours(server.find_database(database).await.map_err(classify)?) {
        server
            .run("to drop the database", &sql::drop_database(database))
            .await
            .map_err(classify)?;
    }
    if ours(server.find_role(role).await.map_err(classify)?) {
        server.run("to drop the role", &sql::drop_role(role)).await.map_err(classify)?;
    }
    Ok(())
}

fn status(
    object: &LogicalDatabase,
    external_id: Option<String>,
    ready: bool,
    reason: &str,
    message: &str,
) -> LogicalDatabaseStatus {
    let condition = if ready {
        condition::ready(reason, message)
    } else {
        condition::not_ready(reason, message)
    };
    LogicalDatabaseStatus {
        external_id: external_id.or_else(|| recorded(object).map(str::to_owned)),
        ready,
        conditions: vec![condition],
        observed_generation: None,
    }
}
