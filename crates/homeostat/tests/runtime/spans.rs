//! What a log can tell of a reconcile: every line of it belongs to a span that says which one.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use homeostat::controller::Related;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::DynamicObject;
use homeostat::manager::Runnable;
use homeostat::{Context, Controller, Kind, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Metadata, Subscriber};

use crate::cluster::{config, on_cluster};

/// The fields of a span or an event, in words.
type Fields = BTreeMap<String, String>;

/// Remembers the spans named `reconcile`, and which events came in which.
#[derive(Clone, Default)]
pub struct Capture(Arc<Mutex<Captured>>);

#[derive(Default)]
struct Captured {
    spans: Vec<(&'static str, Fields)>,
    entered: Vec<u64>,
    /// The number of the innermost span, and the fields.
    events: Vec<(Option<u64>, Fields)>,
}

struct Words<'a>(&'a mut Fields);

impl Visit for Words<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Capture {
    /// The lines of the log so far, each with all its fields.
    pub fn lines(&self) -> Vec<String> {
        let captured = self.0.lock().unwrap();
        captured.events.iter().map(|(_, fields)| format!("{fields:?}")).collect()
    }
}

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        let ours = target.starts_with(env!("CARGO_CRATE_NAME"));
        let theirs = [
            "homeostat::client::warning",
            "homeostat::manager",
            "homeostat::manager::definitions",
            "homeostat::controller::worker",
        ];
        metadata.is_span() || ours || theirs.contains(&target)
    }
    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        attributes.record(&mut Words(&mut fields));
        let mut captured = self.0.lock().unwrap();
        captured.spans.push((attributes.metadata().name(), fields));
        Id::from_u64(captured.spans.len() as u64)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Words(&mut fields));
        let mut captured = self.0.lock().unwrap();
        let within = captured.entered.last().copied();
        captured.events.push((within, fields));
    }
    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().entered.push(span.into_u64());
    }
    fn exit(&self, span: &Id) {
        let mut captured = self.0.lock().unwrap();
        let at = captured.entered.iter().rposition(|id| *id == span.into_u64());
        captured.entered.remove(at.unwrap());
    }
}

/// Captures what this thread says, until the second value is dropped.
pub fn listen() -> (Capture, (DefaultGuard, Dispatch)) {
    let capture = Capture::default();
    // As long as there is only one subscriber, tracing takes it for that of all threads, and what
    // another test's thread comes across first would be of no interest to anybody.
    let another = Dispatch::new(Capture::default());
    let guard = tracing::subscriber::set_default(capture.clone());
    (capture, (guard, another))
}

async fn speak(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ctx.env().sleep(std::time::Duration::from_millis(10)).await;
    tracing::info!(said_by = config.name_any(), "after a wait");
    Ok(Outcome::Done)
}

#[test]
fn every_line_of_a_reconcile_says_whose_it_is_and_why_it_runs() {
    on_cluster(async |cluster| {
        let (capture, _listening) = listen();
        for name in ["a", "b"] {
            cluster.create(&config(name, "1")).await;
        }
        let running = cluster.start(Controller::new(speak).named("speaker")).await;
        let journal = running.journal();
        cluster.runs(&journal, 2).await;
        cluster.patch::<ConfigMap>("a", json!({ "data": { "value": "2" } })).await;
        cluster.runs(&journal, 3).await;
        running.stop().await.unwrap();

        let captured = capture.0.lock().unwrap();
        let reconciles: Vec<&Fields> = captured
            .spans
            .iter()
            .filter(|(name, _)| *name == "reconcile")
            .map(|(_, f)| f)
            .collect();
        assert_eq!(reconciles.len(), 3, "{:?}", captured.spans);
        let a = format!("{}/a", cluster.namespace);
        let field = |index: usize, name: &str| reconciles[index][name].as_str();
        assert_eq!((field(0, "controller"), field(0, "object")), ("speaker", a.as_str()));
        assert_eq!((field(0, "id"), field(2, "id")), ("1", "3"));
        assert_eq!(journal.records()[2].id, 3, "the journal speaks of the same reconcile");
        assert_eq!((field(1, "trigger"), field(2, "object")), ("initial", a.as_str()));
        assert_eq!(field(2, "trigger"), format!("ConfigMap {a} updated"));
        // Both ran at once; each line is in the span of its own.
        let said = captured.events.iter().filter(|(_, fields)| fields.contains_key("said_by"));
        assert_eq!(said.clone().count(), 3);
        for (within, fields) in said {
            let span = &captured.spans[usize::try_from(within.unwrap()).unwrap() - 1].1;
            let said_by = fields["said_by"].trim_matches('"');
            assert!(span["object"].ends_with(said_by), "{span:?} {fields:?}");
        }
    });
}

#[test]
fn requests_have_spans_and_what_the_api_warns_of_is_told_once() {
    on_cluster(async |cluster| {
        let (capture, _listening) = listen();
        for name in ["a", "b"] {
            cluster.create(&config(name, "1")).await;
        }
        let write = async |config: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let kind = Kind::of::<Secret>();
            let secret = DynamicObject::new(&config.name_any(), &kind.api_resource());
            // A slip that no type has caught: the API drops the field, and says so.
            ctx.create(secret.data(json!({ "stringdata": { "a": "b" } }))).await?;
            Ok(Outcome::Done)
        };
        let controller = Controller::new(write).relates(Related::known(Kind::of::<Secret>()));
        let running = cluster.start(controller).await;
        cluster.runs(&running.journal(), 2).await;
        running.stop().await.unwrap();

        let captured = capture.0.lock().unwrap();
        let path = format!("/api/v1/namespaces/{}/secrets", cluster.namespace);
        let posts = captured.spans.iter().filter(|(name, fields)| {
            *name == "request" && fields["method"] == "POST" && fields["path"].contains(&path)
        });
        assert_eq!(posts.count(), 2, "{:?}", captured.spans);
        let said: Vec<&String> =
            captured.events.iter().filter_map(|(_, fields)| fields.get("warning")).collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("unknown field") && said[0].contains("stringdata"), "{said:?}");
        let (within, _) =
            captured.events.iter().find(|(_, fields)| fields.contains_key("warning")).unwrap();
        let span = &captured.spans[usize::try_from(within.unwrap()).unwrap() - 1];
        assert_eq!(span.0, "reconcile", "it says in which");
    });
}

#[test]
fn a_manager_says_that_it_runs_and_that_it_has_stopped() {
    on_cluster(async |cluster| {
        let (capture, _listening) = listen();
        let (told, begun) = tokio::sync::oneshot::channel();
        let told = Mutex::new(Some(told));
        let works = Runnable::new("works", move |_| {
            let _ = told.lock().unwrap().take().map(|told| told.send(()));
            async { Ok(()) }
        });
        let manager = cluster.manager().with_runnable(works);
        manager.run_until(async { drop(begun.await) }).await.unwrap();
        cluster.manager().run_until(std::future::ready(())).await.unwrap();
        let captured = capture.0.lock().unwrap();
        let lines: Vec<&str> =
            captured.events.iter().map(|(_, fields)| fields["message"].as_str()).collect();
        let expected = ["running; SIGINT or SIGTERM ends it", "stopped", "stopped before it ran"];
        assert_eq!(lines, expected);
    });
}
