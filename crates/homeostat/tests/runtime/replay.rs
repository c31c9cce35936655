//! The same seed gives the same journal, byte by byte.

use std::sync::Arc;
use std::time::Duration;

use homeostat::{Context, Controller, Error, EventType, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::cluster::{Cluster, config, object};

/// Makes children, draws random numbers, fails now and then, waits a while.
async fn busy(config: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
    let dice = context.env().random_below(5);
    context.env().sleep(Duration::from_millis(context.env().random_below(300))).await;
    let wish: Secret = object(json!({
        "metadata": { "name": config.metadata.name },
        "data": { "dice": format!("{dice}AAA") },
    }));
    context.apply(wish).await?;
    context.event(EventType::Normal, "Rolled", format!("a {dice}"));
    match dice {
        0 => Err(Error::transient("a zero")),
        1 => Ok(Outcome::Requeue),
        2 => Ok(Outcome::RequeueAfter(Duration::from_millis(context.env().random_below(5000)))),
        _ => Ok(Outcome::Done),
    }
}

fn journal_of(seed: u64) -> String {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let cluster = Cluster::embedded(seed).await;
        for index in 0..20 {
            cluster.create(&config(&format!("object-{index}"), "1")).await;
        }
        let running = cluster.start(Controller::new(busy).owns::<Secret>()).await;
        cluster.env.sleep(Duration::from_secs(60)).await;
        let journal = running.journal();
        running.stop().await.unwrap();
        journal.to_string()
    })
}

#[test]
fn the_same_seed_gives_the_same_journal_and_another_seed_another() {
    let first = journal_of(7);
    assert!(first.lines().count() > 40, "{first}");
    assert_eq!(first, journal_of(7));
    assert_ne!(first, journal_of(8));
}
