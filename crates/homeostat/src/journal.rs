//! The journal: every reconcile with its cause, its reads, its writes and what it asked for next.
//!
//! A bounded ring in memory plus a live feed. It keeps no file and never slows a reconcile down:
//! when the ring is full the oldest record goes, and a subscriber that falls behind is told how
//! many records it missed. One record is one line of text, and on virtual time two runs with the
//! same seed give the same lines.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::broadcast;

use crate::context::Change;
pub use crate::difference::FieldChange;
use crate::key::Key;
use crate::kind::Kind;
use crate::outcome::Outcome;
use crate::trigger::Triggers;

/// How many records a journal keeps unless told otherwise.
const CAPACITY: usize = 4096;
/// How many fields of a write are named in its text.
const SHOWN_FIELDS: usize = 4;

/// One reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number among the reconciles of its controller: the `id` of its tracing span. Not part of
    /// the text.
    pub id: u64,
    /// When it began.
    pub time: Timestamp,
    /// How long it took; not part of the text.
    pub took: Duration,
    /// The controller.
    pub controller: Arc<str>,
    /// The object.
    pub key: Key,
    /// Why it ran.
    pub triggers: Triggers,
    /// What it looked at, in order, each once; at most 64. Not part of the text.
    pub reads: Vec<Read>,
    /// What it wrote, in order; writes that changed nothing are here too. At most 256, the first.
    pub writes: Vec<Write>,
    /// How it ended.
    pub result: Ending,
    /// When the key runs again without an event; `None` when only an event wakes it.
    pub next: Option<Timestamp>,
}

/// One read of a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The kind that was read.
    pub kind: Kind,
    /// The object, or `None` for a list.
    pub key: Option<Key>,
    /// Where the answer came from.
    pub from: ReadFrom,
    /// How many objects there were.
    pub found: usize,
}

/// Where a read was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// By the cache.
    Cache,
    /// By the API.
    Api,
}

/// One write of a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// `apply`, `create`, `replace`, `delete`, `patch`, `scale`, `finalizer`, `external`, or the
    /// subresource that was patched, such as `status`.
    pub verb: &'static str,
    /// The kind of the object written.
    pub kind: Kind,
    /// The object written.
    pub key: Key,
    /// What it changed.
    pub change: Change,
    /// The fields that differ from what was known of the object before; empty for one that is new
    /// or gone, or of which nothing was known: its kind is not declared, and the reconcile did not read
    /// it. The values of a Secret are hidden.
    pub fields: Vec<FieldChange>,
}

/// How a reconcile ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It went well.
    Ok(Outcome),
    /// A conflict or a stale cache: tried again quickly, not a failure.
    Conflict(String),
    /// This process does not lead any more. No failure: the key runs when it leads again.
    NotLeader,
    /// A failure that is tried again with backoff.
    Failed(String),
    /// A failure that waits for the object to change.
    Terminal(String),
}

/// The records of one manager; cheap to clone.
///
/// ```
/// # use std::sync::Arc;
/// # use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # use homeostat::{Context, Controller, Outcome, Result};
/// # async fn reconcile(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
/// #     let secret = serde_json::json!({ "metadata": { "name": "s" } });
/// #     ctx.apply::<Secret>(serde_json::from_value(secret).unwrap()).await?;
/// #     Ok(Outcome::Done)
/// # }
/// # homeostat_testing::on_cluster(async |cluster| {
/// # cluster.create::<ConfigMap>(serde_json::json!({ "metadata": { "name": "web" } })).await;
/// let running = cluster.start(Controller::new(reconcile)).await;
/// let journal = running.journal();
/// # cluster.runs(&journal, 1).await;
/// let first = &journal.records()[0];
/// assert_eq!((&*first.controller, first.key.name()), ("configmap", "web"));
/// assert_eq!((first.writes[0].verb, first.result.to_string()), ("apply", "done".to_owned()));
/// # running.stop().await.unwrap();
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct Journal {
    ring: Arc<Mutex<Ring>>,
    feed: broadcast::Sender<Arc<Record>>,
}

#[derive(Debug)]
struct Ring {
    records: VecDeque<Arc<Record>>,
    capacity: usize,
    total: u64,
}

