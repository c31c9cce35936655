//! Watches: a stream of events, one JSON document per line.
//!
//! The stream is the watcher: it holds a position in the store's history and a few deadlines,
//! nothing is spawned for it, and dropping the body ends it. Bytes are made when the client takes
//! them, so a slow client costs one batch; when the history has moved past it, the stream ends
//! with an error. A client that takes nothing at all is the business of its connection, which is told
//! what it carries.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::time::Instant;
use tower::BoxError;

use super::body::Body;
use super::events::{Event, Events, Lines};
use super::negotiate::{Accepted, Encoding, Form};
use super::shown;
use crate::registry::options::{Freshness, ListOptions};
use crate::registry::{Registry, Target};
use crate::status::Status;
use crate::store::{Stored, Watcher};

/// How often a client that wants them gets bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Watches that do not say how long last between this and twice this.
const DEFAULT_TIMEOUT_SECONDS: u64 = 1800;
/// No watch lasts longer, whatever the client says: a year.
const LONGEST_TIMEOUT_SECONDS: u64 = 365 * 24 * 3600;

/// About how many bytes of initial events are made at a time.
const INITIAL_BATCH: usize = 256 * 1024;

/// Stands with an answer that is a watch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IsWatch;

struct Stream {
    registry: Arc<Registry>,
    events: Events,
    watcher: Option<Watcher>,
    /// Changes of what is served; the watch of a kind ends with its definition.
    served: tokio::sync::watch::Receiver<u64>,
    /// The definition is gone: the watch ends when it has told what went with it.
    is_ending: bool,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    /// The objects that were there at the beginning and are still to be sent.
    initial: std::vec::IntoIter<Arc<Stored>>,
    /// What to say after the last of them.
    initial_end: Option<u64>,
    /// What is sent before anything else is made.
    ready: Lines,
}

