//! The PostgreSQL server: what is there, and the few changes this operator makes.

use std::time::Duration;

use homeostat::k8s_openapi::api::core::v1::Secret;
use tokio::task::AbortHandle;
use tokio_postgres::{Client, Config, NoTls, Row, error::SqlState};

use crate::sql;

/// How long a connection may take to come up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What can go wrong between here and the server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    #[error("Secret {secret} has no usable key {key:?}")]
    Credentials { secret: String, key: &'static str },
    #[error("PostgreSQL at {address} cannot be reached: {}", cause(source))]
    Connect { address: String, source: tokio_postgres::Error },
    #[error("PostgreSQL refused {action}: {}", cause(source))]
    Refused { action: &'static str, source: tokio_postgres::Error },
    #[error(
        "{what} {name:?} exists in the server and was not made by this object; choose another name or remove it"
    )]
    Stranger { what: &'static str, name: String },
}

/// The server's own words; the client's error says only "db error".
fn cause(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned())
}

/// Where a server is, and who we are there.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) username: String,
    pub(crate) password: String,
    pub(crate) database: String,
}

impl Address {
    /// Reads the keys of a credentials Secret.
    pub(crate) fn from_secret(secret: &Secret) -> Result<Self, ServerError> {
        let read = |key: &'static str| {
            let bytes = secret.data.as_ref().and_then(|data| data.get(key));
            bytes
                .and_then(|bytes| String::from_utf8(bytes.0.clone()).ok())
                .filter(|text| !text.is_empty())
                .ok_or_else(|| ServerError::Credentials {
                    secret: secret.metadata.name.clone().unwrap_or_default(),
                    key,
                })
        };
        let port = read("port")?.parse().map_err(|_| ServerError::Credentials {
            secret: secret.metadata.name.clone().unwrap_or_default(),
            key: "port",
        })?;
        Ok(Self {
            host: read("host")?,
            port,
            username: read("username")?,
            password: read("password")?,
            database: read("database").unwrap_or_else(|_| "postgres".to_owned()),
        })
    }

    /// The same server, as another role and database.
    pub(crate) fn as_role(&self, username: &str, password: &str, database: &str) -> Self {
        Self {
            username: username.to_owned(),
            password: password.to_owned(),
            database: database.to_owned(),
            ..self.clone()
        }
    }

    /// `host:port/database`.
    pub(crate) fn external_id(&self, database: &str) -> String {
        format!("{}:{}/{database}", self.host, self.port)
    }

    /// Connects.
    pub(crate) async fn connect(&self) -> Result<Server, ServerError> {
        let mut config = Config::new();
        config
            .host(&self.host)
            .port(self.port)
            .user(&self.username)
            .password(&self.password)
            .dbname(&self.database)
            .application_name(crate::OPERATOR)
            .connect_timeout(CONNECT_TIMEOUT);
        let (client, connection) = config.connect(NoTls).await.map_err(|source| {
            ServerError::Connect { address: format!("{}:{}", self.host, self.port), source }
        })?;
        let driver = tokio::spawn(async move {
            // An error here ends the client's calls with an error of their own.
            let _ = connection.await;
        });
        Ok(Server { client, driver: driver.abort_handle() })
    }
}

/// Whether a failed login means a wrong password or a missing role, rather than an absent server.
pub(crate) fn is_refused_login(error: &ServerError) -> bool {
    let ServerError::Connect { source, .. } = error else { return false };
    source.code().is_some_and(|code| {
        [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION].contains(code)
    })
}

/// Whether a role cannot go because it still has something.
pub(crate) fn is_depended_on(error: &ServerError) -> bool {
    let ServerError::Refused { source, .. } = error else { return false };
    source.code() == Some(&SqlState::DEPENDENT_OBJECTS_STILL_EXIST)
}

/// A connection; it ends with the value.
#[derive(Debug)]
pub(crate) struct Server {
    client: Client,
    driver: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A database or a role that is there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The mark of whoever made it.
    pub(crate) mark: Option<String>,
    /// For a database: its owner.
    pub(crate) owner: Option<String>,
    /// For a role: whether it may log in.
    pub(crate) login: bool,
}

impl Server {
    pub(crate) async fn find_database(&self, name: &str) -> Result<Option<Found>, ServerError> {
        let row = self.find("to list databases", sql::FIND_DATABASE, name).await?;
        Ok(row.map(|row| Found { owner: row.get(0), mark: row.get(1), login: false }))
    }

    pub(crate) async fn find_role(&self, name: &str) -> Result<Option<Found>, ServerError> {
        let row = self.find("to list roles", sql::FIND_ROLE, name).await?;
        Ok(row.map(|row| Found { login: row.get(0), mark: row.get(1), owner: None }))
    }

    async fn find(
        &self,
        action: &'static str,
        query: &str,
        name: &str,
    ) -> Result<Option<Row>, ServerError> {
        let found = self.client.query_opt(query, &[&name]).await;
        found.map_err(|source| ServerError::Refused { action, source })
    }

    /// Runs one statement.
    pub(crate) async fn run(
        &self,
        action: &'static str,
        statement: &str,
    ) -> Result<(), ServerError> {
        let done = self.client.batch_execute(statement).await;
        done.map_err(|source| ServerError::Refused { action, source })
    }
}
