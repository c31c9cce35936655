//! An object in the way of a child: left alone, told of, and not in the way for longer than it is.

use std::sync::Arc;
use std::time::Duration;

use homeostat::condition;
use homeostat::journal::Record;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{ListParams, Patch};
use homeostat::{Context, Controller, Manager, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::events::v1::Event;
use serde_json::{Value, json};

use crate::budget::{PodDisruptionBudget, budget};
use crate::children::mirror;
use crate::cluster::{Cluster, config, endings, object, on_cluster, secret};
use crate::faults::{is, late};

/// A secret that the config map `other` controls.
async fn taken(cluster: &Cluster, name: &str) {
    let other = cluster.create(&config("other", "1")).await;
    let mut taken = secret(name, "theirs");
    taken.metadata.owner_references = Some(object(json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other.uid(), "controller": true,
    }])));
    cluster.create(&taken).await;
}

/// Makes a secret for `a`, and only for that one.
async fn create(config: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
    if config.name_any() == "a" {
        context.create(secret("a", "ours")).await?;
    }
    Ok(Outcome::Done)
}

async fn apply(config: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
    if config.name_any() == "a" {
        return mirror(config, context).await;
    }
    Ok(Outcome::Done)
}

async fn events(cluster: &Cluster, reason: &str) -> Vec<String> {
    let all = cluster.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let of_reason = all.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
    of_reason.filter_map(|event| event.note).collect()
}

/// Which config map controls the secret `a`.
fn controller(secret: &Secret) -> Option<&str> {
    let references = secret.metadata.owner_references.as_ref()?;
    references.iter().find(|one| one.controller == Some(true)).map(|one| one.name.as_str())
}

#[test]
fn a_child_is_made_once_the_object_in_its_way_is_gone() {
    // Through a cache of the kind and, undeclared, through a watch on that one object.
    let controllers = || {
        [
            Controller::new(apply).owns::<Secret>(),
            Controller::new(create).owns::<Secret>(),
            Controller::new(create),
        ]
    };
    for index in 0..controllers().len() {
        on_cluster(async |cluster| {
            taken(&cluster, "a").await;
            cluster.create(&config("a", "MQ==")).await;
            let running = cluster.start(controllers().into_iter().nth(index).unwrap()).await;
            let journal = running.journal();
            let refused =
                |end: &String| end.starts_with("terminal") && end.contains("ConfigMap other");
            cluster.until_recorded(&journal, |all| endings(all).iter().any(refused)).await;
            cluster.api::<Secret>().delete("a", &<_>::default()).await.unwrap();
            let ours = |secret: &Secret| controller(secret) == Some("a");
            cluster.until_one::<Secret>("a", "ours", ours).await;
            running.stop().await.unwrap();
        });
    }
}

#[test]
fn a_child_that_its_controller_gives_up_is_adopted_with_an_event_that_names_it() {
    on_cluster(async |cluster| {
        taken(&cluster, "a").await;
        cluster.create(&config("a", "MQ==")).await;
        let running = cluster.start(Controller::new(apply).owns::<Secret>()).await;
        let refused = |end: &String| end.starts_with("terminal");
        cluster.until_recorded(&running.journal(), |all| endings(all).iter().any(refused)).await;
        assert_eq!(events(&cluster, "Adopted").await, [""; 0]);
        let nobody = json!({ "metadata": { "ownerReferences": Value::Null } });
        cluster.patch::<Secret>("a", nobody).await;
        let ours = |secret: &Secret| controller(secret) == Some("a");
        cluster.until_one::<Secret>("a", "ours", ours).await;
        cluster.quiet().await;
        running.stop().await.unwrap();
        assert_eq!(
            events(&cluster, "Adopted").await,
            ["took over Secret a, which nobody controlled"]
        );
    });
}

#[test]
fn a_child_that_is_ours_already_is_not_adopted_again() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "MQ==")).await;
        for value in ["MQ==", "Mg=="] {
            cluster.patch::<ConfigMap>("a", json!({ "data": { "value": value } })).await;
            let running = cluster.start(Controller::new(apply).owns::<Secret>()).await;
            cluster.runs(&running.journal(), 1).await;
            running.stop().await.unwrap();
        }
        assert_eq!(events(&cluster, "Adopted").await, [""; 0]);
    });
}

