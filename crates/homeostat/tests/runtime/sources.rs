//! What wakes a controller, what does not, and where reads come from.

use std::sync::Arc;

use homeostat::journal::{Read, ReadFrom, Record};
use homeostat::kube::api::{Api, PostParams};
use homeostat::kube::{CustomResource, ResourceExt};
use homeostat::trigger::EventKind;
use homeostat::{Context, Controller, Error, Key, Kind, Outcome, Predicate, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::budget::{PodDisruptionBudget, budget};
use crate::children::mirror;
use crate::cluster::{config, endings, idle, on_cluster, secret, triggers};

#[test]
fn a_watched_kind_wakes_the_keys_it_names_before_and_after() {
    on_cluster(async |cluster| {
        for name in ["a", "b"] {
            cluster.create(&config(name, "1")).await;
        }
        let mut pointer = secret("pointer", "1");
        pointer.labels_mut().insert("to".into(), "a".into());
        cluster.create(&pointer).await;
        let map = |secret: &Secret| {
            let to = secret.labels().get("to").cloned();
            let namespace = secret.namespace().unwrap_or_default();
            to.map(|name| Key::namespaced(namespace, name)).into_iter().collect()
        };
        let running = cluster.start(Controller::new(idle::<ConfigMap>).watches(map)).await;
        let journal = running.journal();
        cluster.nothing_more().await;
        let before = journal.records().len();
        cluster
            .patch::<Secret>("pointer", json!({ "metadata": { "labels": { "to": "b" } } }))
            .await;
        let records = cluster.runs(&journal, before + 2).await;
        let woken: Vec<&str> = records[before..].iter().map(|record| record.key.name()).collect();
        assert_eq!(woken, ["a", "b"]);
        let words = format!("Secret {}/pointer updated", cluster.namespace);
        assert_eq!(triggers(&records[before]), words);
    });
}

#[test]
fn filters_and_label_scopes_keep_changes_away() {
    on_cluster(async |cluster| {
        let mut seen = budget("seen", 1);
        seen.labels_mut().insert("app".into(), "web".into());
        cluster.create(&seen).await;
        cluster.create(&budget("unseen", 1)).await;
        let filter = Predicate::generation_changed().or(Predicate::annotations_changed());
        let running = cluster
            .start(Controller::new(idle::<PodDisruptionBudget>).filter(filter).labels("app=web"))
            .await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        let patch = |patch| cluster.patch::<PodDisruptionBudget>("seen", patch);
        patch(json!({ "metadata": { "labels": { "more": "x" } } })).await;
        cluster.nothing_more().await;
        assert_eq!(journal.total(), 1);
        patch(json!({ "metadata": { "annotations": { "more": "x" } } })).await;
        cluster.runs(&journal, 2).await;
        patch(json!({ "spec": { "minAvailable": 5 } })).await;
        let records = cluster.runs(&journal, 3).await;
        assert!(records.iter().all(|record| record.key.name() == "seen"));
    });
}

#[test]
fn a_kind_that_is_missing_holds_back_only_its_own_controller() {
    #[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
    #[kube(group = "absent.homeostat.dev", version = "v1", kind = "Nothing", namespaced)]
    struct NothingSpec {}
    async fn nothing(_: Arc<Nothing>, _: Context<Nothing>) -> Result<Outcome> {
        Ok(Outcome::Done)
    }
    on_cluster(async |cluster| {
        cluster.create(&config("a", "MQ==")).await;
        let mirror = Controller::new(mirror).owns::<Secret>().namespace(&cluster.namespace);
        let manager = cluster.manager().with(Controller::new(nothing)).with(mirror);
        let running = manager.start().await.unwrap();
        cluster.runs(&running.journal(), 1).await;
        assert_eq!(running.pending().len(), 1);
        assert!(running.pending()[0].contains("Nothing"), "{:?}", running.pending());
        running.stop().await.unwrap();
    });
}

#[test]
fn kinds_that_were_not_declared_are_read_from_the_api() {
    on_cluster(async |cluster| {
        async fn look(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            assert!(context.get::<Secret>("x").await?.is_some());
            assert!(context.get::<Secret>("y").await?.is_none());
            assert_eq!(context.list::<Secret>().await?.len(), 1);
            let made = context.create(secret("mine", "1")).await?;
            assert_eq!(context.owned::<Secret>().await?[0].uid(), made.uid());
            Ok(Outcome::Done)
        }
        cluster.create(&secret("x", "1")).await;
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(look)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records), ["done"]);
    });
}

