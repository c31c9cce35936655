//! LogicalDatabase: a database and a login role inside a PostgreSQL server that exists already.
//!
//! The server is an external system: nothing of it is a Kubernetes object. So this operator writes
//! what it is about to make into the status before it makes it, marks what it made as its own,
//! looks after it on a timer, and removes it with a finalizer (or leaves it, if asked to).

mod away;
mod children;
mod mark;
mod provision;
mod reconcile;
mod server;
mod sql;

use homeostat::Controller;
use homeostat::k8s_openapi::api::core::v1::Secret;
use homeostat::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name in logs, events, labels and field ownership.
pub const OPERATOR: &str = "logical-database-operator";

/// The finalizer that keeps the object until the server is clean.
pub const FINALIZER: &str = "homeostat.dev/logical-database";

/// A database and its owner, inside a server.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "homeostat.dev",
    version = "v1alpha1",
    kind = "LogicalDatabase",
    plural = "logicaldatabases",
    shortname = "ldb",
    namespaced,
    status = "LogicalDatabaseStatus",
    doc = "A database and a login role inside a PostgreSQL server.",
    validation = Rule::new("self.metadata.name.size() <= 63").message("the name is also a label of the Secret: give it at most 63 characters"),
    printcolumn = r#"{"name":"Database","type":"string","jsonPath":".spec.databaseName"}"#,
    printcolumn = r#"{"name":"Owner","type":"string","jsonPath":".spec.owner"}"#,
    printcolumn = r#"{"name":"Policy","type":"string","jsonPath":".spec.deletionPolicy"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Degraded","type":"string","jsonPath":".status.conditions[?(@.type==\"Degraded\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct LogicalDatabaseSpec {
    /// The Secret with the server's administrator: `host`, `port`, `username`, `password`, `database`. Another cannot be
    /// named afterwards: what was made in one server would be forgotten there.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "serverSecret cannot be changed"}]))]
    #[schemars(length(min = 1))]
    pub server_secret: String,
    /// The database to make. It cannot be changed afterwards.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "databaseName cannot be changed"}]))]
    #[schemars(regex(pattern = r"^[a-z_][a-z0-9_-]{0,62}$"))]
    pub database_name: String,
    /// The role that owns it and may log in. It cannot be changed afterwards.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "owner cannot be changed"},
        {"rule": "!self.startsWith('pg_') && self != 'public' && self != 'none'", "message": "PostgreSQL keeps role names that begin with pg_, public and none for itself"},
    ]))]
    #[schemars(regex(pattern = r"^[a-z_][a-z0-9_-]{0,62}$"))]
    pub owner: String,
    /// What becomes of database and role when this object is deleted; `Delete` by default.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

/// What becomes of the database and the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// They are dropped.
    #[default]
    Delete,
    /// They stay. A later object of the same namespace and name, with the same `databaseName` and `owner`, takes them
    /// back; to every other object they are a stranger's.
    Retain,
}

/// What is there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogicalDatabaseStatus {
    /// The database in the world outside: `host:port/name`. Written before it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// The role can log in to its database.
    #[serde(default)]
    pub ready: bool,
    /// `Ready`, and `Degraded` when it is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The generation this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The controller, ready to be given to a manager.
#[must_use]
pub fn controller() -> Controller<LogicalDatabase> {
    // One watch on Secrets serves both: the server's, which is followed, and our own.
    Controller::new(reconcile::reconcile).named(OPERATOR).owns::<Secret>()
}
