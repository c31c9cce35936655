//! Dependents that the graph has not seen yet.
//!
//! Caches of different kinds are not in step: an owner may be seen to go before a dependent is seen that
//! was there first. It would not be waited for, or, instead of being set free, be taken for one whose owner
//! is gone. So before an owner goes, every cache that may be behind it is checked against the API.

use std::collections::BTreeSet;

use homeostat::cache::{Informer, Owner, revision};
use homeostat::kube::{self, Client};
use homeostat::{Error, Result};
use http::Request;
use http::header::ACCEPT;
use serde::Deserialize;

use super::Monitor;
use super::graph::{Node, Uid};

/// A list of nothing but metadata.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

#[derive(Deserialize)]
struct List {
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: Uid,
    #[serde(default)]
    owner_references: Vec<Owner>,
}

/// Refuses while `owner` has a dependent that matters to its end and is not in the graph.
///
/// # Errors
/// [`Error::Stale`] while there is one; what the API says when it cannot be asked.
pub(super) async fn check(client: &Client, monitor: &Monitor, owner: &Node) -> Result<()> {
    let matters = |reference: &Owner| {
        reference.uid == owner.uid && (owner.frees_dependents() || reference.block_owner_deletion)
    };
    let known: BTreeSet<Uid> = {
        let graph = monitor.graph();
        let dependents = graph.dependents(&owner.uid);
        dependents.filter(|node| node.owners.iter().any(matters)).map(|n| n.uid.clone()).collect()
    };
    for informer in monitor.followed() {
        // Of what cannot be followed nothing is known, and an owner in a namespace has all its
        // dependents there.
        let is_near = owner.key.namespace().is_none() || informer.kind().is_namespaced();
        if !is_near || !informer.is_synced() {
            continue;
        }
        let found = if is_behind(&informer, owner) {
            listed(client, &informer, owner, &matters).await?
        } else {
            let entries = informer.by_owner(&owner.uid).into_iter();
            let named = entries.filter(|entry| entry.header.owners.iter().any(matters));
            named.map(|entry| entry.header.uid.clone()).collect()
        };
        if let Some(uid) = found.difference(&known).next() {
            let what = format!("{} {uid}, which {} owns", informer.kind(), owner.key);
            return Err(Error::Stale(format!("{what}, is not seen yet")));
        }
    }
    Ok(())
}

/// Whether the cache may lack what was there before the owner was last changed.
fn is_behind(informer: &Informer, owner: &Node) -> bool {
    let at = informer.revision();
    at.is_none_or(|at| revision::compare(&at, &owner.resource_version).is_none_or(|it| it.is_lt()))
}

/// The dependents that the API knows of.
async fn listed(
    client: &Client,
    informer: &Informer,
    owner: &Node,
    matters: &impl Fn(&Owner) -> bool,
) -> Result<BTreeSet<Uid>> {
    let path = informer.kind().path(owner.key.namespace());
    let request = Request::get(path).header(ACCEPT, METADATA).body(Vec::new());
    let list: List = match client.request(request.map_err(Error::terminal)?).await {
        Ok(list) => list,
        // A definition that is gone has no objects.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(BTreeSet::new()),
        Err(error) => return Err(error.into()),
    };
    let items = list.items.unwrap_or_default().into_iter().map(|item| item.metadata);
    let named = items.filter(|item| item.owner_references.iter().any(matters));
    Ok(named.map(|item| item.uid).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use homeostat::kube::api::{Api, DeleteParams, PostParams};
    use homeostat::kube::client::Body;
    use homeostat::{Env, Manager};
    use homeostat_apiserver::{Server, ServerConfig};
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use serde_json::json;
    use tower::Service as _;

    use super::*;
    use crate::{Cluster, ClusterConfig};

    /// A way to the server on which no Secret is ever heard of, unless somebody asks.
    fn deaf_to_secrets(server: Server) -> Client {
        let service = tower::service_fn(move |mut request: Request<Body>| {
            let uri = request.uri().to_string();
            if uri.starts_with("/api/v1/secrets?") && uri.contains("watch=") {
                let nobody = format!("{uri}&fieldSelector=metadata.name%3Dnobody");
                *request.uri_mut() = nobody.parse().unwrap();
            }
            server.clone().call(request)
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_stays_until_a_dependent_that_no_cache_shows_is_seen_to() {
        for policy in [DeleteParams::foreground(), DeleteParams::orphan()] {
            let env = Env::simulated(1, jiff::Timestamp::UNIX_EPOCH);
            let server = Server::new(ServerConfig::new(env.clone()));
            let client = Client::new(server.clone(), "default");
            let manager = Manager::new(deaf_to_secrets(server), env.clone());
            let cluster = Cluster::start(manager, &ClusterConfig::default()).await.unwrap();

            let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
            let secrets: Api<Secret> = Api::default_namespaced(client);
            let new = |object| serde_json::from_value(object).unwrap();
            let owner = new(json!({"metadata": {"name": "owner"}}));
            let owner = maps.create(&PostParams::default(), &owner).await.unwrap();
            let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
                "uid": owner.metadata.uid, "blockOwnerDeletion": true});
            let child = json!({"metadata": {"name": "child", "ownerReferences": [reference]}});
            let child: Secret = serde_json::from_value(child).unwrap();
            secrets.create(&PostParams::default(), &child).await.unwrap();

            maps.delete("owner", &policy).await.unwrap();
            env.sleep(Duration::from_secs(10)).await;
            assert!(maps.get_opt("owner").await.unwrap().is_some(), "{policy:?}");
            let live = secrets.get("child").await.unwrap();
            assert!(live.metadata.deletion_timestamp.is_none(), "{policy:?}");

            secrets.delete("child", &DeleteParams::default()).await.unwrap();
            env.sleep(Duration::from_secs(60)).await;
            assert!(maps.get_opt("owner").await.unwrap().is_none(), "{policy:?}");
            cluster.stop().await.unwrap();
        }
    }
}