#[test]
fn a_list_of_this_moment_does_not_wait_for_the_cache_and_is_not_answered_by_it() {
    on_cluster(async |cluster| {
        let client = cluster.client.clone();
        let reconcile = move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let client = client.clone();
            async move {
                // By somebody else: nothing that a read of the cache would wait for.
                let api: Api<Secret> = Api::namespaced(client, ctx.key().namespace().unwrap());
                let mut labelled = secret("b", "1");
                labelled.labels_mut().insert("for".to_owned(), "me".to_owned());
                for theirs in [secret("c", "1"), labelled] {
                    api.create(&PostParams::default(), &theirs).await?;
                }
                let names = |all: Vec<Arc<Secret>>| -> Vec<String> {
                    all.iter().map(|secret| secret.name_any()).collect()
                };
                assert_eq!(names(ctx.list_live("").await?), ["b", "c"]);
                assert_eq!(names(ctx.list_live("for=me").await?), ["b"]);
                let (kind, namespace) = (Kind::of::<Secret>(), ctx.key().namespace());
                assert_eq!(names(ctx.list_live_of(&kind, namespace, "for!=me").await?), ["c"]);
                let unread = ctx.list_live::<Secret>("a in b").await.unwrap_err();
                assert!(unread.is_terminal(), "{unread}");
                Ok(Outcome::Done)
            }
        };
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(reconcile).reads::<Secret>()).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records)[0], "done", "{}", running.journal());
        let from_api = |read: &Read| read.from == ReadFrom::Api && read.key.is_none();
        assert!(records[0].reads.iter().all(from_api), "{:?}", records[0].reads);
        running.stop().await.unwrap();
    });
}

/// A view of secrets that fits none of them.
#[derive(Debug, Deserialize)]
struct Misread {
    #[serde(rename = "data")]
    _data: u8,
}

#[test]
fn a_list_with_an_object_that_does_not_fit_is_an_error_from_the_cache_as_from_the_api() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        for declared in [true, false] {
            let list = async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
                ctx.list_of::<Misread>(&Kind::of::<Secret>(), ctx.key().namespace(), "").await?;
                Ok(Outcome::Done)
            };
            cluster.create(&secret("misfit", "1")).await;
            let controller = Controller::new(list);
            let controller = if declared { controller.reads::<Secret>() } else { controller };
            let running = cluster.start(controller).await;
            let records = cluster.runs(&running.journal(), 1).await;
            let ending = &endings(&records)[0];
            assert!(ending.starts_with("terminal: "), "{declared}: {ending}");
            assert!(ending.contains("/misfit"), "{declared}: {ending}");
            // Nobody changes the primary, and it goes on all the same once that one is out of the way.
            cluster.api::<Secret>().delete("misfit", &<_>::default()).await.unwrap();
            let is_done = |all: &[Arc<Record>]| endings(all).iter().any(|ending| ending == "done");
            cluster.until_recorded(&running.journal(), is_done).await;
            running.stop().await.unwrap();
        }
    });
}

#[test]
fn a_filter_that_stops_deletions_does_not_keep_the_memory_for_a_namesake() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let fail = async |a: Arc<ConfigMap>, _: Context<ConfigMap>| match &*a.name_any() {
            "a" => Err(Error::transient("out of order")),
            _ => Ok(Outcome::Done),
        };
        let unless_gone = Predicate::new(|delta| delta.change != EventKind::Deleted);
        let controller = Controller::new(fail).filter(unless_gone).give_up_after(3, |_, _| {});
        let running = cluster.start(controller).await;
        let journal = running.journal();
        cluster.runs(&journal, 2).await;
        cluster.api::<ConfigMap>().delete("a", &<_>::default()).await.unwrap();
        // Nothing is recorded of what is gone: another key shows that its turn is over.
        cluster.create(&config("b", "1")).await;
        cluster.runs(&journal, 3).await;
        cluster.create(&config("a", "1")).await;
        let records = cluster.runs(&journal, 5).await;
        let names: Vec<&str> = records.iter().map(|record| record.key.name()).collect();
        assert_eq!(names, ["a", "a", "b", "a", "a"], "{journal}");
        assert!(endings(&records)[3].starts_with("failed"), "given up at once: {journal}");
        running.stop().await.unwrap();
    });
}
