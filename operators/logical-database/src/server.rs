//! The PostgreSQL server: what is there, and the few changes this operator makes. Every call has a
//! time limit: a server that hangs is an error, not a reconcile that never ends.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use homeostat::Env;
use operator_credentials::{Credentials, Unusable};
use tokio::task::AbortHandle;
use tokio_postgres::{Client, Config, NoTls, Row, error::SqlState};

use crate::sql;

/// How long it may take until we are in: name, TCP and login together.
const LOGIN_LIMIT: Duration = Duration::from_secs(5);

/// How long one statement may take. The server is told, so that it ends what we gave up on.
const STATEMENT_LIMIT: Duration = Duration::from_secs(30);

/// The reason for a server that is not there.
const AWAY: &str = "ServerUnavailable";

/// What can go wrong between here and the server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    #[error(transparent)]
    Credentials(#[from] Unusable),
    #[error("PostgreSQL at {address} {}: {}", why_not_in(error), cause(error))]
    Connect { address: String, error: tokio_postgres::Error },
    #[error("PostgreSQL at {address} did not let us in within {LOGIN_LIMIT:?}")]
    Silent { address: String },
    #[error("PostgreSQL refused {action}: {}{}", cause(source), remedy(source))]
    Refused { action: &'static str, source: tokio_postgres::Error },
    #[error("PostgreSQL took longer than {STATEMENT_LIMIT:?} {action}")]
    Slow { action: &'static str },
    #[error(
        "{what} {name:?} exists in the server and was not made by this object; make an object that names another, \
         or remove it there and this object goes on by itself"
    )]
    Stranger { what: &'static str, name: String },
}

impl ServerError {
    /// Whether the login failed because the role, its password or its database is not as it should
    /// be, rather than because the server is away.
    pub(crate) fn asks_for_repair(&self) -> bool {
        let Self::Connect { error, .. } = self else { return false };
        error.code().is_some_and(|code| {
            [
                SqlState::INVALID_PASSWORD,
                SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                SqlState::INVALID_CATALOG_NAME,
            ]
            .contains(code)
        })
    }

    /// One word for the condition.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Credentials(_) => "SecretIncomplete",
            Self::Stranger { .. } => "NameTaken",
            _ if self.is_hopeless() => "NameRefused",
            _ if self.is_forbidden() => "NotPermitted",
            _ if self.asks_for_repair() => "LoginRefused",
            Self::Refused { source, .. } if is_judged(source) => "ServerRefused",
            _ => AWAY,
        }
    }

    /// Whether the server cannot be reached, or is on its way up or down. Nobody has to do anything
    /// about a server that starts.
    pub(crate) fn is_away(&self) -> bool {
        self.reason() == AWAY
    }

    /// Whether somebody has to do something in the server, which sends no word when it is done.
    pub(crate) fn is_for_the_server(&self) -> bool {
        matches!(self, Self::Stranger { .. }) || self.is_forbidden()
    }

    /// Whether the administrator may not do what has to be done.
    fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if is_forbidden(source))
    }

    /// Whether no server will ever do it.
    fn is_hopeless(&self) -> bool {
        let Self::Refused { source, .. } = self else { return false };
        source.code().is_some_and(|code| {
            [SqlState::RESERVED_NAME, SqlState::INVALID_NAME, SqlState::NAME_TOO_LONG]
                .contains(code)
        })
    }

    /// Whether a role cannot go because it still has something.
    pub(crate) fn is_depended_on(&self) -> bool {
        let Self::Refused { source, .. } = self else { return false };
        source.code() == Some(&SqlState::DEPENDENT_OBJECTS_STILL_EXIST)
    }
}

/// A Secret that says too little and a name that no server allows wait for an edit; everything else
/// may pass.
impl From<ServerError> for homeostat::Error {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Credentials(_) => Self::terminal(error),
            _ if error.is_hopeless() => Self::terminal(error),
            _ => Self::transient(error),
        }
    }
}

fn is_forbidden(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
}