#[test]
fn what_fails_for_good_is_not_ready_until_it_goes_well() {
    on_cluster(async |cluster| {
        /// Says nothing about readiness; a secret of that name must be its own.
        async fn reconcile(
            budget: Arc<PodDisruptionBudget>,
            context: Context<PodDisruptionBudget>,
        ) -> Result<Outcome> {
            context.create(secret(&budget.name_any(), "ours")).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&secret("a", "theirs")).await;
        cluster.create(&budget("a", 1)).await;
        let stale = json!({ "status": { "conditions": [condition::ready("Old", "it was so")] } });
        let api = cluster.api::<PodDisruptionBudget>();
        api.patch_status("a", &<_>::default(), &Patch::Merge(stale)).await.unwrap();
        let controller = Controller::new(reconcile).marks_status(true).owns::<Secret>();
        let running = cluster.start(controller).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 1, "its own conditions must not wake it:\n{journal}");
        let conditions = async || api.get("a").await.unwrap().status.unwrap().conditions;
        let all = conditions().await;
        for (type_, status) in [("Ready", "False"), ("Degraded", "True")] {
            let said = condition::get(&all, type_).unwrap();
            assert_eq!((&*said.status, &*said.reason), (status, "NotOurs"));
            assert!(said.message.contains("not owned by anyone"), "{}", said.message);
            assert_eq!(said.observed_generation, Some(1));
        }
        cluster.api::<Secret>().delete("a", &<_>::default()).await.unwrap();
        cluster.nothing_more().await;
        assert_eq!(conditions().await, [], "what the runtime said is taken back: {journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn who_says_how_ready_it_is_has_the_last_word() {
    on_cluster(async |cluster| {
        async fn reconcile(
            _: Arc<PodDisruptionBudget>,
            context: Context<PodDisruptionBudget>,
        ) -> Result<Outcome> {
            let ready = condition::ready("Serving", "the old way");
            context.status(json!({ "conditions": [ready], "expectedPods": 1 })).await?;
            Err(homeostat::Error::terminal("cannot be changed"))
        }
        cluster.create(&budget("a", 1)).await;
        let running = cluster.start(Controller::new(reconcile).marks_status(true)).await;
        cluster.nothing_more().await;
        let all = cluster.api::<PodDisruptionBudget>().get("a").await.unwrap();
        let all = all.status.unwrap().conditions;
        assert!(
            condition::is_true(&all, "Ready") && condition::is_true(&all, "Degraded"),
            "{all:?}"
        );
        running.stop().await.unwrap();
    });
}

#[test]
fn a_child_that_its_owner_may_not_have_is_a_terminal_error_and_not_written() {
    on_cluster(async |cluster| {
        async fn misplace(config: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            match &*config.name_any() {
                "elsewhere" => {
                    let mut child = secret("child", "1");
                    child.metadata.namespace = Some("default".to_owned());
                    context.apply(child).await?;
                }
                _ => {
                    let mut child = Namespace::default();
                    child.metadata.name = Some("homeostat-misplaced".to_owned());
                    context.create(child).await?;
                }
            }
            Ok(Outcome::Done)
        }
        for name in ["elsewhere", "everywhere"] {
            cluster.create(&config(name, "1")).await;
        }
        let running = cluster.start(Controller::new(misplace).concurrency(1)).await;
        let records = cluster.runs(&running.journal(), 2).await;
        for (record, words) in records.iter().zip(["same namespace", "cluster-scoped"]) {
            let said = record.result.to_string();
            assert!(said.starts_with("terminal: ") && said.contains(words), "{said}");
            assert!(record.writes.is_empty(), "{record}");
        }
        running.stop().await.unwrap();
    });
}

#[test]
fn what_is_in_the_way_before_the_cache_shows_it_is_waited_for_all_the_same() {
    on_cluster(async |cluster| {
        async fn insist(config: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let applied = context.apply(secret(&config.name_any(), "b3Vycw==")).await;
            applied.map_err(homeostat::Error::terminal_if_invalid)?;
            Ok(Outcome::Done)
        }
        let behind = Duration::from_secs(3);
        let client = late(&cluster.client, &cluster.env, behind, |it| is(it, "GET", "/secrets"));
        let controller = Controller::new(insist).owns::<Secret>().namespace(&cluster.namespace);
        let manager = Manager::new(client, cluster.env.clone()).with(controller);
        let running = cluster.start_manager(manager).await;
        // It cannot become what is asked for, and the cache does not show it yet.
        let mut fixed = secret("a", "dGhlaXJz");
        fixed.immutable = Some(true);
        cluster.create(&fixed).await;
        cluster.create(&config("a", "1")).await;
        let is_refused = |record: &Arc<Record>| record.result.to_string().contains("immutable");
        cluster.until_recorded(&running.journal(), |all| all.iter().any(is_refused)).await;
        cluster.api::<Secret>().delete("a", &<_>::default()).await.unwrap();
        let ours = |secret: &Secret| secret.immutable.is_none();
        cluster.until_one::<Secret>("a", "our own", ours).await;
        running.stop().await.unwrap();
    });
}
