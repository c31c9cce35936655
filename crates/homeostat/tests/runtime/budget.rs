//! A kind with a generation, a status and standard conditions that every cluster serves.

use homeostat::Kind;
use homeostat::condition::Condition;
use homeostat::kube::CustomResource;
use homeostat::kube::api::{Api, DynamicObject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cluster::{Cluster, object};

/// A loose view of a built-in kind that has a generation, a status and standard conditions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "policy", version = "v1", kind = "PodDisruptionBudget", namespaced)]
#[kube(status = "BudgetStatus")]
#[serde(rename_all = "camelCase")]
pub struct BudgetSpec {
    pub min_available: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    pub current_healthy: i64,
    pub desired_healthy: i64,
    pub disruptions_allowed: i64,
    pub expected_pods: i64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

pub fn budget(name: &str, min: i64) -> PodDisruptionBudget {
    object(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": name }, "spec": { "minAvailable": min },
    }))
}

/// One that the view does not fit, which knows numbers only, and where it is made.
pub fn odd_budget(cluster: &Cluster) -> (Api<DynamicObject>, DynamicObject) {
    let resource = Kind::of::<PodDisruptionBudget>().api_resource();
    let odd = object(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": "odd" }, "spec": { "minAvailable": "50%" },
    }));
    (Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &resource), odd)
}
