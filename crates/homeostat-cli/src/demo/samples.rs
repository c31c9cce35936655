//! The objects of the demo: one per operator, made once in the life of a cluster. From then on they
//! are the user's: what was edited, ran or was deleted stays so, however often the demo is started on
//! the same data. Never updates anything.

use std::time::Duration;

use homeostat::Env;
use homeostat_cluster::node::image::postgresql_versions;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt as _};
use operator_at::{At, AtSpec};
use operator_database::{Database, DatabaseSpec};
use operator_logical_database::{DeletionPolicy, LogicalDatabase, LogicalDatabaseSpec};
use operator_webapp::{WebApp, WebAppSpec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::operators::Operator;

/// How long the `At` of the demo waits.
const SOON: Duration = Duration::from_secs(10);

/// Who makes them.
const MANAGER: &str = "homeostat-demo";

/// The ConfigMap in `kube-system` that says which were made, by operator. Who deletes it gets those
/// anew that are gone.
const RECORD: &str = "homeostat-demo";

/// Makes the objects of the chosen operators, but for those that were made before.
pub(crate) async fn make(client: &Client, env: &Env, chosen: &[Operator]) -> kube::Result<()> {
    let records: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let record = records.get_opt(RECORD).await?.and_then(|record| record.data);
    let mut made = record.unwrap_or_default();
    let before = made.len();
    for operator in chosen {
        if made.contains_key(operator.name) {
            continue;
        }
        let name = match operator.name {
            "at" => one(client, &at(env)).await?,
            "webapp" => one(client, &webapp()).await?,
            "database" => one(client, &database()).await?,
            "logical-database" => one(client, &logical_database()).await?,
            _ => continue,
        };
        made.insert(operator.name.to_owned(), name);
    }
    if made.len() > before {
        let note = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": made });
        let how = PatchParams::apply(MANAGER).force();
        records.patch(RECORD, &how, &Patch::Apply(note)).await?;
    }
    Ok(())
}

/// Makes one; of that name there may be one already, which stays as it is. Its name.
async fn one<K>(client: &Client, object: &K) -> kube::Result<String>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let objects: Api<K> = Api::default_namespaced(client.clone());
    let how = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    match objects.create(&how, object).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        made => drop(made?),
    }
    Ok(object.name_any())
}

fn at(env: &Env) -> At {
    let due = env.now().saturating_add(SOON).unwrap_or(jiff::Timestamp::MAX);
    At::new(
        "greeting",
        AtSpec {
            schedule: due.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            command: "echo hello from the past".to_owned(),
        },
    )
}

fn webapp() -> WebApp {
    WebApp::new(
        "hello",
        WebAppSpec { image: "homeostat.dev/hello:1".to_owned(), replicas: 2, port: 8080 },
    )
}

fn database() -> Database {
    // One that this host has.
    let version = postgresql_versions().pop().unwrap_or(15);
    Database::new(
        "shop",
        DatabaseSpec {
            version: version.to_string(),
            storage: "1Gi".to_owned(),
            replicas: 1,
            database_name: "shop".to_owned(),
        },
    )
}

fn logical_database() -> LogicalDatabase {
    LogicalDatabase::new(
        "orders",
        LogicalDatabaseSpec {
            server_secret: "shop-credentials".to_owned(),
            database_name: "orders".to_owned(),
            owner: "orders".to_owned(),
            deletion_policy: DeletionPolicy::Delete,
        },
    )
}
