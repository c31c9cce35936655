//! One pass of the loop for a LogicalDatabase.

use std::sync::Arc;
use std::time::Duration;

use homeostat::context::EventType;
use homeostat::k8s_openapi::api::core::v1::Secret;
use homeostat::{Change, Context, Error, Outcome, Result, condition};
use operator_credentials::Credentials;

use crate::away;
use crate::mark::Marks;
use crate::provision::{self, Done, Login};
use crate::server::{Server, ServerError};
use crate::{DeletionPolicy, FINALIZER, LogicalDatabase, LogicalDatabaseStatus, children};

/// How often the server is looked at: it sends no events.
pub(crate) const CHECK_EVERY: Duration = Duration::from_secs(10);

pub(crate) async fn reconcile(
    object: Arc<LogicalDatabase>,
    ctx: Context<LogicalDatabase>,
) -> Result<Outcome> {
    let (object, ctx) = (&*object, &ctx);
    // Before the finalizer: a cleanup that cannot reach the server is woken by the Secret too.
    let server_secret = ctx.follow::<Secret>(&object.spec.server_secret).await?;
    let cleanup = || async {
        let cleaned = clean_up(object, ctx, server_secret.as_deref()).await;
        if let Err(error) = &cleaned {
            let message = error.chain();
            let mut failed = status(object, None, false, "CleanupFailed", &message);
            failed.conditions.push(condition::degraded("CleanupFailed", &message));
            if ctx.status(failed).await? == Change::Changed {
                ctx.event(EventType::Warning, "CleanupFailed", message);
            }
        }
        cleaned
    };
    if ctx.finalizer(FINALIZER, cleanup).await? {
        return Ok(Outcome::Done);
    }

    let Some(server_secret) = server_secret else {
        let message = format!(
            "there is no Secret {} in this namespace: create it, and this goes on by itself, or make another \
             LogicalDatabase with the right serverSecret",
            object.spec.server_secret
        );
        let waiting = status(object, None, false, "WaitingForServer", &message);
        if ctx.status(waiting).await? == Change::Changed {
            ctx.event(EventType::Warning, "WaitingForServer", message);
        }
        // It is followed: its coming runs this again.
        return Ok(Outcome::Done);
    };
    let mut object = object.clone();
    match keep(&mut object, ctx, &server_secret).await {
        Ok(()) => Ok(Outcome::RequeueAfter(CHECK_EVERY)),
        Err(error) => refused(&object, ctx, &server_secret, error).await,
    }
}

/// Says what keeps the object from being ready. What the server or the API refuses makes the last
/// good status untrue; a conflict does not.
async fn refused(
    object: &LogicalDatabase,
    ctx: &Context<LogicalDatabase>,
    server_secret: &Secret,
    error: Error,
) -> Result<Outcome> {
    let message = error.chain();
    let of_server = match &error {
        Error::Terminal(cause) | Error::Transient(cause) => cause.downcast_ref::<ServerError>(),
        _ => None,
    };
    let reason = match of_server {
        Some(refusal) => refusal.reason(),
        None if error.is_terminal() => error.reason(),
        None => return Err(error),
    };
    let mut status = status(object, None, false, reason, &message);
    if of_server.is_some_and(ServerError::is_away) {
        ctx.status(status).await?;
        return Ok(Outcome::RequeueAfter(away::look_again(object, server_secret, ctx.now())));
    }
    if !of_server.is_some_and(ServerError::is_for_the_server) {
        if error.is_terminal() {
            status.conditions.push(condition::degraded(reason, &message));
        }
        ctx.status(status).await?;
        return Err(error);
    }
    // The server sends no word when a stranger's database or role goes or a right is given: it is
    // looked at as often as what is in place.
    status.conditions.push(condition::degraded(reason, &message));
    let before = object.status.as_ref().map_or(&[][..], |status| &status.conditions);
    if condition::turned_true(before, &status.conditions, condition::DEGRADED).is_some() {
        ctx.event(EventType::Warning, reason, message);
    }
    ctx.status(status).await?;
    Ok(Outcome::RequeueAfter(CHECK_EVERY))
}

