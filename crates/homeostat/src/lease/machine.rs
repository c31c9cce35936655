//! The leader lease as a pure state machine: `state × event × now → state × action`.
//!
//! ```text
//!             found free or expired, written               no renewal within the deadline,
//!  following ───────────────────────────────▶ leading ──── or somebody else holds it ────▶ following
//!      │ stop                                    │ stop
//!      ▼                                         ▼
//!    ended ◀──────────── written ─────────── releasing
//! ```
//!
//! `now` is a local, monotonic time; the times in the record are for people and are never compared
//! with a clock, so that skewed clocks do no harm. Somebody else's lease has expired when its
//! record has not *changed* for its duration, as seen from here. Our own is counted from the moment
//! before a write was sent, so it ends here before it can end anywhere else.

use std::time::Duration;

/// How a lease is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Who holds it: unique for every process that ever runs.
    pub identity: String,
    /// After so long without a change others may take it; 15 s by default.
    pub duration: Duration,
    /// After so long without a renewal the holder gives up; 10 s by default, less than `duration`.
    pub deadline: Duration,
    /// How often it is renewed or looked at; 2 s by default, less than `deadline`.
    pub retry: Duration,
}

/// The lease as the API has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The holder; empty when it was given back.
    pub holder: String,
    /// After so long without a change it has expired.
    pub duration: Duration,
    /// How often it changed hands.
    pub transitions: i32,
    /// The version of the object, for compare and swap.
    pub version: String,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The start, or the end of a wait.
    Go,
    /// The answer to [`Action::Read`]; `None` when there is no lease yet.
    Found(Option<Record>),
    /// The answer to [`Action::Write`]: it is done, and this is the new version.
    Written(String),
    /// The write was refused, because the lease is not the version it was meant for.
    Conflict,
    /// No answer, or a bad one: whether it was done is not known.
    Failed,
    /// The server has no time and did nothing; it is to be left alone for so long.
    Busy(Duration),
    /// Give it back and end.
    Stop,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read the lease.
    Read,
    /// Write the lease over that version; with none, create it.
    Write {
        /// The version to replace.
        over: Option<String>,
        /// The holder to write; empty to give it back.
        holder: String,
        /// After so long without a change it has expired.
        duration: Duration,
        /// How often it changed hands.
        transitions: i32,
        /// Whether this begins a term.
        acquires: bool,
    },
    /// Come back with [`Event::Go`] after so long.
    Wait(Duration),
    /// There is nothing more to do.
    End,
}

/// The lease as it was last seen to change, and when.
#[derive(Debug, Clone)]
struct Seen {
    record: Record,
    since: Duration,
}

#[derive(Debug)]
enum State {
    Following,
    Leading { renewed: Duration },
    Releasing,
    Ended,
}

/// The state of one contender.
#[derive(Debug)]
pub struct Machine {
    terms: Terms,
    state: State,
    seen: Option<Seen>,
    /// When the write whose answer is awaited was sent, and how often the lease has changed hands
    /// if it succeeds.
    sent: Option<(Duration, i32)>,
    /// Whether others are not given precedence.
    ready: bool,
    /// Since when nobody holds the lease.
    vacant: Option<Duration>,
    /// Since when there is no lease where one was seen.
    missing: Option<Duration>,
}

