//! Watches that break, and what happened while nobody looked.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use homeostat::cache::{Caches, Scope, SourceState};
use homeostat::kube::client::Body;
use homeostat::kube::{Client, ResourceExt};
use homeostat::{Context, Controller, Kind, Outcome, Result};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::cluster::{config, idle, on_cluster, secret, triggers};

/// The body of an answer.
type Part = UnsyncBoxBody<Bytes, homeostat::kube::Error>;

/// The watches of secrets: cut off when told so, and then refused.
#[derive(Clone, Default)]
struct Line {
    /// Whether the server knows no lists that stream, as before 1.32.
    is_old: bool,
    /// What was asked of lists that do not stream.
    pages: Arc<Mutex<Vec<String>>>,
    cut: Arc<Mutex<CancellationToken>>,
    /// So many attempts to go on with a watch are answered with 410.
    gone: Arc<AtomicUsize>,
    /// Whether secrets may not be looked at.
    forbidden: Arc<AtomicBool>,
}

impl Line {
    /// Ends the watches of this moment; where they were is forgotten.
    fn cut(&self) {
        self.gone.store(1, Ordering::SeqCst);
        let old = std::mem::take(&mut *self.cut.lock().unwrap());
        old.cancel();
    }

    fn client(&self, inner: &Client) -> Client {
        let (line, client) = (self.clone(), inner.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (line, client) = (line.clone(), client.clone());
            async move { line.send(&client, request).await }
        });
        Client::new(service, inner.default_namespace())
    }

    async fn send(
        &self,
        client: &Client,
        request: Request<Body>,
    ) -> Result<Response<Part>, homeostat::kube::Error> {
        let query = request.uri().query().unwrap_or_default();
        let is_about_secrets =
            request.method() == "GET" && request.uri().path().ends_with("/secrets");
        if is_about_secrets && self.forbidden.load(Ordering::SeqCst) {
            return Ok(refusal(403, "Forbidden"));
        }
        if is_about_secrets && !query.contains("watch=true") {
            self.pages.lock().unwrap().push(query.to_owned());
        }
        if is_about_secrets && self.is_old && query.contains("sendInitialEvents") {
            return Ok(refusal(400, "BadRequest"));
        }
        if !is_about_secrets || !query.contains("watch=true") {
            return Ok(client.send(request).await?.map(BodyExt::boxed_unsync));
        }
        let goes_on = !query.contains("sendInitialEvents");
        let spent = |left: usize| left.checked_sub(1);
        if goes_on && self.gone.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spent).is_ok() {
            return Ok(refusal(410, "Expired"));
        }
        let cut = self.cut.lock().unwrap().clone();
        let answer = client.send(request).await?;
        Ok(answer.map(|body| {
            let data = body.into_data_stream().take_until(cut.cancelled_owned());
            let frames = data.map(|part| part.map(http_body::Frame::data));
            StreamBody::new(frames).boxed_unsync()
        }))
    }
}

fn refusal(code: u16, reason: &str) -> Response<Part> {
    let body = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code,
        "reason": reason, "message": "not like this" });
    let body = Body::from(body.to_string().into_bytes());
    Response::builder().status(code).body(body.boxed_unsync()).unwrap()
}

async fn mirror(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ctx.apply(secret(&config.name_any(), "1")).await?;
    Ok(Outcome::Done)
}

