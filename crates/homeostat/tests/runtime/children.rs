//! What a reconcile does to its children, and that it reads what it wrote.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use homeostat::controller::Related;
use homeostat::journal::Record;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{DeleteParams, ListParams};
use homeostat::{Change, Context, Controller, Kind, Manager, Outcome, Predicate, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::cluster::{config, endings, object, on_cluster, secret};
use crate::faults::{is, late};

/// Copies a config map's value to a secret of the same name.
pub async fn mirror(source: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
    let value = source.data.as_ref().and_then(|data| data.get("value")).cloned();
    let wish: Secret = object(json!({
        "metadata": { "name": source.name_any(), "labels": { "mirror": "yes" } },
        "data": { "value": value.unwrap_or_default() },
    }));
    let applied = context.apply(wish).await?;
    let seen = context.get::<Secret>(&source.name_any()).await?;
    assert_eq!(
        seen.map(|secret| secret.resource_version()),
        Some(applied.object.resource_version())
    );
    Ok(Outcome::Done)
}

#[test]
fn a_child_is_applied_once_corrected_when_it_drifts_and_followed_by_its_owner() {
    on_cluster(async |cluster| {
        let owner = cluster.create(&config("a", "MQ==")).await;
        let running = cluster.start(Controller::new(mirror).owns::<Secret>()).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        let child = cluster.api::<Secret>().get("a").await.unwrap();
        let reference = child.owner_references()[0].clone();
        assert_eq!((Some(reference.uid), reference.controller), (owner.uid(), Some(true)));
        assert_eq!(reference.block_owner_deletion, Some(true));

        cluster.nothing_more().await;
        let quiet = journal.total();
        let writes: Vec<_> = journal.records().iter().flat_map(|r| r.writes.clone()).collect();
        assert_eq!(writes.len(), 1, "{journal}");
        assert_eq!(writes[0].change, Change::Created);

        cluster.patch::<Secret>("a", json!({ "data": { "value": "Mg==" } })).await;
        cluster.until_recorded(&journal, |all| all.len() as u64 > quiet).await;
        cluster.nothing_more().await;
        let child = cluster.api::<Secret>().get("a").await.unwrap();
        assert_eq!(child.data.unwrap()["value"].0, b"1");

        cluster.api::<Secret>().delete("a", &DeleteParams::default()).await.unwrap();
        cluster.nothing_more().await;
        cluster.api::<Secret>().get("a").await.unwrap();
        let total = journal.total();
        cluster.nothing_more().await;
        assert_eq!(journal.total(), total);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_strangers_object_is_never_touched_and_is_named() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "MQ==")).await;
        let mut taken = secret("a", "theirs");
        taken.metadata.owner_references = Some(object(json!([{
            "apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "7", "controller": true,
        }])));
        cluster.create(&taken).await;
        let running = cluster.start(Controller::new(mirror).owns::<Secret>()).await;
        let records = cluster.runs(&running.journal(), 1).await;
        let ending = &endings(&records)[0];
        assert!(ending.starts_with("terminal") && ending.contains("Pod other (uid 7)"), "{ending}");
        assert!(records[0].writes.is_empty());
    });
}

#[test]
fn creating_twice_gives_the_same_child_and_a_stranger_is_an_error() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        cluster.create(&secret("taken", "theirs")).await;
        async fn reconcile(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let first = context.create(secret("mine", "1")).await?;
            let second = context.create(secret("mine", "2")).await?;
            assert_eq!(first.uid(), second.uid());
            context.create(secret("taken", "1")).await?;
            Ok(Outcome::Done)
        }
        // Once through the cache, once (undeclared) through the API.
        for controller in [Controller::new(reconcile).owns::<Secret>(), Controller::new(reconcile)]
        {
            let running = cluster.start(controller).await;
            let records = cluster.runs(&running.journal(), 1).await;
            assert!(endings(&records)[0].contains("not owned by anyone"), "{}", running.journal());
            running.stop().await.unwrap();
        }
    });
}

#[test]
fn what_a_reconcile_wrote_it_reads_so_it_never_makes_too_many() {
    on_cluster(async |cluster| {
        async fn three(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let have = context.owned::<Secret>().await?.len();
            assert!(have <= 3);
            for _ in have..3 {
                context
                    .create(object::<Secret>(json!({ "metadata": { "generateName": "x-" } })))
                    .await?;
            }
            assert_eq!(context.owned::<Secret>().await?.len(), 3);
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(three).owns::<Secret>()).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.nothing_more().await;
        let all = cluster.api::<Secret>().list(&ListParams::default()).await.unwrap();
        assert_eq!(all.items.len(), 3);
        cluster
            .api::<Secret>()
            .delete(&all.items[0].name_any(), &DeleteParams::default())
            .await
            .unwrap();
        cluster.nothing_more().await;
        let all = cluster.api::<Secret>().list(&ListParams::default()).await.unwrap();
        assert_eq!(all.items.len(), 3);
        assert!(endings(&journal.records()).iter().all(|ending| ending == "done"), "{journal}");
    });
}

