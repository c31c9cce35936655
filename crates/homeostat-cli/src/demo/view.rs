//! Follows the cluster and has it shown, whenever something changes or the terminal asks.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use homeostat::cache::{Caches, Entry, Informer, Scope};
use homeostat::{Env, Kind};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::health::health;
use super::screen::Screen;
use super::tree::Fact;
use crate::advice::advice;
use crate::operators::Operator;
use crate::say::say;

/// Changes come in bursts; a picture a tenth of a second is enough for eyes.
const FRAME: Duration = Duration::from_millis(100);

/// Shows the objects of the chosen operators and what they own, until dropped.
pub(crate) async fn watch(
    client: kube::Client,
    env: Env,
    chosen: Vec<Operator>,
    kubeconfig: &Path,
) {
    let caches = Caches::new(client, env.clone());
    let changed = Arc::new(Notify::new());
    let informers: Vec<Informer> = kinds(&chosen)
        .into_iter()
        .map(|kind| {
            let informer = caches.informer(kind, Scope::namespace("default"));
            let changed = Arc::clone(&changed);
            informer.on_event(move |_| changed.notify_one());
            informer.start();
            informer
        })
        .collect();
    let mut screen = Screen::new(advice(kubeconfig, true));
    let mut calls = screen.calls();
    loop {
        tokio::select! {
            biased;
            () = changed.notified() => env.sleep(FRAME).await,
            call = calls.next() => screen.heed(call),
        }
        screen.show(facts(&informers, env.now()));
    }
}

/// That the interrupt was heard: to end every process in order may take seconds.
pub(crate) fn farewell() {
    if std::io::stdout().is_terminal() {
        say(format_args!("\nending everything"));
    }
}

fn kinds(chosen: &[Operator]) -> Vec<Kind> {
    use homeostat::k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
    use homeostat::k8s_openapi::api::batch::v1::Job;
    use homeostat::k8s_openapi::api::core::v1::{Pod, Secret, Service};
    let mut kinds: Vec<Kind> = chosen.iter().map(|operator| (operator.kind)()).collect();
    kinds.extend([
        Kind::of::<Deployment>(),
        Kind::of::<ReplicaSet>(),
        Kind::of::<StatefulSet>(),
        Kind::of::<Job>(),
        Kind::of::<Pod>(),
        Kind::of::<Secret>(),
        Kind::of::<Service>(),
    ]);
    kinds
}

/// What there is to show: roots of the operators and everything that has an owner.
fn facts(informers: &[Informer], now: Timestamp) -> Vec<Fact> {
    let mut facts = Vec::new();
    for informer in informers {
        for entry in informer.entries() {
            let owner = entry.header.controller().map(|owner| owner.uid.to_string());
            let ours = informer.kind().group().contains("homeostat.dev")
                || informer.kind().group().contains("programming-kubernetes");
            if ours || owner.is_some() {
                facts.push(fact(informer.kind(), &entry, owner, now));
            }
        }
    }
    facts
}

fn fact(kind: &Kind, entry: &Entry, owner: Option<String>, now: Timestamp) -> Fact {
    let object = entry.value().unwrap_or_default();
    let (health, state) = health(kind.kind(), &object, now);
    Fact {
        title: format!("{} {}", kind.kind(), entry.header.key.name),
        uid: entry.header.uid.to_string(),
        owner,
        state,
        health,
    }
}
