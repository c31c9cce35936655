//! Takes notes at once, writes them later: a bounded queue and one task that hands them on; those of
//! one namespace in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::sync::mpsc;

use super::correlator::{Action, Correlator, Held};
use super::delivery::Delivery;
use super::lanes::Lanes;
use super::{EventDraft, EventType, NOTE_LIMIT, Note, WORD_LIMIT, clip, name};
use crate::Env;

/// How many notes may wait; more are dropped and counted.
const QUEUED: usize = 1000;

/// Records events; cheap to clone and never waits.
///
/// An event is lost, and counted in [`Recorder::dropped`], when a thousand others wait already (the
/// namespace with the most of them loses), when the API refuses it or has not taken it a minute and a
/// half after it was first sent, or when its object has caused 25 others within a short time (one more
/// each five minutes). Repeats of an event are never lost: they are counted, and told when there is
/// room. A namespace that takes no events holds back those of no other.
#[derive(Debug, Clone)]
pub struct Recorder {
    env: Env,
    notes: mpsc::Sender<(Timestamp, Note)>,
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
        let EventDraft { reason, note, kind, .. } = &draft;
        tracing::debug!(controller, kind = kind.as_str(), reason, note, "event");
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
        if self.notes.try_send((self.env.now(), note)).is_err() {
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
            env: env.clone(),
            notes,
            dropped: dropped.clone(),
            correlator: Correlator::default(),
            sequence: 0,
        };
        (Self { env, notes: sender, dropped }, writer)
    }
}

/// The other end: owns the queue and writes until every [`Recorder`] is gone.
pub(crate) struct Writer {
    client: kube::Client,
    env: Env,
    /// With the times at which they were taken: they may have to wait.
    notes: mpsc::Receiver<(Timestamp, Note)>,
    dropped: Arc<AtomicU64>,
    correlator: Correlator,
    sequence: u32,
}

impl Writer {
    /// Writes notes until `stop` resolves, then what is still queued and the counts held back.
    pub(crate) async fn run(mut self, stop: impl Future<Output = ()> + Send + 'static) {
        let mut stop = stop.boxed().shared();
        let (client, env) = (self.client.clone(), self.env.clone());
        let mut lanes = Lanes::new(Delivery::new(client, env, self.dropped.clone(), stop.clone()));
        loop {
            let held = self.until_held_back();
            let note = tokio::select! {
                biased;
                () = lanes.go_on() => continue,
                note = self.notes.recv() => note,
                () = &mut stop => break,
                () = held => {
                    let due = self.correlator.due(self.env.now());
                    due.into_iter().for_each(|event| lanes.send(event));
                    continue;
                }
            };
            match note {
                Some((time, note)) => self.write(&mut lanes, time, note),
                None => break,
            }
        }
        self.notes.close();
        while let Some((time, note)) = self.notes.recv().await {
            self.write(&mut lanes, time, note);
        }
        self.correlator.unsent().into_iter().for_each(|event| lanes.send(event));
        lanes.finish().await;
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

    fn write(&mut self, lanes: &mut Lanes, time: Timestamp, note: Note) {
        self.sequence = self.sequence.wrapping_add(1);
        let number = format!("{:x}{:04x}", time.as_microsecond(), self.sequence & 0xffff);
        let name = name::of(&note.regarding, &number);
        let (name, count) = match self.correlator.observe(&note, name, time) {
            Action::Hold => return,
            Action::Drop => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Action::Create { name } => (name, 1),
            Action::Repeat { name, count } => (name, count),
        };
        lanes.send(Held { note, name, count, last: time });
    }
}