#[test]
fn what_a_reconcile_deleted_it_does_not_read() {
    on_cluster(async |cluster| {
        async fn none(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            let unwanted = context.list_labelled::<Secret>("mirror=yes").await?;
            for secret in &unwanted {
                context.delete(&**secret).await?;
            }
            assert!(context.list_labelled::<Secret>("mirror=yes").await?.is_empty());
            for secret in &unwanted {
                context.delete(&**secret).await?; // gone already: no error
            }
            Ok(Outcome::Done)
        }
        for name in ["x", "y"] {
            let mut labelled = secret(name, "1");
            labelled.labels_mut().insert("mirror".into(), "yes".into());
            cluster.create(&labelled).await;
        }
        cluster.create(&secret("z", "1")).await;
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(none).reads::<Secret>()).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records), ["done"]);
        assert!(cluster.api::<Secret>().get("z").await.is_ok());
    });
}

#[test]
fn what_is_remembered_of_a_key_does_not_grow_with_its_reconciles() {
    on_cluster(async |cluster| {
        let rounds = if cluster.is_virtual { 1000 } else { 100 };
        let count = Arc::new(AtomicUsize::new(0));
        let runs = count.clone();
        // Another child each time, made and never read, applied and never deleted by us.
        let reconcile = move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            async move {
                let mut made = secret("", "1");
                (made.metadata.name, made.metadata.generate_name) = (None, Some("made-".into()));
                ctx.create(made).await?;
                let applied = ctx.apply(secret(&format!("applied-{run}"), "1")).await?;
                if run.is_multiple_of(2) {
                    ctx.delete(&*applied.object).await?;
                }
                Ok(if run < rounds { Outcome::Requeue } else { Outcome::Done })
            }
        };
        cluster.create(&config("a", "1")).await;
        let filter = Predicate::new(|_| false);
        let related = Related::owned(Kind::of::<Secret>()).when(filter);
        let running =
            cluster.start(Controller::new(reconcile).relates(related).hot_loop(None)).await;
        let rest = |all: &[Arc<Record>]| all.last().is_some_and(|last| last.next.is_none());
        cluster.until_recorded(&running.journal(), rest).await;
        assert!(count.load(Ordering::SeqCst) >= rounds);
        let text = running.metrics();
        for name in ["homeostat_unseen_writes", "homeostat_known_children"] {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            let remembered: usize = line.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(remembered < 40, "{line}");
        }
        running.stop().await.unwrap();
    });
}

#[test]
fn a_new_process_applies_each_child_once_and_changes_nothing_by_it() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "MQ==")).await;
        let first = cluster.start(Controller::new(mirror).owns::<Secret>()).await;
        let made = cluster.until_one::<Secret>("a", "the child", |_| true).await;
        cluster.quiet().await;
        first.stop().await.unwrap();
        drop(cluster.writes.take());

        let second = cluster.start(Controller::new(mirror).owns::<Secret>()).await;
        let journal = second.journal();
        let records = cluster.runs(&journal, 1).await;
        let changes: Vec<Change> = records[0].writes.iter().map(|write| write.change).collect();
        assert_eq!(changes, [Change::Unchanged], "what it did before is not known: {journal}");
        cluster.patch::<ConfigMap>("a", json!({ "metadata": { "labels": { "x": "1" } } })).await;
        let records = cluster.runs(&journal, 2).await;
        assert!(records[1].writes.is_empty(), "and from then on it is: {journal}");
        let now = cluster.get::<Secret>("a").await.unwrap();
        assert_eq!(now.metadata.resource_version, made.metadata.resource_version);
        second.stop().await.unwrap();
    });
}

#[test]
fn what_was_made_and_deleted_at_once_is_not_shown_by_a_cache_that_lags() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let (begun, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&seen);
        let reconcile = move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let (first, seen) = (!begun.swap(true, Ordering::SeqCst), Arc::clone(&count));
            async move {
                if first {
                    let made = ctx.create(secret("passing", "1")).await?;
                    ctx.delete(made).await?;
                    for _ in 0..24 {
                        let found = ctx.get::<Secret>("passing").await?;
                        seen.fetch_add(usize::from(found.is_some()), Ordering::SeqCst);
                        ctx.env().sleep(Duration::from_millis(250)).await;
                    }
                }
                Ok(Outcome::Done)
            }
        };
        // The creation is heard of after two seconds, the deletion after four.
        let two = Duration::from_secs(2);
        let client = late(&cluster.client, &cluster.env, two, |r| is(r, "GET", "/secrets"));
        let controller = Controller::new(reconcile).reads::<Secret>().namespace(&cluster.namespace);
        let manager = Manager::new(client, cluster.env.clone()).with(controller);
        let running = cluster.start_manager(manager).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records), ["done"]);
        assert_eq!(seen.load(Ordering::SeqCst), 0, "deleted, and read all the same");
        running.stop().await.unwrap();
    });
}