/// Makes sure that role, database and Secret are in place, and says so. What it is about to make is in
/// the object's status afterwards, however it ends: no later word may take that back.
async fn keep(
    object: &mut LogicalDatabase,
    ctx: &Context<LogicalDatabase>,
    server_secret: &Secret,
) -> Result<()> {
    let administrator = Credentials::from_secret(server_secret).map_err(ServerError::from)?;
    let external_id = format!("{}/{}", administrator.endpoint(), object.spec.database_name);
    let marks = Marks::of(object);
    let is_known = recorded(object) == Some(external_id.as_str());
    if !is_known {
        if let Some(before) = recorded(object) {
            let note = format!(
                "the Secret names another address: {external_id}; should that be another server, role {} and database \
                 are left at {before}",
                object.spec.owner
            );
            ctx.event(EventType::Warning, "ServerMoved", note);
        }
        // The intent comes first: after a crash, what is found under this name is ours to finish.
        let server = Server::connect(ctx.env(), &administrator).await?;
        provision::refuse_strangers(&object.spec, &marks, &server).await?;
        let intent = (Some(external_id.clone()), "making role and database");
        ctx.status(status(object, intent.0, false, "Creating", intent.1)).await?;
        object.status.get_or_insert_default().external_id = Some(external_id.clone());
    }
    let was_ready = object.status.as_ref().is_some_and(|status| status.ready);
    let (role, is_new) = credentials(object, ctx, &administrator).await?;
    let login = match (is_new, is_known && was_ready) {
        (true, _) => Login::New,
        (false, true) => Login::Worked,
        (false, false) => Login::Unknown,
    };
    match provision::ensure(ctx.env(), &marks, &administrator, &role, login).await? {
        Done::Nothing => {}
        Done::Repaired if was_ready => {
            let note = format!("role and database are in place again at {external_id}");
            ctx.event(EventType::Normal, "Corrected", note);
        }
        Done::MadeAnew if was_ready => {
            let note = format!("the database was gone: it is there again at {external_id}, empty");
            ctx.event(EventType::Warning, "Corrected", note);
        }
        Done::Repaired | Done::MadeAnew => {
            let note = format!("role and database are in place at {external_id}");
            ctx.event(EventType::Normal, "Provisioned", note);
        }
        Done::Adopted => {
            let note = format!(
                "took back role and database at {external_id}, which an earlier object of this name had left; \
                 the password is new"
            );
            ctx.event(EventType::Normal, "Adopted", note);
        }
    }
    let message = format!("{} can log in to {}", role.username, role.database);
    ctx.status(status(object, Some(external_id), true, "Provisioned", &message)).await?;
    Ok(())
}

fn recorded(object: &LogicalDatabase) -> Option<&str> {
    object.status.as_ref()?.external_id.as_deref()
}

/// The role's address and password: the password that is there, or a new one, kept in the Secret.
/// And whether it is new.
async fn credentials(
    object: &LogicalDatabase,
    ctx: &Context<LogicalDatabase>,
    administrator: &Credentials,
) -> Result<(Credentials, bool)> {
    let present = ctx.get::<Secret>(&children::secret_name(object)).await?;
    let password = present.as_deref().and_then(operator_credentials::password_in);
    let is_new = password.is_none();
    let role = Credentials {
        username: object.spec.owner.clone(),
        password: password.unwrap_or_else(|| operator_credentials::new_password(ctx.env())),
        database: object.spec.database_name.clone(),
        ..administrator.clone()
    };
    let applied = ctx.apply(children::secret(object, &role)).await;
    let applied = applied.map_err(Error::terminal_if_invalid)?;
    ctx.announce(&applied);
    Ok((role, is_new))
}

/// Leaves the server as the deletion policy says. Without its Secret the server is gone, or nobody
/// can reach it any more: the object goes too, and says what may be left. One that cannot be read is
/// there, and so may be the server: it is waited for.
async fn clean_up(
    object: &LogicalDatabase,
    ctx: &Context<LogicalDatabase>,
    server_secret: Option<&Secret>,
) -> Result<()> {
    let Some(made) = recorded(object) else { return Ok(()) };
    let marks = Marks::of(object);
    let (secret_name, owner) = (&object.spec.server_secret, &object.spec.owner);
    let not_released = |why: &dyn std::fmt::Display| {
        let note = format!(
            "role {owner} and database stay at {made}, but nobody can take them back before both have the comment \
             {:?}: {why}",
            marks.retained
        );
        ctx.event(EventType::Warning, "NotReleased", note);
    };
    let Some(secret) = server_secret else {
        let gone = format!("Secret {secret_name} is gone");
        match object.spec.deletion_policy {
            DeletionPolicy::Retain => not_released(&gone),
            DeletionPolicy::Delete => {
                let note = format!("{gone}: role {owner} and database may be left at {made}");
                ctx.event(EventType::Warning, "LeftBehind", note);
            }
        }
        return Ok(());
    };
    let act = async || {
        let administrator = Credentials::from_secret(secret)?;
        let server = Server::connect(ctx.env(), &administrator).await?;
        match object.spec.deletion_policy {
            DeletionPolicy::Delete => provision::remove(&object.spec, &marks, &server).await,
            DeletionPolicy::Retain => provision::release(&object.spec, &marks, &server).await,
        }
    };
    match (act().await, object.spec.deletion_policy) {
        // Nothing is to be removed, so nothing is worth keeping the object for.
        (Err(error), DeletionPolicy::Retain) => {
            not_released(&error);
            Ok(())
        }
        // Whatever it is, another look may find it mended.
        (done, _) => done.map_err(Error::transient),
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
