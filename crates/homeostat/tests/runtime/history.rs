//! A server whose history is replaced by another, as after a restore from a backup: numbers of
//! versions begin again, and what was written before means nothing any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use homeostat::kube::client::Body;
use homeostat::kube::{Client, ResourceExt};
use homeostat::{Context, Controller, Manager, Outcome, Predicate, Result};
use http::{Request, Response};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::cluster::{Cluster, config, on_cluster, secret};

/// Notes which value it has seen.
async fn note(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    let value = &config.data.as_ref().unwrap()["value"];
    let note = json!({ "metadata": { "annotations": { "seen": value } } });
    ctx.merge_patch::<ConfigMap>(ctx.key(), &note).await?;
    Ok(Outcome::Done)
}

async fn noted(cluster: &Cluster, value: &str) {
    let seen = |config: &ConfigMap| config.annotations().get("seen").is_some_and(|it| it == value);
    cluster.until_one::<ConfigMap>("a", value, seen).await;
}

fn expired() -> Response<Body> {
    let body = json!({ "kind": "Status", "code": 410, "reason": "Expired", "message": "gone" });
    Response::builder().status(410).body(Body::from(body.to_string().into_bytes())).unwrap()
}

#[test]
fn what_was_written_before_the_history_was_replaced_is_not_waited_for() {
    on_cluster(async |old| {
        assert!(old.is_virtual, "it takes a server that can be replaced");
        // The same names on a server that has seen less.
        let new = Cluster::embedded(1).await;
        assert_eq!(old.namespace, new.namespace);
        for round in 0..100 {
            old.create::<Secret>(&secret(&format!("filler-{round}"), "1")).await;
        }
        old.create(&config("a", "1")).await;
        new.create(&config("a", "2")).await;
        let restored = Arc::new(AtomicBool::new(false));
        let (flag, from, to) = (restored.clone(), old.client.clone(), new.client.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_new = flag.load(Ordering::SeqCst);
            let client = if is_new { to.clone() } else { from.clone() };
            let query = request.uri().query().unwrap_or_default();
            let goes_on = query.contains("watch=true") && !query.contains("sendInitialEvents");
            async move {
                // Nobody knows any more where the old watches were.
                if is_new && goes_on { Ok(expired()) } else { client.send(request).await }
            }
        });
        let client = Client::new(service, old.client.default_namespace());
        // Its own note does not wake it, so nothing has waited for that write when all is lost.
        let value = Predicate::changed(|config: &ConfigMap| config.data.clone());
        let controller = Controller::new(note).filter(value).namespace(&old.namespace);
        let manager = Manager::new(client, old.env.clone()).with(controller);
        let running = old.start_manager(manager).await;
        noted(&old, "1").await;
        restored.store(true, Ordering::SeqCst);
        noted(&new, "2").await;
        new.patch::<ConfigMap>("a", json!({ "data": { "value": "3" } })).await;
        noted(&new, "3").await;
        running.stop().await.unwrap();
    });
}
