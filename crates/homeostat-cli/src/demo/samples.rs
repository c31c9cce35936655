//! The objects of the demo: one per operator.

use std::time::Duration;

use homeostat::Env;
use homeostat_cluster::node::image::postgresql_versions;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource};
use operator_at::{At, AtSpec};
use operator_database::{Database, DatabaseSpec};
use operator_logical_database::{DeletionPolicy, LogicalDatabase, LogicalDatabaseSpec};
use operator_webapp::{WebApp, WebAppSpec};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::operators::Operator;

/// How long the `At` of the demo waits.
const SOON: Duration = Duration::from_secs(10);

/// Applies the objects of the chosen operators.
pub(crate) async fn apply(client: &Client, env: &Env, chosen: &[Operator]) -> kube::Result<()> {
    for operator in chosen {
        match operator.name {
            "at" => one(client, &at(env)).await?,
            "webapp" => one(client, &webapp()).await?,
            "database" => one(client, &database()).await?,
            "logical-database" => one(client, &logical_database()).await?,
            _ => {}
        }
    }
    Ok(())
}

async fn one<K>(client: &Client, object: &K) -> kube::Result<()>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let objects: Api<K> = Api::default_namespaced(client.clone());
    let name = object.meta().name.as_deref().unwrap_or_default();
    objects
        .patch(name, &PatchParams::apply("homeostat-demo").force(), &Patch::Apply(object))
        .await?;
    Ok(())
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
