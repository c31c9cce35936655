//! WebApp: a Deployment and a Service, kept as declared.
//!
//! Whatever somebody does to the two children (scale, edit, delete) is put right again; the
//! status says how many replicas answer.

mod children;
mod reconcile;

use homeostat::Controller;
use homeostat::k8s_openapi::api::apps::v1::Deployment;
use homeostat::k8s_openapi::api::core::v1::{Pod, Service};
use homeostat::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use homeostat::labels;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use reconcile::reconcile;

/// The name in logs, events, labels and field ownership.
pub const OPERATOR: &str = "webapp-operator";

/// What the labels of its children call it.
const NAME: &str = "webapp";

/// A web application: an image, how many of it, and the port it listens on.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "homeostat.dev",
    version = "v1alpha1",
    kind = "WebApp",
    plural = "webapps",
    namespaced,
    status = "WebAppStatus",
    doc = "A web application: a Deployment and a Service, kept as declared.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.availableReplicas",
        label_selector_path = ".status.selector"
    ),
    validation = Rule::new("self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')").message("the name is also that of a Service: give it at most 63 characters and no dots"),
    printcolumn = r#"{"name":"Image","type":"string","jsonPath":".spec.image"}"#,
    printcolumn = r#"{"name":"Replicas","type":"integer","jsonPath":".spec.replicas"}"#,
    printcolumn = r#"{"name":"Available","type":"integer","jsonPath":".status.availableReplicas"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Degraded","type":"string","jsonPath":".status.conditions[?(@.type==\"Degraded\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct WebAppSpec {
    /// The image to run. It is told its port in `PORT`.
    #[schemars(length(min = 1))]
    pub image: String,
    /// How many Pods answer; 1 by default.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// The port the application listens on, and that of its Service; 8080 by default.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

fn one() -> i32 {
    1
}

fn default_port() -> i32 {
    8080
}

/// What answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebAppStatus {
    /// Pods that are available.
    #[serde(default)]
    pub available_replicas: i32,
    /// All replicas run the declared image and are available.
    #[serde(default)]
    pub ready: bool,
    /// Selects the Pods, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// `Ready`, and `Degraded` when it is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The generation this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The controller, ready to be given to a manager.
#[must_use]
pub fn controller() -> Controller<WebApp> {
    Controller::new(reconcile)
        .named(OPERATOR)
        .owns::<Deployment>()
        .owns::<Service>()
        .watches::<Pod>(|pod| labels::instance(NAME, pod))
}
