//! Database: a PostgreSQL server with storage, an address and credentials.
//!
//! The password is made once and never rewritten. Should the Secret be lost or its password edited,
//! the servers start again and take the new one over. The address in the Secret is the Service's,
//! so the `uri` works as it is from wherever that address answers.

mod children;
mod credentials;
mod made;
mod reconcile;
mod stuck;

use homeostat::Controller;
use homeostat::k8s_openapi::api::apps::v1::StatefulSet;
use homeostat::k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret, Service};
use homeostat::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use homeostat::labels;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use reconcile::reconcile;

/// The name in logs, events, labels and field ownership.
pub const OPERATOR: &str = "database-operator";

/// What the labels of its children call it.
const NAME: &str = "database";

/// The port PostgreSQL listens on.
pub const PORT: u16 = 5432;

/// A PostgreSQL server.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "homeostat.dev",
    version = "v1alpha1",
    kind = "Database",
    plural = "databases",
    shortname = "db",
    namespaced,
    status = "DatabaseStatus",
    doc = "A PostgreSQL server with storage, an address and credentials.",
    validation = Rule::new("self.metadata.name.size() <= 52 && !self.metadata.name.contains('.')").message("the name is also that of a Service and a StatefulSet: give it at most 52 characters and no dots"),
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".spec.version"}"#,
    printcolumn = r#"{"name":"Storage","type":"string","jsonPath":".spec.storage"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Endpoint","type":"string","jsonPath":".status.endpoint"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Degraded","type":"string","jsonPath":".status.conditions[?(@.type==\"Degraded\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    /// The version of PostgreSQL: the tag of the `postgres` image. 15 by default. Once a server has been ready, another
    /// major version cannot read its data: such an edit is refused, and the servers go on as they are.
    #[serde(default = "default_version")]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub version: String,
    /// The size of the volume; 1Gi by default. Volumes neither shrink nor grow: an edit is refused.
    #[serde(default = "default_storage")]
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "quantity(self).isGreaterThan(quantity('0'))", "message": "storage must be more than 0"}]))]
    #[schemars(length(max = 32))]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+)?(k|[KMGTPE]i|[MGTPE])?$"))]
    pub storage: String,
    /// How many servers; 1 by default. Clients reach the first one; replication is not set up.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// The database made at the first start; `app` by default. It cannot be changed afterwards.
    #[serde(default = "default_database")]
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "databaseName cannot be changed"}]))]
    #[schemars(regex(pattern = r"^[a-z_][a-z0-9_-]{0,62}$"))]
    pub database_name: String,
}

fn default_version() -> String {
    "15".to_owned()
}

fn default_storage() -> String {
    "1Gi".to_owned()
}

fn one() -> i32 {
    1
}

fn default_database() -> String {
    "app".to_owned()
}

/// Where it is, and whether it answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseStatus {
    /// Every server is up.
    #[serde(default)]
    pub ready: bool,
    /// `host:port` of the first server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// `Ready`, and `Degraded` when it is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The generation this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The controller, ready to be given to a manager.
#[must_use]
pub fn controller() -> Controller<Database> {
    Controller::new(reconcile)
        .named(OPERATOR)
        .owns::<StatefulSet>()
        .owns::<Service>()
        .owns::<Secret>()
        .watches::<PersistentVolumeClaim>(|claim| labels::instance(NAME, claim))
        .watches::<Pod>(|pod| labels::instance(NAME, pod))
}
