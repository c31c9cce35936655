//! Takes notes at once, writes them later: a bounded queue and one task that talks to the API.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::mpsc;

use super::correlator::{Action, Correlator, Held};
use super::{EventDraft, EventType, Note};
use crate::Env;
use crate::client::told_to_wait;

/// How many notes may wait; more are dropped and counted.
const QUEUED: usize = 1000;
/// How often one write is tried before it is dropped and counted.
const TRIES: u32 = 3;
/// How long one try may take.
const ANSWER: Duration = Duration::from_secs(5);
/// How long until the next try, unless the API wants to be left alone for longer.
const PAUSE: Duration = Duration::from_secs(1);
/// The limits the API sets, in bytes.
const NOTE_LIMIT: usize = 1024;
const WORD_LIMIT: usize = 128;

/// Records events; cheap to clone and never waits.
///
/// An event is lost, and counted in [`Recorder::dropped`], when a thousand others wait already, when
/// the API refuses it, or when its object has caused 25 others within a short time (one more each five
/// minutes). Repeats of an event are never lost: they are counted, and told when there is room.
#[derive(Debug, Clone)]
pub struct Recorder {
    notes: mpsc::Sender<Note>,
    dropped: Arc<AtomicU64>,
}

impl Recorder {
    /// Notes that something happened to `regarding`. `reason` is one CamelCase word.
    pub fn record(
        &self,
        controller: &str,
        regarding: ObjectReference,
        kind: EventType,
        reason: &str,
        note: impl Into<String>,
    ) {
        self.record_draft(controller, regarding, EventDraft::new(kind, reason, note));
    }

    /// Notes what the draft says, about `regarding` if it does not name another object.
    pub fn record_draft(&self, controller: &str, regarding: ObjectReference, draft: EventDraft) {
        let action = draft.action.as_ref().unwrap_or(&draft.reason);
        let note = Note {
            controller: controller.to_owned(),
            regarding: draft.about.unwrap_or(regarding),
            related: draft.related,
            kind: draft.kind,
            reason: clip(&draft.reason, WORD_LIMIT).to_owned(),
            action: clip(action, WORD_LIMIT).to_owned(),
            text: clip(&draft.note, NOTE_LIMIT).to_owned(),
        };
        if self.notes.try_send(note).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many events were lost.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn new(client: kube::Client, env: Env) -> (Self, Writer) {
        let (sender, notes) = mpsc::channel(QUEUED);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            client,
            env,
            notes,
            dropped: dropped.clone(),
            correlator: Correlator::default(),
            sequence: 0,
        };
        (Self { notes: sender, dropped }, writer)
    }
}

/// The other end: owns the queue and writes until every [`Recorder`] is gone.
pub(crate) struct Writer {
    client: kube::Client,
    env: Env,
    notes: mpsc::Receiver<Note>,
    dropped: Arc<AtomicU64>,
    correlator: Correlator,
    sequence: u32,
}

impl Writer {
    /// Writes notes until `stop` resolves, then what is still queued and the counts held back.
    pub(crate) async fn run(mut self, stop: impl Future<Output = ()> + Send) {
        tokio::pin!(stop);
        loop {
            let held = self.until_held_back();
            let note = tokio::select! {
                biased;
                note = self.notes.recv() => note,
                () = &mut stop => break,
                () = held => {
                    let due = self.correlator.due(self.env.now());
                    self.tell(due).await;
                    continue;
                }
            };
            match note {
                Some(note) => self.write(note).await,
                None => break,
            }
        }
        self.notes.close();
        while let Some(note) = self.notes.recv().await {
            self.write(note).await;
        }
        let unsent = self.correlator.unsent();
        self.tell(unsent).await;
    }

    /// Waits until something that was held back may be told; for ever if there is nothing.
    fn until_held_back(&self) -> impl Future<Output = ()> + use<> {
        let (env, tell_at) = (self.env.clone(), self.correlator.tell_at());
        async move {
            match tell_at {
                Some(at) => {
                    let wait = at.duration_since(env.now());
                    env.sleep(Duration::try_from(wait).unwrap_or_default()).await;
                }
                None => std::future::pending().await,
            }
        }
    }