/// Starts a watch.
pub(crate) async fn respond(
    registry: &Arc<Registry>,
    target: &Target,
    options: &ListOptions,
    events: Events,
) -> Result<Response<Body>, Status> {
    crate::registry::fields::check(&target.kind, &options.selector)?;
    let stream = Stream::start(registry, target, options, events).await?;
    let frames = stream::unfold(stream, |mut stream| async move {
        let bytes = stream.next().await?;
        Some((Ok::<_, BoxError>(Frame::data(bytes)), stream))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response.extensions_mut().insert(IsWatch);
    Ok(response)
}

/// Watches speak JSON only.
pub(crate) fn check_accepted(accepted: Accepted) -> Result<(), Status> {
    match accepted.encoding {
        Encoding::Json => Ok(()),
        Encoding::Yaml => {
            let mut status = Status::not_acceptable();
            status.message = "only the following media types are accepted: \
                              application/json;stream=watch, \
                              application/vnd.kubernetes.protobuf;stream=watch"
                .to_owned();
            Err(status)
        }
    }
}

impl Stream {
    async fn start(
        registry: &Arc<Registry>,
        target: &Target,
        options: &ListOptions,
        events: Events,
    ) -> Result<Self, Status> {
        let env = &registry.env;
        let seconds = options
            .timeout_seconds
            .filter(|seconds| *seconds > 0)
            .unwrap_or_else(|| DEFAULT_TIMEOUT_SECONDS + env.random_below(DEFAULT_TIMEOUT_SECONDS))
            .min(LONGEST_TIMEOUT_SECONDS);
        let now = env.instant();
        // Before the list, which may wait for a webhook: the definition may go meanwhile.
        let served = registry.served();
        let mut ready = Lines::default();
        let (mut items, mut initial_end) = (Vec::new(), None);
        let initial = match (options.initial_events, options.freshness) {
            (Some(wanted), _) => wanted,
            (None, Freshness::Latest | Freshness::Any) => true,
            (None, _) => false,
        };
        let watcher = if initial {
            let all = ListOptions { limit: 0, continue_token: String::new(), ..options.clone() };
            let listed = shown::list(registry, target, &all).await?;
            let watcher = registry.watch(target, listed.revision)?;
            items = listed.items;
            if options.bookmarks {
                initial_end = Some(listed.revision);
            }
            Some(watcher)
        } else {
            let from = match options.freshness {
                Freshness::NotOlderThan(revision) | Freshness::Exact(revision) => revision,
                Freshness::Latest | Freshness::Any => registry.store.revision(),
            };
            match registry.watch(target, from) {
                Ok(watcher) => Some(watcher),
                Err(status) => {
                    ready.put_error(&status);
                    None
                }
            }
        };
        let mut stream = Self {
            registry: registry.clone(),
            events,
            watcher,
            served,
            is_ending: false,
            bookmarks: options.bookmarks,
            next_bookmark: now + BOOKMARK_EVERY,
            deadline: now + Duration::from_secs(seconds),
            initial: items.into_iter(),
            initial_end,
            ready,
        };
        // It may have gone before, too, after the kind was looked up.
        stream.end_with_definition().await;
        Ok(stream)
    }

    /// Ends the watch if the definition is gone: once all is told that went with it.
    async fn end_with_definition(&mut self) {
        if !self.registry.serves(&self.events.kind) {
            // The objects went before it, but are seen to go once that is durable. Where it never will
            // be, there is nothing to tell.
            let _ = self.registry.store.settle().await;
            self.is_ending = true;
        }
    }

    /// The next piece of the stream; `None` when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.ready.take() {
                return Some(piece);
            }
            // However slowly the first objects are read, they last no longer than the watch.
            if self.is_beginning() && self.registry.env.instant() >= self.deadline {
                return None;
            }
            if self.write_initial() {
                continue;
            }
            let watcher = self.watcher.as_mut()?;
            if self.is_ending && watcher.caught_up().is_some() {
                return None;
            }
            let env = &self.registry.env;
            let wake =
                if self.bookmarks { self.next_bookmark.min(self.deadline) } else { self.deadline };
            // Before the changes: whoever reads slowly always has some waiting, and would never
            // come to the end.
            if env.instant() >= wake {
                self.rest(wake);
                continue;
            }
            tokio::select! {
                biased;
                changes = watcher.next() => match changes {
                    Ok(changes) => {
                        let kind = self.events.kind.clone();
                        let changes = match shown::changes(&self.registry, &kind, changes).await {
                            Ok(changes) => changes,
                            Err(status) => {
                                self.ready.put_error(&status);
                                self.watcher = None;
                                continue;
                            }
                        };
                        let events = changes.iter().filter_map(|change| self.events.of(change));
                        for event in events.collect::<Vec<_>>() {
                            self.tell(&event);
                        }
                    }
                    Err(error) => {
                        self.ready.put_error(&Status::expired(error.to_string()));
                        self.watcher = None;
                    }
                },
                _ = self.served.changed() => self.end_with_definition().await,
                () = env.sleep_until(wake) => self.rest(wake),
            }
        }
    }

    /// What is done from time to time: a bookmark, and in the end, the end.
    fn rest(&mut self, wake: Instant) {
        if self.bookmarks
            && let Some(revision) = self.watcher.as_mut().and_then(Watcher::caught_up)
        {
            self.tell(&Event::Bookmark(revision));
        }
        self.next_bookmark = wake + BOOKMARK_EVERY;
        if wake == self.deadline {
            self.watcher = None;
        }
    }

    /// Whether objects that were there at the beginning, or word of their end, are still to be sent.
    fn is_beginning(&self) -> bool {
        !self.initial.as_slice().is_empty() || self.initial_end.is_some()
    }

    /// Writes some of the objects that were there at the beginning; `false` when none are left.
    fn write_initial(&mut self) -> bool {
        while self.ready.size() < INITIAL_BATCH {
            let event = match self.initial.next() {
                Some(object) => Event::Initial(object),
                None => match self.initial_end.take() {
                    Some(revision) => Event::InitialEnd(revision),
                    None => break,
                },
            };
            self.tell(&event);
        }
        self.ready.size() > 0
    }

    /// Writes one event.
    fn tell(&mut self, event: &Event) {
        if self.events.view.form == Form::MetadataList {
            // None of them is a list: kube-apiserver hangs up, without a word.
            self.watcher = None;
            self.initial = Vec::new().into_iter();
            self.initial_end = None;
        } else {
            self.events.write(&mut self.ready, event, self.registry.env.now());
        }
    }
}