/// Whether the server did not want to, rather than not being able to: it is neither stopping nor out
/// of memory, disk or connections.
fn is_judged(error: &tokio_postgres::Error) -> bool {
    let passing = |code: &SqlState| ["08", "53", "57", "58"].contains(&&code.code()[..2]);
    error.code().is_some_and(|code| !passing(code))
}

/// What to do about it, where the server's words do not say.
fn remedy(error: &tokio_postgres::Error) -> &'static str {
    if is_forbidden(error) {
        "; give the administrator that the Secret names the right to, or put a superuser there"
    } else {
        ""
    }
}

/// A server that answers is not away.
fn why_not_in(error: &tokio_postgres::Error) -> &'static str {
    if error.as_db_error().is_some() { "refuses the login" } else { "cannot be reached" }
}

/// The server's own words, where the client's error says only "db error"; and plain ones for what
/// is no fault: a server that is still starting.
fn cause(error: &tokio_postgres::Error) -> String {
    let system = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    match (error.as_db_error(), system.map(io::Error::kind)) {
        (Some(answer), _) => answer.message().to_owned(),
        (None, Some(io::ErrorKind::ConnectionRefused)) => "nothing listens there".to_owned(),
        (None, _) => error.to_string(),
    }
}

/// A connection; it ends with the value.
#[derive(Debug)]
pub(crate) struct Server {
    client: Client,
    driver: AbortHandle,
    env: Env,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A database or a role that is there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The comment of whoever made it.
    pub(crate) comment: Option<String>,
    /// For a database: its owner.
    pub(crate) owner: Option<String>,
}

impl Server {
    /// Logs in.
    pub(crate) async fn connect(env: &Env, to: &Credentials) -> Result<Self, ServerError> {
        let mut config = Config::new();
        config
            .host(&to.host)
            .port(to.port)
            .user(&to.username)
            .password(&to.password)
            .dbname(&to.database)
            .options(format!("-c statement_timeout={}s", STATEMENT_LIMIT.as_secs()))
            .application_name(crate::OPERATOR);
        let login = env.timeout(LOGIN_LIMIT, config.connect(NoTls)).await;
        let (client, connection) = login
            .map_err(|_| ServerError::Silent { address: to.endpoint() })?
            .map_err(|error| ServerError::Connect { address: to.endpoint(), error })?;
        let driver = tokio::spawn(async move {
            // An error here ends the client's calls with an error of their own.
            let _ = connection.await;
        });
        Ok(Self { client, driver: driver.abort_handle(), env: env.clone() })
    }

    pub(crate) async fn find_database(&self, name: &str) -> Result<Option<Found>, ServerError> {
        let row = self.find("to list databases", sql::FIND_DATABASE, name).await?;
        Ok(row.map(|row| Found { owner: row.get(0), comment: row.get(1) }))
    }

    pub(crate) async fn find_role(&self, name: &str) -> Result<Option<Found>, ServerError> {
        let row = self.find("to list roles", sql::FIND_ROLE, name).await?;
        Ok(row.map(|row| Found { owner: None, comment: row.get(0) }))
    }

    async fn find(
        &self,
        action: &'static str,
        query: &str,
        name: &str,
    ) -> Result<Option<Row>, ServerError> {
        self.bounded(action, self.client.query_opt(query, &[&name])).await
    }

    /// Runs one statement, or several in one transaction.
    pub(crate) async fn run(
        &self,
        action: &'static str,
        statement: &str,
    ) -> Result<(), ServerError> {
        self.bounded(action, self.client.batch_execute(statement)).await
    }

    /// The network may fall silent as well as the server be slow, so the limit is kept here too.
    async fn bounded<T>(
        &self,
        action: &'static str,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, ServerError> {
        let answer = self.env.timeout(STATEMENT_LIMIT, call).await;
        let answer = answer.map_err(|_| ServerError::Slow { action })?;
        answer.map_err(|source| ServerError::Refused { action, source })
    }
}
