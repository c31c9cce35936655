//! One watch as a pure state machine: `state × input × time × dice → changes × what to do next`.
//!
//! ```text
//!            ┌──────────────── relist (410, refused, broken start) ◀───────────────┐
//!            ▼                                                                     │
//!  begin ▶ streaming list ──initial-events-end──▶ watching ──closed──▶ watching    │
//!            │ not supported, cut off                ▲   └───────────────error─────┤
//!            ▼                                       │                             │
//!          paged list ───────── last page ───────────┘                          pausing
//! ```
//!
//! It does no IO, reads no clock and draws no randomness; it never lets the revision go back.

use std::time::Duration;

use super::protocol::{Change, Input, Next, Step};
use super::request::{Refusal, Request};
use crate::cache::revision;
use crate::queue::Backoff;

/// How many objects one page of a list has.
const PAGE: u32 = 500;
/// How long a streaming list may be silent before pages are tried instead.
const SILENCE: Duration = Duration::from_secs(10);
/// How long it may take in all. A server that does not know streaming lists may answer with a plain
/// watch, which goes on for ever and never says that the initial events are over.
const STREAMED_WITHIN: Duration = Duration::from_secs(60);
/// After so many streaming lists in a row that were not finished there are pages only.
const UNFINISHED: u32 = 3;
/// A watch that ends earlier has failed, whatever it said: it is not asked for again at once.
const SHORT_LIFE: Duration = Duration::from_secs(5);
/// How long after the server's own time limit a silent watch counts as dead.
const GRACE: Duration = Duration::from_secs(15);
/// How many consistent reads must agree that the server's history is a new, shorter one.
const NEW_HISTORY_AFTER: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is open; the next `Go` lists.
    ToList,
    /// Nothing is open; the next `Go` watches from the known revision.
    ToWatch,
    /// A list by watch; what it says counts once the server has opened it.
    Streaming {
        opened: Option<Duration>,
    },
    Paging {
        first: bool,
    },
    Watching {
        /// When it was opened, or the list before it ended.
        opened: Option<Duration>,
        heard: bool,
        limit: Duration,
    },
}

/// The state of one watch.
#[derive(Debug)]
pub struct Machine {
    state: State,
    backoff: Backoff,
    /// Failures in a row without a watch that lived.
    failures: u32,
    /// What is known to be told; never goes back, except to a new history.
    revision: Option<String>,
    /// Whether the server may know streaming lists.
    streaming: bool,
    /// Streaming lists in a row that were not finished.
    unfinished: u32,
    /// Whether the last streaming list broke: the next list is in pages. If that works, it was the
    /// stream; if it does not, it was the connection, and the one after may stream again.
    broke: bool,
    /// Whether pages may be used; off after a continue token expired, for the one list after it.
    paged: bool,
    /// Whether the next list must be a consistent read instead of "not older than".
    consistent: bool,
    /// Whether the list under way has something that cannot even be named.
    doubtful: bool,
    /// Consistent reads in a row that were older than what is known.
    older_answers: u32,
}

impl Default for Machine {
    fn default() -> Self {
        let backoff = Backoff {
            first: Duration::from_millis(800),
            factor: 2.0,
            max: Duration::from_secs(30),
            jitter: 0.5,
        };
        Self {
            state: State::ToList,
            backoff,
            failures: 0,
            revision: None,
            streaming: true,
            unfinished: 0,
            broke: false,
            paged: true,
            consistent: false,
            doubtful: false,
            older_answers: 0,
        }
    }
}

impl Machine {
    /// One that goes on where another was, of which `told` is known; it lists first.
    pub(super) fn after(told: Option<String>) -> Self {
        Self { revision: told, ..Self::default() }
    }

