//! Watches: a stream of events, one JSON document per line.
//!
//! The stream is the watcher: it holds a position in the store's ring and a few deadlines, nothing
//! is spawned or copied for it, and dropping the body ends it.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::stream;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::BoxError;

use super::body::Body;
use super::events::{Event, Events};
use super::negotiate::{Accepted, Encoding};
use crate::registry::options::{Freshness, ListOptions};
use crate::registry::{Registry, Target};
use crate::status::Status;
use crate::store::Watcher;

/// How often a client that wants them gets bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Watches that do not say how long last between this and twice this.
const DEFAULT_TIMEOUT_SECONDS: u64 = 1800;
/// No watch lasts longer, whatever the client says: a year.
const LONGEST_TIMEOUT_SECONDS: u64 = 365 * 24 * 3600;

struct Stream {
    registry: Arc<Registry>,
    events: Events,
    watcher: Option<Watcher>,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    /// Events to be sent before waiting for more.
    ready: Bytes,
}

/// Starts a watch.
pub(crate) fn respond(
    registry: &Arc<Registry>,
    target: &Target,
    options: &ListOptions,
    events: Events,
) -> Result<Response<Body>, Status> {
    crate::registry::fields::check(&target.kind, &options.selector)?;
    let stream = Stream::start(registry, target, options, events)?;
    let frames = stream::unfold(stream, |mut stream| async move {
        let bytes = stream.next().await?;
        Some((Ok::<_, BoxError>(Frame::data(bytes)), stream))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    Ok(response)
}

/// Watches speak JSON only.
pub(crate) fn check_accepted(accepted: Accepted) -> Result<(), Status> {
    match accepted.encoding {
        Encoding::Json => Ok(()),
        Encoding::Yaml => Err(Status::not_acceptable()),
    }
}

impl Stream {
    fn start(
        registry: &Arc<Registry>,
        target: &Target,
        options: &ListOptions,
        mut events: Events,
    ) -> Result<Self, Status> {
        let env = &registry.env;
        let seconds = options
            .timeout_seconds
            .filter(|seconds| *seconds > 0)
            .unwrap_or_else(|| DEFAULT_TIMEOUT_SECONDS + env.random_below(DEFAULT_TIMEOUT_SECONDS))
            .min(LONGEST_TIMEOUT_SECONDS);
        let now = env.instant();
        let mut first = BytesMut::new();
        let initial = match (options.initial_events, options.freshness) {
            (Some(wanted), _) => wanted,
            (None, Freshness::Latest | Freshness::Any) => true,
            (None, _) => false,
        };
        let watcher = if initial {
            let (listed, watcher) = registry.list_and_watch(target, options)?;
            for item in &listed.items {
                events.write(&mut first, &Event::Added(item.clone()), env.now());
            }
            if options.initial_events == Some(true) && options.bookmarks {
                events.write(&mut first, &Event::InitialEnd(listed.revision), env.now());
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
                    write_error(&mut first, &status);
                    None
                }
            }
        };
        Ok(Self {
            registry: registry.clone(),
            events,
            watcher,
            bookmarks: options.bookmarks,
            next_bookmark: now + BOOKMARK_EVERY,
            deadline: now + Duration::from_secs(seconds),
            ready: first.freeze(),
        })
    }

    /// The next events, joined; `None` when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.ready.is_empty() {
                return Some(std::mem::take(&mut self.ready));
            }
            let watcher = self.watcher.as_mut()?;
            let mut bytes = BytesMut::new();
            let wake =
                if self.bookmarks { self.next_bookmark.min(self.deadline) } else { self.deadline };
            tokio::select! {
                biased;
                changes = watcher.next() => match changes {
                    Ok(changes) => {
                        for change in &changes {
                            if let Some(event) = self.events.of(change) {
                                self.events.write(&mut bytes, &event, self.registry.env.now());
                            }
                        }
                    }
                    Err(error) => {
                        write_error(&mut bytes, &Status::expired(error.to_string()));
                        self.watcher = None;
                    }
                },
                () = self.registry.env.sleep_until(wake) => {
                    if self.bookmarks && let Some(revision) = watcher.caught_up() {
                        self.events.write(&mut bytes, &Event::Bookmark(revision), self.registry.env.now());
                    }
                    self.next_bookmark = wake + BOOKMARK_EVERY;
                    if wake == self.deadline {
                        self.watcher = None;
                    }
                }
            }
            self.ready = bytes.freeze();
        }
    }
}

fn write_error(bytes: &mut BytesMut, status: &Status) {
    let event: Value = json!({"type": "ERROR", "object": status.to_value()});
    bytes.put_slice(event.to_string().as_bytes());
    bytes.put_u8(b'\n');
}