    async fn tell(&self, held: Vec<Held>) {
        for Held { note, name, count, last } in held {
            self.put(&note, &name, count, last).await;
        }
    }

    async fn write(&mut self, note: Note) {
        let now = self.env.now();
        self.sequence = self.sequence.wrapping_add(1);
        let stem = note.regarding.name.as_deref().unwrap_or("unknown");
        let name = format!("{stem}.{:x}{:04x}", now.as_microsecond(), self.sequence & 0xffff);
        match self.correlator.observe(&note, name, now) {
            Action::Hold => {}
            Action::Drop => drop(self.dropped.fetch_add(1, Ordering::Relaxed)),
            Action::Create { name } => self.put(&note, &name, 1, now).await,
            Action::Repeat { name, count } => self.put(&note, &name, count, now).await,
        }
    }

    /// Writes that `note` was seen `count` times. The event of a series may be gone (the API keeps
    /// events for an hour or so): it is then made anew, with its count.
    async fn put(&self, note: &Note, name: &str, count: i32, last: Timestamp) {
        // Events of cluster-scoped objects live in `default`.
        let namespace = note.regarding.namespace.as_deref().unwrap_or("default");
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let series =
            (count > 1).then_some(EventSeries { count, last_observed_time: MicroTime(last) });
        let mut written = Written::Gone;
        if let Some(series) = &series {
            let (params, patch) = (PatchParams::default(), json!({ "series": series }));
            let patch = Patch::Merge(&patch);
            written = self.attempt(|| api.patch(name, &params, &patch)).await;
        }
        if written == Written::Gone {
            let event = event(note.clone(), name, namespace, series, last, self.env.host());
            let params = PostParams::default();
            written = self.attempt(|| api.create(&params, &event)).await;
        }
        if written != Written::Yes {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends until it works or is hopeless. A request that hangs is given up, so that it holds
    /// back the notes behind it only so long.
    async fn attempt<F, T>(&self, mut send: impl FnMut() -> F) -> Written
    where
        F: Future<Output = kube::Result<T>>,
    {
        for tried in 1..=TRIES {
            let mut pause = PAUSE;
            match self.env.timeout(ANSWER, send()).await {
                Ok(Ok(_)) => return Written::Yes,
                Ok(Err(kube::Error::Api(status))) if status.code == 404 => return Written::Gone,
                // Written by an earlier try whose answer got lost.
                Ok(Err(kube::Error::Api(status))) if status.code == 409 && tried > 1 => {
                    return Written::Yes;
                }
                // The API understood and said no: trying again would not help.
                Ok(Err(kube::Error::Api(status))) if status.code < 500 && status.code != 429 => {
                    tracing::debug!(%status, "event refused");
                    return Written::No;
                }
                Ok(Err(error)) => {
                    pause = pause.max(told_to_wait(&error));
                    tracing::debug!(%error, tried, ?pause, "event not written");
                }
                Err(elapsed) => tracing::debug!(%elapsed, tried, "event not written"),
            }
            if tried < TRIES {
                self.env.sleep(pause).await;
            }
        }
        Written::No
    }
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    No,
    /// What was to be changed, or its namespace, is not there.
    Gone,
}

fn event(
    note: Note,
    name: &str,
    namespace: &str,
    series: Option<EventSeries>,
    time: Timestamp,
    host: &str,
) -> Event {
    let instance = format!("{}-{host}", note.controller);
    let mut event = Event {
        action: Some(note.action),
        event_time: Some(MicroTime(time)),
        note: Some(note.text),
        reason: Some(note.reason),
        reporting_instance: Some(clip(&instance, WORD_LIMIT).to_owned()),
        reporting_controller: Some(note.controller),
        series,
        type_: Some(note.kind.as_str().to_owned()),
        ..Event::default()
    };
    event.metadata.name = Some(name.to_owned());
    event.metadata.namespace = Some(namespace.to_owned());
    event.regarding = Some(note.regarding);
    event.related = note.related;
    event
}

/// The longest prefix of at most `limit` bytes that is whole characters.
fn clip(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