    /// One step; `now` is the time since any fixed moment, `dice` in `[0, 1)` decides jitter and time
    /// limits.
    pub fn step<O>(&mut self, input: Input<O>, now: Duration, dice: f64) -> Step<O> {
        if self.has_lived(now) && input.is_an_end() {
            self.failures = 0;
        }
        if self.streams_too_long(now) && input.is_a_word() {
            return self.without_streaming();
        }
        match (self.state, input) {
            (State::ToWatch, Input::Go) => self.watch(Vec::new(), dice),
            (_, Input::Go) => self.list(dice),
            (State::Watching { .. }, Input::Undecodable(object)) if object.key.is_none() => {
                // It may have been any object: what is there now only a list can say, and none of
                // before. The watch ends here, as well as one that the server ends.
                if self.has_lived(now) {
                    self.failures = 0;
                }
                self.consistent = true;
                let mut step = self.pause(State::ToList, object.why.clone(), dice);
                step.changes.insert(0, Change::Skipped(object));
                step
            }
            (State::Streaming { .. }, Input::Undecodable(object)) if object.key.is_none() => {
                // Objects have names: the stream has been cut to pieces on its way. What comes in pages
                // comes whole or not at all.
                self.breaks(object.why, dice)
            }
            (_, Input::Undecodable(object)) => {
                // That it cannot be read will not be different when the watch begins again.
                self.heard(&object.revision);
                self.read(vec![Change::Skipped(object)])
            }
            (State::Paging { first }, Input::Page { items, skipped, revision, token }) => {
                self.doubtful |= skipped.iter().any(|object| object.key.is_none());
                let items = items.into_iter().map(Change::Applied);
                let items = items.chain(skipped.into_iter().map(Change::Skipped)).collect();
                self.page(first, items, &revision, token, dice)
            }
            (State::Streaming { .. }, Input::Opened) => {
                self.state = State::Streaming { opened: Some(now) };
                let new_history = self.new_history();
                self.read(vec![Change::Restart { new_history }])
            }
            (State::Watching { limit, .. }, Input::Opened) => {
                self.state = State::Watching { opened: Some(now), heard: false, limit };
                self.read(vec![Change::Watching])
            }
            (_, Input::Applied { object, revision }) => {
                self.heard(&revision);
                self.read(vec![Change::Applied(object)])
            }
            (_, Input::Deleted { object, revision }) => {
                self.heard(&revision);
                self.read(vec![Change::Deleted(object)])
            }
            (
                State::Streaming { opened: Some(_) },
                Input::Bookmark { revision, initial_end: true },
            ) => {
                if let Some(why) = self.refuses(&revision) {
                    return self.pause(State::ToList, why, dice);
                }
                let limit = time_limit(dice);
                self.state = State::Watching { opened: Some(now), heard: false, limit };
                self.unfinished = 0;
                self.synced(&revision);
                self.read(vec![Change::Synced(revision)])
            }
            (State::Watching { .. }, Input::Bookmark { revision, .. }) => {
                self.heard(&revision);
                self.read(vec![Change::Bookmark(revision)])
            }
            (_, Input::Bookmark { .. } | Input::Opened | Input::Page { .. }) => {
                self.read(Vec::new())
            }
            (State::Streaming { .. }, Input::Refused(refusal)) if refusal.is_not_understood() => {
                self.streaming = false;
                self.list(dice)
            }
            (State::Streaming { .. }, Input::Closed | Input::Silent) => self.without_streaming(),
            (State::Streaming { .. }, Input::Broken(why)) => self.breaks(why, dice),
            (State::Paging { first: false }, Input::Refused(refusal)) if refusal.is_gone() => {
                // The continue token has expired; in one piece the list cannot expire.
                self.paged = false;
                self.pages()
            }
            (State::Watching { .. }, Input::Refused(refusal)) => {
                if refusal.is_gone() && self.failures == 0 {
                    self.failures = 1;
                    return self.list(dice);
                }
                let busy = refusal.is_too_many_requests();
                let then = if busy { State::ToWatch } else { State::ToList };
                self.pause_as_told(then, &refusal, dice)
            }
            (State::Watching { opened: Some(_), .. }, Input::Closed) if self.has_lived(now) => {
                // Ended in good order, so everything was told: a sign of life, also where nothing
                // happens and the server knows no bookmarks.
                let told = self.revision.clone().map(Change::Bookmark);
                self.watch(told.into_iter().collect(), dice)
            }
            (State::Watching { opened: Some(_), heard: true, .. }, Input::Closed) => {
                // What it said is known, so the source is well; but it is not to be hammered.
                let mut step = self.pause(State::ToWatch, String::new(), dice);
                step.changes.clear();
                step
            }
            (State::Watching { opened: Some(_), .. }, Input::Closed | Input::Silent) => {
                self.pause(State::ToWatch, "the watch ended without a word".to_owned(), dice)
            }
            (State::Watching { opened: Some(_), .. }, Input::Broken(why)) => {
                self.pause(State::ToWatch, why, dice)
            }
            (_, Input::Refused(refusal)) => {
                self.consistent = true;
                self.pause_as_told(State::ToList, &refusal, dice)
            }
            (_, Input::Broken(why)) => self.pause(State::ToList, why, dice),
            (_, Input::Closed | Input::Silent) => {
                self.pause(State::ToList, "the server did not answer".to_owned(), dice)
            }
        }
    }

    fn page<O>(
        &mut self,
        first: bool,
        items: Vec<Change<O>>,
        revision: &str,
        token: Option<String>,
        dice: f64,
    ) -> Step<O> {
        let mut changes = Vec::with_capacity(items.len() + 2);
        // Every page, not only the first: each may come from another server.
        if let Some(why) = self.refuses(revision) {
            return self.pause(State::ToList, why, dice);
        }
        if first {
            changes.push(Change::Restart { new_history: self.new_history() });
        }
        changes.extend(items);
        if let Some(token) = token {
            self.state = State::Paging { first: false };
            let next =
                Next::Request(Request::Page { since: None, limit: Some(PAGE), token: Some(token) });
            return Step { changes, next };
        }
        changes.push(Change::Synced(revision.to_owned()));
        if self.broke {
            self.not_finished();
        }
        self.synced(revision);
        self.watch(changes, dice)
    }

