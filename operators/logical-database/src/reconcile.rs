//! One pass of the loop for a LogicalDatabase.

use std::time::Duration;

use homeostat::context::EventType;
use homeostat::k8s_openapi::api::core::v1::Secret;
use homeostat::{Change, Context, Error, Key, Outcome, Result, condition};
use kube::ResourceExt;

use crate::references::References;
use crate::server::{Address, Found, Server, ServerError, is_depended_on, is_refused_login};
use crate::{DeletionPolicy, FINALIZER, LogicalDatabase, LogicalDatabaseStatus, children, sql};

/// How often the server is looked at: it sends no events.
const CHECK_EVERY: Duration = Duration::from_secs(10);

pub(crate) async fn reconcile(
    object: &LogicalDatabase,
    ctx: &Context<LogicalDatabase>,
    references: &References,
) -> Result<Outcome> {
    // Before the finalizer: a cleanup that cannot reach the server is woken by the Secret too.
    let namespace = object.namespace().unwrap_or_default();
    references.set(ctx.key(), Key::namespaced(namespace, object.spec.server_secret.as_str()));
    let cleanup = || async {
        clean_up(object, ctx).await.inspect_err(|error| {
            ctx.event(EventType::Warning, "CleanupFailed", error.chain());
        })
    };
    if ctx.finalizer(FINALIZER, cleanup).await? {
        references.forget(ctx.key());
        return Ok(Outcome::Done);
    }

    let Some(server_secret) = ctx.get::<Secret>(&object.spec.server_secret).await? else {
        let message = format!("Secret {} does not exist yet", object.spec.server_secret);
        ctx.status(status(object, None, false, "WaitingForServer", &message)).await?;
        return Ok(Outcome::Done);
    };
    match keep(object, ctx, &server_secret).await {
        Ok(()) => Ok(Outcome::RequeueAfter(CHECK_EVERY)),
        Err(error) => {
            // What the server refuses makes the last good status untrue; a conflict does not.
            if let Error::Terminal(_) | Error::Transient(_) = error {
                let reason = if error.is_terminal() { "NotPossible" } else { "ServerUnavailable" };
                ctx.status(status(object, None, false, reason, &error.chain())).await?;
            }
            Err(error)
        }
    }
}

/// Makes sure that role, database and Secret are in place, and says so.
async fn keep(
    object: &LogicalDatabase,
    ctx: &Context<LogicalDatabase>,
    server_secret: &Secret,
) -> Result<()> {
    let administrator = Address::from_secret(server_secret).map_err(classify)?;
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
    Ok(())
}

fn recorded(object: &LogicalDatabase) -> Option<&str> {
    object.status.as_ref()?.external_id.as_deref()
}

/// What marks a database or a role in the server as made by this object.
fn mark(object: &LogicalDatabase) -> String {
    format!("homeostat.dev/uid={}", object.uid().unwrap_or_default())
}

/// Whether a role that is there was made by this object.
fn is_our_role(object: &LogicalDatabase, found: &Found) -> bool {
    found.mark.as_deref() == Some(mark(object).as_str())
}

/// The same for a database, once its role is known to be ours. A database cannot be made and
/// marked in one transaction: one that has no mark yet and belongs to our role is half made.
fn is_our_database(object: &LogicalDatabase, found: &Found) -> bool {
    match &found.mark {
        Some(theirs) => *theirs == mark(object),
        None => found.owner.as_deref() == Some(object.spec.owner.as_str()),
    }
}

/// Before anything is recorded: nothing of that name may be there, unless it is ours.
async fn refuse_strangers(object: &LogicalDatabase, server: &Server) -> Result<()> {
    let (database, role) = (&object.spec.database_name, &object.spec.owner);
    let found = server.find_role(role).await.map_err(classify)?;
    if found.is_some_and(|found| !is_our_role(object, &found)) {
        return Err(classify(ServerError::Stranger { what: "role", name: role.clone() }));
    }
    let found = server.find_database(database).await.map_err(classify)?;
    if found.is_some_and(|found| !is_our_database(object, &found)) {
        return Err(classify(ServerError::Stranger { what: "database", name: database.clone() }));
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
        Some(found) if !is_our_role(object, &found) => {
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
    let statement = match server.find_database(&role.database).await? {
        // Somebody was quicker, after the look around or since it was dropped: it is theirs.
        Some(found) if !is_our_database(object, &found) => {
            return Err(ServerError::Stranger { what: "database", name: role.database.clone() });
        }
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
    let found = server.find_role(role).await.map_err(classify)?;
    let role_is_ours = found.is_some_and(|found| is_our_role(object, &found));
    let found = server.find_database(database).await.map_err(classify)?;
    // Without our role, a database that bears no mark may be anybody's.
    if found.is_some_and(|found| {
        is_our_database(object, &found) && (role_is_ours || found.mark.is_some())
    }) {
        let statement = sql::drop_database(database);
        server.run("to drop the database", &statement).await.map_err(classify)?;
    }
    if !role_is_ours {
        return Ok(());
    }
    match server.run("to drop the role", &sql::drop_role(role)).await {
        Err(error) if is_depended_on(&error) => server
            .run("to take from the role what it has and drop it", &sql::release_and_drop_role(role))
            .await
            .map_err(classify),
        dropped => dropped.map_err(classify),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LogicalDatabaseSpec;

    fn object() -> LogicalDatabase {
        let spec = LogicalDatabaseSpec {
            server_secret: "server".to_owned(),
            database_name: "orders".to_owned(),
            owner: "clerk".to_owned(),
            deletion_policy: DeletionPolicy::Delete,
        };
        let mut object = LogicalDatabase::new("orders", spec);
        object.metadata.uid = Some("1".to_owned());
        object
    }

    fn database(owner: &str, mark: Option<&str>) -> Found {
        Found { owner: Some(owner.to_owned()), mark: mark.map(str::to_owned), login: false }
    }

    #[test]
    fn a_database_is_ours_by_its_mark_or_half_made() {
        let ours = |owner, mark| is_our_database(&object(), &database(owner, mark));
        assert!(ours("anybody", Some("homeostat.dev/uid=1")), "somebody changed its owner");
        assert!(ours("clerk", None), "we stopped between making and marking it");
        assert!(!ours("postgres", None), "somebody made it by hand");
        assert!(!ours("clerk", Some("homeostat.dev/uid=2")), "another object made it");
    }
}
