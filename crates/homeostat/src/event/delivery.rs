//! One event on its way to the API: sent again while the API is away or has no time, for a minute and
//! a half at most. Never decides what is sent, and keeps a stop waiting no longer than it must.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::correlator::Held;
use super::{Note, WORD_LIMIT, clip};
use crate::Env;
use crate::client::told_to_wait;
use crate::queue::Backoff;

/// How long after the first try the last one is made; then the event is dropped and counted.
const PATIENCE: Duration = Duration::from_secs(85);
/// How often it is tried when the process is about to end.
const LAST_TRIES: u32 = 3;
/// How many requests may be under way at once.
const AT_ONCE: usize = 16;
/// How long one try may take.
const ANSWER: Duration = Duration::from_secs(5);
/// How long until the next try, unless the API wants to be left alone for longer.
const PAUSE: Backoff = Backoff {
    first: Duration::from_secs(1),
    factor: 2.0,
    max: Duration::from_secs(10),
    jitter: 0.0,
};

/// Takes events to the API.
pub(super) struct Delivery {
    client: kube::Client,
    env: Env,
    /// How many were lost.
    pub(super) dropped: Arc<AtomicU64>,
    /// Resolves when the process is about to end.
    stop: Shared<BoxFuture<'static, ()>>,
    turns: Semaphore,
}

impl Delivery {
    pub(super) fn new(
        client: kube::Client,
        env: Env,
        dropped: Arc<AtomicU64>,
        stop: Shared<BoxFuture<'static, ()>>,
    ) -> Self {
        Self { client, env, dropped, stop, turns: Semaphore::new(AT_ONCE) }
    }

    /// Writes that the note was seen `count` times. The event of a series may be gone (the API keeps
    /// events for an hour or so): it is then made anew, with its count.
    pub(super) async fn put(&self, event: &Held) {
        let Held { note, name, count, last } = event;
        let (count, last) = (*count, *last);
        let until = self.env.instant() + PATIENCE;
        let namespace = namespace_of(note);
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let series =
            (count > 1).then_some(EventSeries { count, last_observed_time: MicroTime(last) });
        let mut written = Written::Gone;
        if let Some(series) = &series {
            let (params, patch) = (PatchParams::default(), json!({ "series": series }));
            let patch = Patch::Merge(&patch);
            written = self.attempt(until, || api.patch(name, &params, &patch)).await;
        }
        if written == Written::Gone {
            let event = self::event(note.clone(), name, namespace, series, last, self.env.host());
            let params = PostParams::default();
            written = self.attempt(until, || api.create(&params, &event)).await;
        }
        if written != Written::Yes {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends until it works or is hopeless. A request that hangs is given up, so that it holds
    /// back those behind it only so long.
    async fn attempt<F, T>(&self, until: Instant, mut send: impl FnMut() -> F) -> Written
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut tried = 0;
        loop {
            tried += 1;
            let mut told = Duration::ZERO;
            let turn = self.turns.acquire().await;
            let answer = self.env.timeout(ANSWER, send()).await;
            drop(turn);
            match answer {
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
                    told = told_to_wait(&error);
                    tracing::debug!(%error, tried, "event not written");
                }
                Err(elapsed) => tracing::debug!(%elapsed, tried, "event not written"),
            }
            let stops = self.stop.clone().now_or_never().is_some();
            let left = until.saturating_duration_since(self.env.instant());
            if left.is_zero() || (stops && tried >= LAST_TRIES) {
                return Written::No;
            }
            if stops {
                self.env.sleep(PAUSE.first.max(told.min(PAUSE.max))).await;
                continue;
            }
            let pause = self.env.sleep(PAUSE.delay(tried - 1, 0.0).max(told).min(left));
            tokio::select! {
                biased;
                () = self.stop.clone() => {}
                () = pause => {}
            }
        }
    }
}

/// Where the event of a note is written. Those of cluster-scoped objects live in `default`.
pub(super) fn namespace_of(note: &Note) -> &str {
    note.regarding.namespace.as_deref().unwrap_or("default")
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

#[cfg(test)]
mod tests {
    use super::super::EventType;
    use super::*;

    #[test]
    fn the_name_of_a_long_host_is_cut_to_what_an_event_can_carry() {
        let note = Note {
            controller: "web".to_owned(),
            regarding: <_>::default(),
            related: None,
            kind: EventType::Normal,
            reason: "Told".to_owned(),
            action: "Told".to_owned(),
            text: "once".to_owned(),
        };
        let instance = |host: &str| {
            let event = event(note.clone(), "a", "default", None, Timestamp::UNIX_EPOCH, host);
            event.reporting_instance.unwrap()
        };
        assert_eq!(instance("here"), "web-here");
        let long = instance(&"h".repeat(253));
        assert!(long.len() == 128 && long.starts_with("web-hhh"), "{long}");
    }
}
