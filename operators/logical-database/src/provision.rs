//! What is done in the server: look around, make or repair, and leave. Every step may be repeated.

use homeostat::Env;
use operator_credentials::Credentials;

use crate::LogicalDatabaseSpec;
use crate::mark::{Marks, Whose};
use crate::server::{Server, ServerError};
use crate::sql;

/// What [`ensure`] had to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Done {
    /// All was in place.
    Nothing,
    /// Something was missing or different.
    Repaired,
    /// The database was missing.
    MadeAnew,
    /// Something was taken back that an earlier object had left.
    Adopted,
}

/// What is known of the role's login before the server is asked. The server writes every login that
/// it refuses into its log, as if somebody tried a door: nobody tries without reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    /// It worked at the last look.
    Worked,
    /// It may work, if the role is there.
    Unknown,
    /// It cannot work: the server has never heard of the password.
    New,
}

fn stranger(what: &'static str, name: &str) -> ServerError {
    ServerError::Stranger { what, name: name.to_owned() }
}

/// Before anything is recorded: what is there under our names must be ours or left to us.
pub(crate) async fn refuse_strangers(
    spec: &LogicalDatabaseSpec,
    marks: &Marks,
    server: &Server,
) -> Result<(), ServerError> {
    let found = server.find_role(&spec.owner).await?;
    if found.is_some_and(|found| marks.role(&found) == Whose::Strangers) {
        return Err(stranger("role", &spec.owner));
    }
    let found = server.find_database(&spec.database_name).await?;
    if found.is_some_and(|found| marks.database(&found) == Whose::Strangers) {
        return Err(stranger("database", &spec.database_name));
    }
    Ok(())
}

/// Makes what is missing.
pub(crate) async fn ensure(
    env: &Env,
    marks: &Marks,
    administrator: &Credentials,
    role: &Credentials,
    login: Login,
) -> Result<Done, ServerError> {
    if login == Login::Worked && keeps_its_promise(env, marks, role).await? {
        return Ok(Done::Nothing);
    }
    let server = Server::connect(env, administrator).await?;
    if login == Login::Unknown
        && is_in_place(marks, &server, role).await?
        && keeps_its_promise(env, marks, role).await?
    {
        return Ok(Done::Nothing);
    }
    let done = make_role(marks, &server, role).await?;
    Ok(make_database(marks, &server, role).await?.max(done))
}

/// The whole promise in one question: can the role log in to its database, and are both ours?
async fn keeps_its_promise(
    env: &Env,
    marks: &Marks,
    role: &Credentials,
) -> Result<bool, ServerError> {
    match Server::connect(env, role).await {
        Ok(connection) => is_in_place(marks, &connection, role).await,
        Err(error) if error.asks_for_repair() => Ok(false),
        Err(error) => Err(error),
    }
}

async fn is_in_place(
    marks: &Marks,
    connection: &Server,
    role: &Credentials,
) -> Result<bool, ServerError> {
    let ours = |comment: Option<&String>| comment == Some(&marks.made);
    let found = connection.find_role(&role.username).await?;
    if !found.is_some_and(|found| ours(found.comment.as_ref())) {
        return Ok(false);
    }
    let found = connection.find_database(&role.database).await?;
    Ok(found.is_some_and(|found| {
        ours(found.comment.as_ref()) && found.owner.as_ref() == Some(&role.username)
    }))
}

async fn make_role(
    marks: &Marks,
    server: &Server,
    role: &Credentials,
) -> Result<Done, ServerError> {
    let Credentials { username, password, .. } = role;
    let whose = server.find_role(username).await?.map(|found| marks.role(&found));
    let (action, statement) = match whose {
        Some(Whose::Strangers) => return Err(stranger("role", username)),
        Some(Whose::Ours | Whose::Retained) => {
            ("to repair the role", sql::alter_role(username, password, &marks.made))
        }
        None => ("to make the role", sql::create_role(username, password, &marks.made)),
    };
    server.run(action, &statement).await?;
    Ok(if whose == Some(Whose::Retained) { Done::Adopted } else { Done::Repaired })
}

async fn make_database(
    marks: &Marks,
    server: &Server,
    role: &Credentials,
) -> Result<Done, ServerError> {
    let Credentials { username, database, .. } = role;
    let whose = server.find_database(database).await?.map(|found| marks.database(&found));
    let statement = match whose {
        // Somebody was quicker, after the look around or since it was dropped: it is theirs.
        Some(Whose::Strangers) => return Err(stranger("database", database)),
        Some(Whose::Ours | Whose::Retained) => sql::own_database(database, username),
        None => sql::create_database(database, username),
    };
    server.run("to make the database", &statement).await?;
    server.run("to mark the database", &sql::mark_database(database, &marks.made)).await?;
    Ok(match whose {
        None => Done::MadeAnew,
        Some(Whose::Retained) => Done::Adopted,
        Some(_) => Done::Repaired,
    })
}

/// What of the two is ours: the role, the database.
async fn ours(
    spec: &LogicalDatabaseSpec,
    marks: &Marks,
    server: &Server,
) -> Result<(bool, bool), ServerError> {
    let found = server.find_role(&spec.owner).await?;
    let role = found.is_some_and(|found| marks.role(&found) == Whose::Ours);
    let found = server.find_database(&spec.database_name).await?;
    // Without our role, a database that bears no mark may be anybody's.
    let database = found.is_some_and(|found| {
        marks.database(&found) == Whose::Ours && (role || found.comment.is_some())
    });
    Ok((role, database))
}

/// Drops what is ours.
pub(crate) async fn remove(
    spec: &LogicalDatabaseSpec,
    marks: &Marks,
    server: &Server,
) -> Result<(), ServerError> {
    let (role, database) = ours(spec, marks, server).await?;
    if database {
        server.run("to drop the database", &sql::drop_database(&spec.database_name)).await?;
    }
    if !role {
        return Ok(());
    }
    match server.run("to drop the role", &sql::drop_role(&spec.owner)).await {
        Err(error) if error.is_depended_on() => {
            let statement = sql::release_and_drop_role(&spec.owner);
            server.run("to take from the role what it has and drop it", &statement).await
        }
        dropped => dropped,
    }
}

/// Leaves what is ours to whoever comes under our name.
pub(crate) async fn release(
    spec: &LogicalDatabaseSpec,
    marks: &Marks,
    server: &Server,
) -> Result<(), ServerError> {
    let (role, database) = ours(spec, marks, server).await?;
    // The database first: without the role's mark, one that bears none could not be told for ours.
    if database {
        let statement = sql::mark_database(&spec.database_name, &marks.retained);
        server.run("to mark the database", &statement).await?;
    }
    if role {
        server.run("to mark the role", &sql::mark_role(&spec.owner, &marks.retained)).await?;
    }
    Ok(())
}
