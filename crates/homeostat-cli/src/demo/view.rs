//! Follows the cluster and has it shown, whenever something changes or the terminal asks.

use std::convert::Infallible;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use homeostat::cache::{Caches, Entry, Informer, Scope};
use homeostat::k8s_openapi::api::events::v1::Event;
use homeostat::{Env, Kind};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;

use super::family::Family;
use super::feed::Feed;
use super::health::health;
use super::samples;
use super::screen::Screen;
use super::tree::Fact;
use crate::advice::advice;
use crate::operators::Operator;
use crate::say::say;

/// Changes come in bursts; a picture a tenth of a second is enough for eyes.
const FRAME: Duration = Duration::from_millis(100);

/// So long after the last change whoever reads lines is told what to do next: what is still on its way
/// waits for something.
const QUIET: Duration = Duration::from_secs(20);

/// Makes the demo's objects, and shows them, what they own and what becomes of them, until dropped.
pub(crate) async fn watch(
    client: kube::Client,
    env: Env,
    chosen: Vec<Operator>,
    kubeconfig: &Path,
) -> kube::Result<Infallible> {
    let mut feed = Feed::since(env.now());
    samples::make(&client, &env, &chosen).await?;
    let caches = Caches::new(client, env.clone());
    let changed = Arc::new(Notify::new());
    let follow = |kind| {
        let informer = caches.informer(kind, Scope::namespace("default"));
        let changed = Arc::clone(&changed);
        informer.on_event(move |_| changed.notify_one());
        informer.start();
        informer
    };
    let informers: Vec<Informer> = kinds(&chosen).into_iter().map(follow).collect();
    let events = follow(Kind::of::<Event>());
    let mut screen = Screen::new(advice(kubeconfig, true));
    let mut calls = screen.calls();
    let mut family = Family::default();
    loop {
        tokio::select! {
            biased;
            () = changed.notified() => env.sleep(FRAME).await,
            call = calls.next() => screen.heed(call),
            () = env.sleep(QUIET), if screen.owes_advice() => {
                screen.advise(env.now());
                continue;
            }
        }
        let news = feed.news(&events_about(&chosen, &events));
        let now = env.now();
        screen.show(family.of(facts(&chosen, &informers, now)), news, now);
    }
}

/// The events about the operators' own objects, and so of the operators.
fn events_about(chosen: &[Operator], events: &Informer) -> Vec<Value> {
    let kinds: Vec<Kind> = chosen.iter().map(|operator| (operator.kind)()).collect();
    let is_about = |event: &Value| {
        let (kind, version) = (&event["regarding"]["kind"], &event["regarding"]["apiVersion"]);
        kinds.iter().any(|of| *kind == of.kind() && *version == of.api_version())
    };
    let all = events.entries().into_iter().filter_map(|entry| entry.value().ok());
    all.filter(is_about).collect()
}

/// That the interrupt was heard: to end every process in order may take seconds. Who reads the lines
/// of another program, and not the demo's, is told the end alone.
pub(crate) fn farewell(is_demo: bool) {
    let is_terminal = std::io::stdout().is_terminal();
    if is_terminal || is_demo {
        let gap = if is_terminal { "\n" } else { "" };
        say(format_args!("{gap}ending everything; once more Ctrl-C, and no Pod is waited for"));
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

/// What there is of the operators' objects and of everything that has an owner.
fn facts(chosen: &[Operator], informers: &[Informer], now: Timestamp) -> Vec<Fact> {
    let kinds: Vec<Kind> = chosen.iter().map(|operator| (operator.kind)()).collect();
    let mut facts = Vec::new();
    for informer in informers {
        let is_root = kinds.contains(informer.kind());
        for entry in informer.entries() {
            let owner = entry.header.controller().map(|owner| owner.uid.to_string());
            if is_root || owner.is_some() {
                facts.push(fact(informer.kind(), &entry, owner, is_root, now));
            }
        }
    }
    facts
}

fn fact(kind: &Kind, entry: &Entry, owner: Option<String>, is_root: bool, now: Timestamp) -> Fact {
    let object = entry.value().unwrap_or_default();
    let (health, state) = health(kind.kind(), &object, now);
    Fact {
        title: format!("{} {}", kind.kind(), entry.header.key.name()),
        uid: entry.header.uid.to_string(),
        owner,
        is_root,
        state,
        health,
    }
}