#[test]
fn a_child_that_vanished_during_a_gap_wakes_its_owner() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let line = Line::default();
        let controller = Controller::new(mirror).owns::<Secret>().namespace(&cluster.namespace);
        let client = line.client(&cluster.client);
        let manager = homeostat::Manager::new(client, cluster.env.clone()).with(controller);
        let running = cluster.start_manager(manager).await;
        let first = cluster.until_one::<Secret>("a", "the child", |_| true).await;
        cluster.quiet().await;
        let before = running.journal().records().len();

        line.cut();
        cluster.api::<Secret>().delete("a", &<_>::default()).await.unwrap();
        let another = |child: &Secret| child.uid() != first.uid();
        cluster.until_one::<Secret>("a", "another child", another).await;
        let records = cluster.runs(&running.journal(), before + 1).await;
        let expected = format!("Secret {}/a deleted", cluster.namespace);
        assert_eq!(triggers(&records[before]), expected);
        assert_eq!(line.gone.load(Ordering::SeqCst), 0, "the watch was refused");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_watch_that_begins_to_fail_slows_no_other() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "0")).await;
        let line = Line::default();
        let controller = Controller::new(idle::<ConfigMap>).owns::<Secret>();
        let controller = controller.namespace(&cluster.namespace);
        let client = line.client(&cluster.client);
        let manager = homeostat::Manager::new(client, cluster.env.clone()).with(controller);
        let running = cluster.start_manager(manager).await;
        cluster.runs(&running.journal(), 1).await;
        line.forbidden.store(true, Ordering::SeqCst);
        line.cut();
        let secrets = running.caches().informers();
        let secrets = secrets.iter().find(|informer| informer.kind().kind() == "Secret").unwrap();
        let refused = |state: &SourceState| matches!(state, SourceState::Pending(why) if why.contains("not like this"));
        secrets.wait_for_state(refused).await;
        for round in 1..=20 {
            let began = cluster.env.now();
            let value = round.to_string();
            cluster.patch::<ConfigMap>("a", json!({ "data": { "value": value } })).await;
            let records = cluster.runs(&running.journal(), round + 1).await;
            cluster.assert_apart(began, records[round].time, Duration::ZERO);
        }
        assert!(!running.pending().is_empty());
        let metrics = running.metrics();
        assert!(
            !metrics.contains("homeostat_source_failures_total{kind=\"Secret\"} 0\n"),
            "{metrics}"
        );
        assert!(metrics.contains("homeostat_source_failures_total{kind=\"ConfigMap\"} 0\n"));
        running.stop().await.unwrap();
    });
}

#[test]
fn a_server_without_streaming_lists_is_read_in_pages_and_relists_are_exact() {
    on_cluster(async |cluster| {
        const ALL: usize = 501;
        for number in 0..ALL {
            cluster.create(&secret(&format!("s-{number:03}"), "1")).await;
        }
        let line = Line { is_old: true, ..Line::default() };
        let caches = Caches::new(line.client(&cluster.client), cluster.env.clone());
        let here = Scope::namespace(&*cluster.namespace);
        let secrets = caches.informer(Kind::of::<Secret>(), here);
        secrets.start();
        assert!(secrets.wait_for_sync().await);
        assert_eq!(secrets.len(), ALL);
        let first = std::mem::take(&mut *line.pages.lock().unwrap());
        let [whole, rest] = &*first else { panic!("two pages: {first:?}") };
        assert!(whole == "limit=500" && rest.contains("limit=500&continue="), "{first:?}");

        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        secrets.on_event(move |delta| {
            if !delta.initial {
                drop(told.send(format!("{} {:?}", delta.key().name(), delta.change)));
            }
        });
        // Nobody looks while one goes and one changes.
        line.forbidden.store(true, Ordering::SeqCst);
        line.cut();
        cluster.api::<Secret>().delete("s-250", &<_>::default()).await.unwrap();
        let labels = json!({ "metadata": { "labels": { "new": "yes" } } });
        let changed = cluster.patch::<Secret>("s-400", labels).await;
        line.forbidden.store(false, Ordering::SeqCst);
        let revision = changed.resource_version().unwrap();
        secrets.wait_for_revision(&revision, Duration::from_secs(60)).await.unwrap();
        let mut events = [heard.recv().await.unwrap(), heard.recv().await.unwrap()];
        events.sort();
        assert_eq!(events, ["s-250 Deleted", "s-400 Updated"]);
        assert!(heard.try_recv().is_err(), "and nothing else");
        assert_eq!(secrets.len(), ALL - 1);
        let again = line.pages.lock().unwrap().clone();
        let since = "resourceVersionMatch=NotOlderThan";
        assert!(again[0].contains("limit=500&resourceVersion=") && again[0].contains(since));
        caches.stop();
    });
}
