//! Several finalizers of one controller: all of them go, and one that is forgotten is named.

use std::sync::Arc;
use std::time::Duration;

use homeostat::journal::Record;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::DeleteParams;
use homeostat::{Context, Controller, Outcome, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use serde_json::json;

use crate::cluster::{config, on_cluster};

const FIRST: &str = "test.homeostat.dev/first";
const SECOND: &str = "test.homeostat.dev/second";

async fn nothing_to_do() -> Result<()> {
    Ok(())
}

#[test]
fn several_finalizers_asked_for_before_returning_all_go() {
    on_cluster(async |cluster| {
        async fn both(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            let going = ctx.finalizer(FIRST, nothing_to_do).await?
                | ctx.finalizer(SECOND, nothing_to_do).await?;
            if going {
                return Ok(Outcome::Done);
            }
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(both)).await;
        let held = |config: &ConfigMap| config.finalizers().len() == 2;
        cluster.until_one::<ConfigMap>("a", "two finalizers", held).await;
        cluster.quiet().await;
        cluster.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
        cluster.until_gone::<ConfigMap>("a").await;
        cluster.quiet().await;
        assert!(cluster.list::<Event>("").await.is_empty(), "there is nothing to warn of");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_finalizer_that_a_reconcile_returns_too_early_to_ask_for_is_named() {
    on_cluster(async |cluster| {
        async fn hasty(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            for name in [FIRST, SECOND] {
                if ctx.finalizer(name, nothing_to_do).await? {
                    return Ok(Outcome::Done);
                }
            }
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(hasty)).await;
        let held = |config: &ConfigMap| config.finalizers().len() == 2;
        cluster.until_one::<ConfigMap>("a", "two finalizers", held).await;
        cluster.quiet().await;
        cluster.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
        let named = |event: &Event| {
            let note = event.note.clone().unwrap_or_default();
            event.type_.as_deref() == Some("Warning")
                && event.reason.as_deref() == Some("FinalizerNotAskedFor")
                && note.contains(SECOND)
                && !note.contains(FIRST)
        };
        cluster.until::<Event>("a warning", |all| all.iter().any(named)).await;

        // It is said once, whatever wakes the key.
        let before = running.journal().total();
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        cluster.until_recorded(&running.journal(), |all| all.len() as u64 > before).await;
        cluster.quiet().await;
        let events = cluster.list::<Event>("").await;
        let warned: Vec<&Event> = events.iter().filter(|event| named(event)).collect();
        assert!(warned.len() == 1 && warned[0].series.is_none(), "{warned:#?}");
        running.stop().await.unwrap();
        cluster.patch::<ConfigMap>("a", json!({ "metadata": { "finalizers": null } })).await;
    });
}

#[test]
fn a_reconcile_that_comes_again_by_itself_may_ask_for_its_finalizers_one_after_the_other() {
    on_cluster(async |cluster| {
        async fn patient(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            let going = ctx.finalizer(FIRST, nothing_to_do).await?;
            let is_emptied = config.data.as_ref().is_some_and(|data| data["value"] == "empty");
            if going && !is_emptied {
                return Ok(Outcome::RequeueAfter(Duration::from_secs(5)));
            }
            ctx.finalizer(SECOND, nothing_to_do).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "full")).await;
        let running = cluster.start(Controller::new(patient)).await;
        let held = |config: &ConfigMap| config.finalizers().len() == 2;
        cluster.until_one::<ConfigMap>("a", "two finalizers", held).await;
        cluster.quiet().await;
        cluster.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
        let left = |config: &ConfigMap| config.finalizers() == [SECOND];
        cluster.until_one::<ConfigMap>("a", "the second one", left).await;
        // Once more, when it does not remove one any longer.
        let is_idle = |record: &Arc<Record>| record.next.is_some() && record.writes.is_empty();
        cluster.until_recorded(&running.journal(), |all| all.iter().any(is_idle)).await;
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "empty" } })).await;
        cluster.until_gone::<ConfigMap>("a").await;
        running.stop().await.unwrap();
        assert!(cluster.list::<Event>("").await.is_empty(), "there is nothing to warn of");
    });
}