impl Machine {
    /// A contender that has looked at nothing yet.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        let (seen, sent, vacant, missing) = (None, None, None, None);
        Self { terms, state: State::Following, seen, sent, ready: true, vacant, missing }
    }

    /// Gives precedence to others from now on, or no longer. Who is not ready takes the lease only
    /// when nobody has held it for a whole duration: whoever is ready is quicker than that, and if
    /// there is nobody, half of the work done is better than none. A leader stays one.
    pub fn set_ready(&mut self, ready: bool) {
        self.ready = ready;
    }

    /// Until when, in local time, the lease is ours; `None` while it is not.
    #[must_use]
    pub fn leads_until(&self) -> Option<Duration> {
        match self.state {
            State::Leading { renewed } => Some(renewed + self.terms.deadline),
            _ => None,
        }
    }

    /// Whether somebody else holds the lease, as far as is known here.
    #[must_use]
    pub fn is_anothers(&self, now: Duration) -> bool {
        self.seen.as_ref().is_some_and(|Seen { record, since }| {
            let has_holder = !record.holder.is_empty() && !self.is_ours(record);
            has_holder && *since + record.duration > now
        })
    }

    /// One step; `dice` in `[0, 1)` spreads the attempts of several followers.
    #[expect(clippy::match_same_arms, reason = "a table of state and event, row by row")]
    pub fn step(&mut self, event: Event, now: Duration, dice: f64) -> Action {
        if self.leads_until().is_some_and(|until| until <= now) {
            self.state = State::Following;
        }
        let sent = self.sent.take();
        match (&self.state, event) {
            (State::Ended, _) => Action::End,
            (State::Following, Event::Stop) => self.end(),
            (State::Leading { .. }, Event::Stop) => {
                self.state = State::Releasing;
                self.write(now)
            }
            (State::Releasing, Event::Conflict) => Action::Read,
            (State::Releasing, Event::Found(Some(record))) if self.is_ours(&record) => {
                self.see(record, now);
                self.write(now)
            }
            (State::Releasing, _) => self.end(),
            (State::Following, Event::Go) => Action::Read,
            (State::Leading { .. }, Event::Go) => self.write(now),
            (_, Event::Found(None)) => self.found_none(now, dice),
            (_, Event::Found(Some(record))) => self.found(record, now, dice),
            (_, Event::Written(version)) => self.written(version, sent, now),
            (State::Leading { .. }, Event::Conflict) => Action::Read,
            // If it was done after all, the next write meets a conflict and reads.
            (State::Leading { .. }, Event::Failed) => Action::Wait(self.terms.retry / 2),
            (State::Following, Event::Conflict | Event::Failed) => self.pause(dice),
            // A renewal that comes earlier would be turned away, too.
            (_, Event::Busy(told)) => Action::Wait(self.terms.retry.mul_f64(0.5 + dice).max(told)),
        }
    }

    fn found(&mut self, record: Record, now: Duration, dice: f64) -> Action {
        let (ours, free) = (self.is_ours(&record), record.holder.is_empty());
        self.see(record, now);
        if matches!(self.state, State::Leading { .. }) && !ours {
            self.state = State::Following;
        }
        let expires = self.seen.as_ref().map_or(now, |seen| seen.since + seen.record.duration);
        if ours {
            return self.write(now);
        }
        if free || expires <= now {
            return self.take(now, dice);
        }
        self.vacant = None;
        self.pause_until(expires, now, dice)
    }

    /// There is no lease. Who has seen one gives its holder the time to make it anew: a leader that
    /// has not noticed yet still leads. A leader does so at once.
    fn found_none(&mut self, now: Duration, dice: f64) -> Action {
        let follows = matches!(self.state, State::Following);
        if let Some(seen) = self.seen.as_ref().filter(|_| follows) {
            let lasts = seen.record.duration.max(self.terms.duration);
            let turn = *self.missing.get_or_insert(now) + lasts;
            if now < turn {
                return self.pause_until(turn, now, dice);
            }
        }
        self.seen = None;
        self.take(now, dice)
    }

    /// Takes a lease that nobody holds, as soon as it is our turn.
    fn take(&mut self, now: Duration, dice: f64) -> Action {
        let since = *self.vacant.get_or_insert(now);
        let turn = since + if self.ready { Duration::ZERO } else { self.terms.duration };
        if turn <= now || !matches!(self.state, State::Following) {
            return self.write(now);
        }
        self.pause_until(turn, now, dice)
    }

    fn written(&mut self, version: String, sent: Option<(Duration, i32)>, now: Duration) -> Action {
        let Some((sent, transitions)) = sent else { return Action::Read };
        let (holder, duration) = (self.terms.identity.clone(), self.terms.duration);
        self.see(Record { holder, duration, transitions, version }, now);
        self.state = State::Leading { renewed: sent };
        self.vacant = None;
        if self.leads_until().is_some_and(|until| until <= now) {
            // The answer took so long that it says nothing about now.
            self.state = State::Following;
        }
        Action::Wait(self.terms.retry)
    }

    /// Writes the lease as ours, or as nobody's when it is being given back.
    fn write(&mut self, now: Duration) -> Action {
        let seen = self.seen.as_ref().map(|seen| &seen.record);
        let acquires = seen.is_none_or(|seen| !self.is_ours(seen));
        let transitions = match seen {
            Some(seen) if acquires => seen.transitions.saturating_add(1),
            Some(seen) => seen.transitions,
            None => 0,
        };
        let over = seen.map(|seen| seen.version.clone());
        if matches!(self.state, State::Releasing) {
            // A short duration, as others do it: whoever compares times takes it soon.
            let duration = Duration::from_secs(1);
            return Action::Write {
                over,
                holder: String::new(),
                duration,
                transitions,
                acquires: false,
            };
        }
        self.sent = Some((now, transitions));
        let (holder, duration) = (self.terms.identity.clone(), self.terms.duration);
        Action::Write { over, holder, duration, transitions, acquires }
    }

    fn see(&mut self, record: Record, now: Duration) {
        let known = self.seen.as_ref().filter(|seen| seen.record == record);
        let since = known.map_or(now, |seen| seen.since);
        (self.seen, self.missing) = (Some(Seen { record, since }), None);
    }

    fn pause(&self, dice: f64) -> Action {
        Action::Wait(self.terms.retry.mul_f64(1.0 + 0.5 * dice.clamp(0.0, 1.0)))
    }

    /// A pause that does not outlast that moment.
    fn pause_until(&self, end: Duration, now: Duration, dice: f64) -> Action {
        let Action::Wait(pause) = self.pause(dice) else { return Action::Read };
        Action::Wait(pause.min(end.saturating_sub(now)).max(Duration::from_millis(1)))
    }

    fn is_ours(&self, record: &Record) -> bool {
        record.holder == self.terms.identity
    }

    fn end(&mut self) -> Action {
        self.state = State::Ended;
        Action::End
    }
}
