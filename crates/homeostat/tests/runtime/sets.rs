//! Sets of children that follow a list, and keys that are given up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use homeostat::{Backoff, Context, Controller, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::json;

use crate::cluster::{config, endings, object, on_cluster, secret};
use crate::contract::failure;

/// A secret for each word of the config map's value.
async fn one_for_each_word(list: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    let words = list.data.as_ref().and_then(|data| data.get("value")).cloned().unwrap_or_default();
    ctx.apply_set(words.split_whitespace().map(|word| secret(word, "x")).collect()).await?;
    Ok(Outcome::Done)
}

#[test]
fn children_that_are_no_longer_desired_are_deleted_and_strangers_are_not() {
    on_cluster(async |cluster| {
        cluster.create(&secret("stranger", "1")).await;
        cluster.create(&config("words", "a b c")).await;
        let names = async || {
            let all = cluster.list::<Secret>("").await;
            all.into_iter().filter_map(|secret| secret.metadata.name).collect::<Vec<_>>()
        };
        // Once with a cache, once without.
        let declared = Controller::new(one_for_each_word).owns::<Secret>();
        for controller in [declared, Controller::new(one_for_each_word)] {
            cluster.patch::<ConfigMap>("words", json!({ "data": { "value": "a b c" } })).await;
            let running = cluster.start(controller).await;
            cluster.quiet().await;
            assert_eq!(names().await, ["a", "b", "c", "stranger"]);
            cluster.patch::<ConfigMap>("words", json!({ "data": { "value": "c d" } })).await;
            cluster.quiet().await;
            assert_eq!(names().await, ["c", "d", "stranger"], "{}", running.journal());
            let quiet = running.journal().total();
            cluster.quiet().await;
            assert_eq!(running.journal().total(), quiet);
            running.stop().await.unwrap();
        }
    });
}

#[test]
fn nothing_is_deleted_when_a_child_cannot_be_applied() {
    on_cluster(async |cluster| {
        cluster.create(&config("words", "a b")).await;
        let running = cluster.start(Controller::new(one_for_each_word).owns::<Secret>()).await;
        cluster.quiet().await;
        for wrong in ["b Not_A_Name", "b b"] {
            cluster.patch::<ConfigMap>("words", json!({ "data": { "value": wrong } })).await;
            cluster.quiet().await;
            assert_eq!(cluster.list::<Secret>("").await.len(), 2, "{}", running.journal());
        }
        let last = endings(&running.journal().records()).pop().unwrap();
        assert!(last.starts_with("terminal: ") && last.contains("twice"), "{last}");
    });
}

#[test]
fn a_key_that_fails_too_often_is_given_up_until_it_changes() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let runs = Arc::new(AtomicUsize::new(0));
        let reconcile = {
            let runs = runs.clone();
            move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
                runs.fetch_add(1, Ordering::SeqCst);
                async { failure() }
            }
        };
        let first = Duration::from_millis(100);
        let backoff = Backoff { first, ..Backoff::default().exact() };
        let log = told.clone();
        let controller = Controller::new(reconcile).backoff(backoff);
        let controller = controller.give_up_after(3, move |key, error| {
            log.lock().unwrap().push(format!("{}: {error}", key.name()));
        });
        let running = cluster.start(controller).await;
        let journal = running.journal();
        cluster.runs(&journal, 3).await;
        cluster.nothing_more().await;
        let records = journal.records();
        assert_eq!(endings(&records)[2], "terminal: out of order", "{journal}");
        assert_eq!(
            (records.len(), told.lock().unwrap().as_slice()),
            (3, &["a: out of order".to_owned()][..])
        );

        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        cluster.runs(&journal, 6).await;
        cluster.nothing_more().await;
        assert_eq!((journal.total(), told.lock().unwrap().len()), (6, 2));
    });
}

/// A role with the namespace's name: kept, deleted or somebody else's, as its label says.
async fn one_role(namespace: Arc<Namespace>, ctx: Context<Namespace>) -> Result<Outcome> {
    let named = |name: String| -> ClusterRole {
        // A cluster-scoped object has no namespace, whatever it says.
        object(json!({ "metadata": { "name": name, "namespace": "elsewhere" } }))
    };
    let name = namespace.name_any();
    match namespace.labels().get("roles").map(String::as_str) {
        Some("taken") => drop(ctx.apply(named(format!("{name}-taken"))).await?),
        Some("none") => ctx.delete(&named(name)).await?,
        _ => drop(ctx.apply_set(vec![named(name)]).await?),
    }
    Ok(Outcome::Done)
}

#[test]
fn a_cluster_scoped_child_that_names_a_namespace_is_kept_and_found() {
    on_cluster(async |cluster| {
        let roles: Api<ClusterRole> = Api::all(cluster.client.clone());
        let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
        let name = &*cluster.namespace;
        let label = async |word: &str| {
            let labels = json!({ "metadata": { "labels": { "roles": word, "of": name } } });
            let params = PatchParams::default();
            namespaces.patch(name, &params, &Patch::Merge(labels)).await.unwrap();
        };
        let stranger = json!({ "apiVersion": "v1", "kind": "Namespace", "name": "theirs",
            "uid": "theirs", "controller": true });
        let taken = json!({ "metadata": {
            "name": format!("{name}-taken"), "ownerReferences": [stranger],
        } });
        roles.create(&PostParams::default(), &object(taken)).await.unwrap();
        label("one").await;
        let controller = Controller::new(one_role).owns::<ClusterRole>();
        let controller = controller.labels(&format!("of={name}"));
        let running = cluster.start_manager(cluster.manager().with(controller)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        tokio::select! {
            biased;
            // On virtual time no second passes while it is at it.
            _ = cluster.runs(&journal, 9) => panic!("it does not come to rest:\n{journal}"),
            () = cluster.env.sleep(Duration::from_secs(5)) => {}
        }
        let verbs: Vec<&str> =
            journal.records().iter().flat_map(|run| run.writes.clone()).map(|w| w.verb).collect();
        assert_eq!(verbs, ["apply"], "{journal}");
        assert!(roles.get_opt(name).await.unwrap().is_some());

        let before = journal.records().len();
        label("taken").await;
        let records = cluster.runs(&journal, before + 1).await;
        let last = endings(&records).pop().unwrap();
        assert!(last.contains("controlled by Namespace theirs"), "{last}");
        label("none").await;
        cluster.quiet().await;
        assert!(roles.get_opt(name).await.unwrap().is_none(), "{journal}");
        running.stop().await.unwrap();
        roles.delete(&format!("{name}-taken"), &DeleteParams::default()).await.unwrap();
    });
}