impl Journal {
    /// A journal that keeps the last `capacity` records; at least one.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        let ring = Ring { records: VecDeque::new(), capacity, total: 0 };
        Self {
            ring: Arc::new(Mutex::new(ring)),
            feed: broadcast::channel(capacity.min(CAPACITY)).0,
        }
    }

    /// The records still kept, oldest first.
    #[must_use]
    pub fn records(&self) -> Vec<Arc<Record>> {
        self.lock().records.iter().cloned().collect()
    }

    /// How many records were written in all, those that are gone included.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.lock().total
    }

    /// A feed of the records from now on; one that reads too slowly gets `Lagged` with a count.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Record>> {
        self.feed.subscribe()
    }

    pub(crate) fn write(&self, record: Record) {
        let record = Arc::new(record);
        let mut ring = self.lock();
        if ring.records.len() == ring.capacity {
            ring.records.pop_front();
        }
        ring.total += 1;
        ring.records.push_back(record.clone());
        // Sent under the lock, so that the feed has the order of the ring. No subscriber is fine.
        let _ = self.feed.send(record);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Journal {
    fn default() -> Self {
        Self::with_capacity(CAPACITY)
    }
}

impl Record {
    /// The whole story in several lines: what woke it, what it read, what it wrote field by field,
    /// how it ended and when it runs again.
    #[must_use]
    pub fn story(&self) -> String {
        let mut lines = vec![format!("{} {} {}", self.time, self.controller, self.key)];
        lines.extend(self.triggers.iter().map(|trigger| format!("  because {trigger}")));
        lines.extend(self.reads.iter().map(|read| format!("  {read}")));
        for write in &self.writes {
            let Write { verb, kind, key, change, fields } = write;
            lines.push(format!("  {verb} {kind} {key} {change}"));
            lines.extend(fields.iter().map(|field| format!("    {field}")));
        }
        lines.push(format!("  {} after {:?}", self.result, self.took));
        let next = self.next.map_or("on the next event".to_owned(), |next| format!("at {next}"));
        lines.push(format!("  next {next}"));
        lines.join("\n")
    }
}

/// One line per record, oldest first.
impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.records().iter().try_for_each(|record| writeln!(f, "{record}"))
    }
}

/// `time controller key [triggers] write; write -> ending (next time)`.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} [{}]", self.time, self.controller, self.key, self.triggers)?;
        for (index, write) in self.writes.iter().enumerate() {
            let separator = if index == 0 { " " } else { "; " };
            write!(f, "{separator}{write}")?;
        }
        write!(f, " -> {}", self.result)?;
        match self.next {
            Some(next) => write!(f, " (next {next})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.verb, self.kind, self.key, self.change)?;
        for (index, field) in self.fields.iter().take(SHOWN_FIELDS).enumerate() {
            write!(f, "{}{}", if index == 0 { " (" } else { ", " }, field.path)?;
        }
        match self.fields.len() {
            0 => Ok(()),
            1..=SHOWN_FIELDS => f.write_str(")"),
            more => write!(f, " and {} more)", more - SHOWN_FIELDS),
        }
    }
}

/// `get Pod default/web (cache, 1)`, `list Pod (api, 3)`.
impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = match self.from {
            ReadFrom::Cache => "cache",
            ReadFrom::Api => "api",
        };
        match &self.key {
            Some(key) => write!(f, "get {} {key} ({from}, {})", self.kind, self.found),
            None => write!(f, "list {} ({from}, {})", self.kind, self.found),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An error may span lines; a record may not.
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        match self {
            Self::Ok(outcome) => outcome.fmt(f),
            Self::Conflict(error) => write!(f, "conflict: {}", line(error)),
            Self::NotLeader => f.write_str("not the leader"),
            Self::Failed(error) => write!(f, "failed: {}", line(error)),
            Self::Terminal(error) => write!(f, "terminal: {}", line(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trigger::Trigger;

    fn record(name: &str) -> Record {
        Record {
            id: 1,
            time: Timestamp::UNIX_EPOCH,
            took: Duration::ZERO,
            controller: Arc::from("at"),
            key: Key::namespaced("default", name),
            triggers: [Trigger::Initial, Trigger::Timer].into_iter().collect(),
            reads: Vec::new(),
            writes: vec![Write {
                verb: "create",
                kind: Kind::new("", "v1", "Pod", "pods", true),
                key: Key::namespaced("default", "x-pod"),
                change: Change::Created,
                fields: Vec::new(),
            }],
            result: Ending::Failed("one\n  two".to_owned()),
            next: Some(Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn a_record_is_one_line() {
        assert_eq!(
            record("x").to_string(),
            "1970-01-01T00:00:00Z at default/x [initial, timer] create Pod default/x-pod created \
             -> failed: one two (next 1970-01-01T00:00:00Z)"
        );
    }

    #[test]
    fn a_full_journal_forgets_the_oldest() {
        let journal = Journal::with_capacity(2);
        let mut feed = journal.subscribe();
        for name in ["a", "b", "c"] {
            journal.write(record(name));
        }
        let names: Vec<_> = journal.records().iter().map(|r| r.key.name().to_owned()).collect();
        assert_eq!(
            (names.as_slice(), journal.total()),
            (["b", "c"].map(String::from).as_slice(), 3)
        );
        assert!(matches!(feed.try_recv(), Err(broadcast::error::TryRecvError::Lagged(1))));
        let rest = [feed.try_recv().unwrap(), feed.try_recv().unwrap()];
        assert_eq!(
            rest.map(|record| record.key.name().to_owned()),
            ["b", "c"],
            "in order, the rest"
        );
    }

    #[test]
    fn who_subscribes_is_told_every_record_from_then_on_as_the_journal_has_it() {
        let journal = Journal::default();
        journal.write(record("before"));
        let mut feeds = [journal.subscribe(), journal.subscribe()];
        for name in ["a", "b", "c"] {
            journal.write(record(name));
        }
        for feed in &mut feeds {
            let told: Vec<_> = std::iter::from_fn(|| feed.try_recv().ok()).collect();
            assert_eq!(told, journal.records()[1..]);
        }
    }
}