    fn list<O>(&mut self, dice: f64) -> Step<O> {
        if !self.streaming || self.broke {
            return self.pages();
        }
        self.state = State::Streaming { opened: None };
        let request = Request::StreamingList { since: self.since(), limit: time_limit(dice) };
        Step { changes: Vec::new(), next: Next::Request(request) }
    }

    fn pages<O>(&mut self) -> Step<O> {
        self.state = State::Paging { first: true };
        self.doubtful = false;
        let limit = self.paged.then_some(PAGE);
        let request = Request::Page { since: self.since(), limit, token: None };
        Step { changes: Vec::new(), next: Next::Request(request) }
    }

    /// What a list must not be older than; nothing for a consistent read.
    fn since(&self) -> Option<String> {
        self.revision.clone().filter(|_| !self.consistent)
    }

    fn watch<O>(&mut self, changes: Vec<Change<O>>, dice: f64) -> Step<O> {
        let limit = time_limit(dice);
        self.state = State::Watching { opened: None, heard: false, limit };
        let from = self.revision.clone().unwrap_or_default();
        Step { changes, next: Next::Request(Request::Watch { from, limit }) }
    }

    fn read<O>(&self, changes: Vec<Change<O>>) -> Step<O> {
        let idle = match self.state {
            State::Watching { limit, .. } => limit + GRACE,
            _ => SILENCE,
        };
        Step { changes, next: Next::Read(idle) }
    }

    fn pause<O>(&mut self, then: State, why: String, dice: f64) -> Step<O> {
        let delay = self.backoff.delay(self.failures, dice);
        self.failures = self.failures.saturating_add(1);
        self.state = then;
        self.broke = false;
        // It may have been too much for one piece.
        self.paged = true;
        Step { changes: vec![Change::Pending(why)], next: Next::Wait(delay) }
    }

    /// A streaming list has come to no end; the next one comes in pages.
    fn breaks<O>(&mut self, why: String, dice: f64) -> Step<O> {
        let step = self.pause(State::ToList, why, dice);
        self.broke = true;
        step
    }

    /// Waits at least as long as the server asks for.
    fn pause_as_told<O>(&mut self, then: State, refusal: &Refusal, dice: f64) -> Step<O> {
        let mut step = self.pause(then, refusal.to_string(), dice);
        if let Next::Wait(delay) = &mut step.next {
            *delay = (*delay).max(refusal.retry_after());
        }
        step
    }

    /// This list goes on in pages; the next one may stream again, unless that never works.
    fn without_streaming<O>(&mut self) -> Step<O> {
        self.not_finished();
        self.pages()
    }

    /// A streaming list came to nothing where pages did, or may.
    fn not_finished(&mut self) {
        self.unfinished += 1;
        self.streaming = self.unfinished < UNFINISHED;
        self.broke = false;
    }

    /// Whether there is a watch that has been open for long enough to count.
    fn has_lived(&self, now: Duration) -> bool {
        let State::Watching { opened: Some(opened), .. } = self.state else { return false };
        now.saturating_sub(opened) >= SHORT_LIFE
    }

    /// Whether there is a streaming list whose end will not come any more.
    fn streams_too_long(&self, now: Duration) -> bool {
        let State::Streaming { opened: Some(opened) } = self.state else { return false };
        now.saturating_sub(opened) >= STREAMED_WITHIN
    }

    /// Whether a list of that revision is older than what is known, and not to be believed.
    fn refuses(&mut self, revision: &str) -> Option<String> {
        let known = self.revision.as_deref()?;
        if !revision::is_earlier(revision, known) || self.new_history() {
            return None;
        }
        if self.consistent {
            self.older_answers += 1;
        }
        self.consistent = true;
        Some(format!("the server answers from revision {revision}, which is before {known}"))
    }

    fn new_history(&self) -> bool {
        self.older_answers >= NEW_HISTORY_AFTER
    }

    fn synced(&mut self, revision: &str) {
        self.revision = Some(revision.to_owned());
        // What it left in doubt the next one must not know from before.
        self.consistent = std::mem::take(&mut self.doubtful);
        self.paged = true;
        self.older_answers = 0;
    }

    /// A running watch has told everything up to a revision. A list in progress proves nothing yet.
    fn heard(&mut self, revision: &str) {
        if let State::Watching { heard, .. } = &mut self.state {
            *heard = true;
            let known = self.revision.as_deref().unwrap_or_default();
            if !revision.is_empty() && !revision::is_earlier(revision, known) {
                self.revision = Some(revision.to_owned());
            }
        }
    }
}

/// The server's time limit of a watch: 5 to 10 minutes, so that many watches do not end together.
fn time_limit(dice: f64) -> Duration {
    Duration::from_secs(300) + Duration::from_secs(300).mul_f64(dice.clamp(0.0, 1.0))
}
