//! Follows the cluster and shows it: a redrawn tree on a terminal, a line per change elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use homeostat::cache::{Caches, Entry, Informer, Scope};
use homeostat::{Env, Kind};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::tree::{Fact, cut, lines};
use crate::operators::Operator;
use crate::say::say;

/// Changes come in bursts; a picture a tenth of a second is enough for eyes.
const FRAME: Duration = Duration::from_millis(100);

/// The lines above the tree: the hint, the line of the shell, and the cursor's own.
const SAID_BEFORE: usize = 6;

/// Why the first container of a Pod does not run.
const WAITING: &str = "/status/containerStatuses/0/state/waiting/reason";

/// Shows the objects of the chosen operators and what they own, until dropped.
pub(crate) async fn watch(client: kube::Client, env: Env, chosen: Vec<Operator>) {
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
    let mut screen = Screen::new();
    let mut resized = signal(SignalKind::window_change()).ok();
    loop {
        let resize = async {
            match &mut resized {
                Some(resized) => drop(resized.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = changed.notified() => {}
            () = resize => screen.begin_anew(),
        }
        env.sleep(FRAME).await;
        screen.show(&facts(&informers));
    }
}

/// What to try, for somebody who sits at a terminal. Elsewhere nothing but lines of facts is printed.
pub(crate) fn hint(kubeconfig: &Path) {
    if std::io::stdout().is_terminal() {
        say(format_args!(
            "In another terminal: export KUBECONFIG={}\n\
             Then try `kubectl delete deployment hello` and see it come back. Ctrl-C ends everything.\n",
            kubeconfig.display()
        ));
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
fn facts(informers: &[Informer]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for informer in informers {
        for entry in informer.entries() {
            let owner = entry.header.controller().map(|owner| owner.uid.to_string());
            let ours = informer.kind().group().contains("homeostat.dev")
                || informer.kind().group().contains("programming-kubernetes");
            if ours || owner.is_some() {
                facts.push(fact(informer.kind(), &entry, owner));
            }
        }
    }
    facts
}

fn fact(kind: &Kind, entry: &Entry, owner: Option<String>) -> Fact {
    let object = entry.value().unwrap_or_default();
    let (state, well) = state(kind.kind(), &object);
    Fact {
        title: format!("{} {}", kind.kind(), entry.header.key.name),
        uid: entry.header.uid.to_string(),
        owner,
        state,
        well,
    }
}

/// One short phrase on how an object is, and whether that is well.
fn state(kind: &str, object: &Value) -> (String, bool) {
    let text = |pointer: &str| {
        object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return ("going".to_owned(), false);
    }
    match kind {
        "Pod" => {
            let (phase, waits) = (text("/status/phase"), text(WAITING));
            let well = waits.is_empty() && (phase == "Running" || phase == "Succeeded");
            (if waits.is_empty() { phase } else { waits }, well)
        }
        "Service" => {
            (format!("{}:{}", text("/spec/clusterIP"), number("/spec/ports/0/port")), true)
        }
        "Secret" => ("written".to_owned(), true),
        "Job" => {
            let (ended, wanted) = (number("/status/succeeded"), number("/spec/completions"));
            (format!("{ended} of {wanted} ended well"), ended >= wanted)
        }
        "Deployment" | "ReplicaSet" | "StatefulSet" => {
            let (ready, wanted) = (number("/status/readyReplicas"), number("/spec/replicas"));
            (format!("{ready} of {wanted} ready"), ready == wanted)
        }
        _ => ready(object),
    }
}

/// What is wrong with a custom resource, if its conditions say so, else whether it is `Ready`.
fn ready(object: &Value) -> (String, bool) {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let find = |name: &str| conditions?.iter().find(|condition| condition["type"] == name);
    let message = |condition: &Value| condition["message"].as_str().unwrap_or_default().to_owned();
    if let Some(degraded) = find("Degraded").filter(|condition| condition["status"] == "True") {
        return (message(degraded), false);
    }
    let Some(ready) = find("Ready") else { return ("new".to_owned(), false) };
    (message(ready), ready["status"] == "True")
}

/// Where the view goes.
enum Screen {
    Terminal { all: MultiProgress, rows: Vec<ProgressBar> },
    Lines { shown: BTreeMap<String, String> },
}

impl Screen {
    fn new() -> Self {
        if std::io::stdout().is_terminal() {
            Self::Terminal {
                all: MultiProgress::with_draw_target(ProgressDrawTarget::stdout()),
                rows: Vec::new(),
            }
        } else {
            Self::Lines { shown: BTreeMap::new() }
        }
    }

    /// The terminal has another size now: what is on it is no longer where it was.
    fn begin_anew(&mut self) {
        if let Self::Terminal { all, rows } = self {
            // Nothing is lost when the terminal does not clear.
            let _ = all.clear();
            // A row that is only dropped would stay where it was.
            rows.drain(..).for_each(|row| all.remove(&row));
        }
    }

    fn show(&mut self, facts: &[Fact]) {
        match self {
            Self::Terminal { all, rows } => redraw(all, rows, &cut(lines(facts), room())),
            Self::Lines { shown } => print_changes(shown, facts),
        }
    }
}

/// How many lines of the terminal the tree may have: what was said before it stays in sight.
fn room() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    // Some terminals say nothing of their size.
    let rows = size.map(|size| size.ws_row).ok().filter(|rows| *rows > 0).unwrap_or(24);
    usize::from(rows).saturating_sub(SAID_BEFORE).max(3)
}

fn redraw(all: &MultiProgress, rows: &mut Vec<ProgressBar>, lines: &[String]) {
    // Cut at the edge of the terminal: a line that wraps would tear the tree.
    let style =
        ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    while rows.len() < lines.len() {
        // The last picture stays when the cluster ends.
        let row = ProgressBar::new_spinner().with_finish(ProgressFinish::Abandon);
        rows.push(all.add(row.with_style(style.clone())));
    }
    for row in rows.drain(lines.len()..) {
        all.remove(&row);
    }
    // Every change of a row redraws them all.
    for (row, line) in rows.iter().zip(lines).filter(|(row, line)| row.message() != **line) {
        row.set_message(line.clone());
    }
}

fn print_changes(shown: &mut BTreeMap<String, String>, facts: &[Fact]) {
    let now: BTreeMap<String, String> =
        facts.iter().map(|fact| (fact.title.clone(), fact.state.clone())).collect();
    for (title, state) in &now {
        if shown.get(title) != Some(state) {
            say(format_args!("{title}: {state}"));
        }
    }
    for title in shown.keys().filter(|title| !now.contains_key(*title)) {
        say(format_args!("{title}: gone"));
    }
    *shown = now;
}
