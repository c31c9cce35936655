//! Controllers of whose primaries the metadata alone is cached.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat::controller::{Lookup, Related};
use homeostat::journal::ReadFrom;
use homeostat::kube::ResourceExt;
use homeostat::kube::core::PartialObjectMeta;
use homeostat::{Change, Context, Controller, Key, Kind, Manager, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::cluster::{config, endings, on_cluster, secret, triggers};
use crate::faults::{is, late};

type Meta = PartialObjectMeta<Secret>;
type Config = PartialObjectMeta<ConfigMap>;

/// A config map beside each secret, whose content is never cached.
async fn accompany(a: Arc<Meta>, ctx: Context<Meta>) -> Result<Outcome> {
    if ctx.finalizer("test.dev/partial", || async { Ok(()) }).await? {
        return Ok(Outcome::Done);
    }
    let name = a.name_any();
    let applied = ctx.apply(config(&name, "1")).await?;
    assert_eq!(ctx.owned::<PartialObjectMeta<ConfigMap>>().await?.len(), 1);
    // Written as a whole, guarded by what that write has left.
    let patch = json!({ "metadata": { "annotations": { "seen": "yes" } } });
    ctx.merge_patch::<Secret>(ctx.key(), &patch).await?;
    let again = ctx.get::<Meta>(&name).await?.unwrap();
    assert_eq!(again.annotations().get("seen").map(String::as_str), Some("yes"));
    assert!(ctx.get::<Secret>(&name).await?.unwrap().data.is_some());
    if applied.change == Change::Created {
        ctx.event(homeostat::EventType::Normal, "Accompanied", "by a config map");
    }
    Ok(Outcome::Done)
}

#[test]
fn the_metadata_of_primaries_is_enough_to_finalize_to_write_and_to_own() {
    on_cluster(async |cluster| {
        cluster.create(&secret("a", "1")).await;
        let controller = Controller::new(accompany).owns::<PartialObjectMeta<ConfigMap>>();
        let running = cluster.start(controller).await;
        let journal = running.journal();
        let child = cluster.until_one::<ConfigMap>("a", "a child", |_| true).await;
        let owner = &child.owner_references()[0];
        assert_eq!((&*owner.kind, &*owner.api_version, &*owner.name), ("Secret", "v1", "a"));
        cluster.quiet().await;
        assert!(endings(&journal.records()).iter().all(|end| end == "done"), "{journal}");
        for informer in running.caches().informers() {
            assert_eq!(informer.len(), 1);
            let json = informer.entries()[0].json().into_owned();
            assert!(!json.contains("\"data\""), "{json}");
        }
        let read = |from: ReadFrom, kind: &str| {
            let records = journal.records();
            let mut reads = records.iter().flat_map(|record| record.reads.clone());
            reads.any(|read| read.from == from && read.kind.kind() == kind)
        };
        assert!(read(ReadFrom::Cache, "Secret") && read(ReadFrom::Cache, "ConfigMap"), "{journal}");

        let before = journal.records().len();
        cluster.api::<ConfigMap>().delete("a", &<_>::default()).await.unwrap();
        let another = |again: &ConfigMap| again.uid() != child.uid();
        cluster.until_one::<ConfigMap>("a", "another child", another).await;
        let records = cluster.runs(&journal, before + 1).await;
        let gone = format!("ConfigMap {}/a deleted", cluster.namespace);
        assert_eq!(triggers(&records[before]), gone);

        cluster.api::<Secret>().delete("a", &<_>::default()).await.unwrap();
        cluster.until_gone::<Secret>("a").await;
        running.stop().await.unwrap();
    });
}

#[test]
fn a_kind_known_only_at_run_time_may_be_seen_by_its_metadata() {
    on_cluster(async |cluster| {
        cluster.create(&secret("a", "1")).await;
        let label = async |_: Arc<PartialObjectMeta>, ctx: Context<PartialObjectMeta>| {
            let patch = json!({ "metadata": { "labels": { "seen": "yes" } } });
            ctx.merge_patch_of::<PartialObjectMeta>(ctx.kind(), ctx.key(), &patch).await?;
            Ok(Outcome::Done)
        };
        let running = cluster.start(Controller::of(Kind::of::<Secret>(), label)).await;
        let seen = |secret: &Secret| secret.labels().contains_key("seen");
        cluster.until_one::<Secret>("a", "a label", seen).await;
        let informers = running.caches().informers();
        assert!(!informers[0].entries()[0].json().contains("\"data\""));
        running.stop().await.unwrap();
    });
}

#[test]
fn a_status_that_is_not_known_cannot_be_compared_and_says_so() {
    on_cluster(async |cluster| {
        cluster.create(&secret("a", "1")).await;
        let write = async |_: Arc<Meta>, ctx: Context<Meta>| {
            ctx.status(json!({ "ready": true })).await?;
            Ok(Outcome::Done)
        };
        let running = cluster.start(Controller::new(write)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert!(endings(&records)[0].contains("merge_patch_status"), "{:?}", endings(&records));
        assert!(endings(&records)[0].starts_with("terminal"));
        running.stop().await.unwrap();
    });
}

#[test]
fn an_index_of_what_the_metadata_does_not_have_finds_it_all_the_same() {
    on_cluster(async |cluster| {
        for (name, value) in [("a", "x"), ("b", "y")] {
            cluster.create(&config(name, value)).await;
        }
        let count = async |_: Arc<Config>, ctx: Context<Config>| {
            let found = ctx.by_index::<ConfigMap>("data.value", "y").await?;
            assert_eq!(found.iter().map(|found| found.name_any()).collect::<Vec<_>>(), ["b"]);
            Ok(Outcome::Done)
        };
        let controller = Controller::new(count).index_field::<ConfigMap>("data.value").relates(
            Related::watched_async(
                Kind::of::<Secret>(),
                async |secret: Arc<Secret>, configs: Lookup| -> Result<Vec<Key>> {
                    configs.by_index("data.value", &secret.name_any())
                },
            ),
        );
        let running = cluster.start(controller).await;
        let journal = running.journal();
        cluster.runs(&journal, 2).await;
        cluster.create(&secret("y", "1")).await;
        let records = cluster.runs(&journal, 3).await;
        assert_eq!((records[2].key.name(), &*endings(&records)[2]), ("b", "done"), "{journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn who_is_woken_by_the_metadata_of_a_primary_reads_that_version_of_the_whole() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "0")).await;
        let read = Arc::<Mutex<Vec<String>>>::default();
        let notes = Arc::clone(&read);
        let look = move |_: Arc<Config>, ctx: Context<Config>| {
            let notes = Arc::clone(&notes);
            async move {
                let found = ctx.get::<ConfigMap>(ctx.key()).await?.unwrap();
                notes.lock().unwrap().push(found.data.as_ref().unwrap()["value"].clone());
                Ok(Outcome::Done)
            }
        };
        let controller = Controller::new(look).index_field::<ConfigMap>("data.value");
        let behind = Duration::from_secs(3);
        let client = late(&cluster.client, &cluster.env, behind, |request| {
            let form = request.headers()["accept"].to_str().unwrap();
            is(request, "GET", "/configmaps") && !form.contains("PartialObjectMetadata")
        });
        let manager = Manager::new(client, cluster.env.clone());
        let manager = manager.with(controller.namespace(&cluster.namespace));
        let running = cluster.start_manager(manager).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        for value in ["1", "2", "3"] {
            let before = journal.records().len();
            cluster.patch::<ConfigMap>("a", json!({ "data": { "value": value } })).await;
            let records = cluster.runs(&journal, before + 1).await;
            assert_eq!(read.lock().unwrap().last().unwrap(), value, "{journal}");
            let from = records[before].reads[0].from;
            assert_eq!(from, ReadFrom::Cache, "{journal}");
        }
        running.stop().await.unwrap();
    });
}

#[test]
fn a_reconcile_is_given_what_it_wrote_last_also_where_it_reads_its_kind_from_another_cache() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "0")).await;
        let given = Arc::<Mutex<Vec<Option<String>>>>::default();
        let notes = Arc::clone(&given);
        let step = move |primary: Arc<Config>, ctx: Context<Config>| {
            let step = primary.annotations().get("step").cloned();
            notes.lock().unwrap().push(step.clone());
            async move {
                if step.is_none() {
                    let step = json!({ "metadata": { "annotations": { "step": "1" } } });
                    ctx.merge_patch_primary(&step).await?;
                    // The cache of whole objects shows it soon; that of the primaries lags.
                    assert_eq!(ctx.list::<ConfigMap>().await?.len(), 1);
                    ctx.apply(secret("wakes-us", "1")).await?;
                }
                Ok(Outcome::Done)
            }
        };
        let controller = Controller::new(step).reads::<ConfigMap>().owns::<Secret>();
        let behind = Duration::from_secs(3);
        let client = late(&cluster.client, &cluster.env, behind, |request| {
            let form = request.headers()["accept"].to_str().unwrap();
            is(request, "GET", "/configmaps") && form.contains("PartialObjectMetadata")
        });
        let manager = Manager::new(client, cluster.env.clone());
        let manager = manager.with(controller.namespace(&cluster.namespace));
        let running = cluster.start_manager(manager).await;
        let runs_again = |_: &[_]| given.lock().unwrap().len() >= 2;
        cluster.until_recorded(&running.journal(), runs_again).await;
        assert_eq!(given.lock().unwrap()[..2], [None, Some("1".to_owned())]);
        running.stop().await.unwrap();
    });
}
