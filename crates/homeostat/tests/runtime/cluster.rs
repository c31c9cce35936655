//! What the tests of the runtime say often.

use std::sync::Arc;

use homeostat::journal::Record;
use homeostat::{Context, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

pub use homeostat_testing::{TestCluster as Cluster, object, on_cluster, on_threads};

/// A config map with one value.
pub fn config(name: &str, value: &str) -> ConfigMap {
    object(json!({ "metadata": { "name": name }, "data": { "value": value } }))
}

/// A secret with one value.
pub fn secret(name: &str, value: &str) -> Secret {
    object(json!({ "metadata": { "name": name }, "stringData": { "value": value } }))
}

/// A reconcile that is content with everything.
pub async fn idle<K>(_: Arc<K>, _: Context<K>) -> Result<Outcome> {
    Ok(Outcome::Done)
}

/// How the records ended, in words.
pub fn endings(records: &[Arc<Record>]) -> Vec<String> {
    records.iter().map(|record| record.result.to_string()).collect()
}

/// Why the records ran, in words.
pub fn triggers(record: &Record) -> String {
    record.triggers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
