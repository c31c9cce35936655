//! Which notes become events: repeats are one series, a chatty object is held back.
//!
//! Pure: a note and a time in, what to send out. It knows nothing of the API.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;

use super::{EventType, Note};

/// Repeats further apart than this are a new event.
const SERIES_IDLE: Duration = Duration::from_secs(6 * 60);
/// How many writes an object may cause at once.
const BURST: u32 = 25;
/// One more write is allowed after this long.
const REFILL: Duration = Duration::from_secs(5 * 60);
/// How many objects and how many series are remembered; the longest unused go first.
const REMEMBERED: usize = 4096;

/// What makes two notes the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    controller: String,
    object: Subject,
    related: Option<Subject>,
    kind: EventType,
    reason: String,
    action: String,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Subject(Option<String>, Option<String>, Option<String>, Option<String>);

#[derive(Debug)]
struct Series {
    note: Note,
    name: String,
    count: i32,
    last: Timestamp,
    sent: i32,
}

#[derive(Debug)]
struct Bucket {
    tokens: u32,
    refilled: Timestamp,
}

/// An event that was seen `count` times, which is more than was written.
#[derive(Debug, PartialEq)]
pub(super) struct Held {
    pub(super) note: Note,
    pub(super) name: String,
    pub(super) count: i32,
    pub(super) last: Timestamp,
}

/// What to do with a note.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Write a new event of that name.
    Create { name: String },
    /// It happened before: the event of that name has been seen `count` times.
    Repeat { name: String, count: i32 },
    /// Nothing is written now: the object has been too chatty. It is counted, and told later.
    Hold,
    /// The object has been too chatty to begin something new.
    Drop,
}

/// What has been written lately.
#[derive(Debug, Default)]
pub(super) struct Correlator {
    series: BTreeMap<Identity, Series>,
    buckets: BTreeMap<Subject, Bucket>,
    /// When the first of the counts that were held back may be told.
    tell_at: Option<Timestamp>,
}

impl Correlator {
    /// Decides about `note`; `name` is the name a new event would get.
    pub(super) fn observe(&mut self, note: &Note, name: String, now: Timestamp) -> Action {
        let object = Subject::of(&note.regarding);
        let (allowed, next) = self.take_token(&object, now);
        let identity = Identity {
            controller: note.controller.clone(),
            object,
            related: note.related.as_ref().map(Subject::of),
            kind: note.kind,
            reason: note.reason.clone(),
            action: note.action.clone(),
            text: note.text.clone(),
        };
        let known = self.series.get_mut(&identity).filter(|s| age(s.last, now) <= SERIES_IDLE);
        if let Some(series) = known {
            series.count = series.count.saturating_add(1);
            series.last = now;
            if !allowed {
                self.tell_at = Some(self.tell_at.map_or(next, |tell_at| tell_at.min(next)));
                return Action::Hold;
            }
            series.sent = series.count;
            return Action::Repeat { name: series.name.clone(), count: series.count };
        }
        if !allowed {
            return Action::Drop;
        }
        let series =
            Series { note: note.clone(), name: name.clone(), count: 1, last: now, sent: 1 };
        self.series.insert(identity, series);
        forget_oldest(&mut self.series, |series| series.last);
        Action::Create { name }
    }

    /// When [`Self::due`] has something to tell; `None` while nothing is held back.
    pub(super) fn tell_at(&self) -> Option<Timestamp> {
        self.tell_at
    }

    /// The counts that were held back and may be told now.
    pub(super) fn due(&mut self, now: Timestamp) -> Vec<Held> {
        self.tell_at = None;
        let mut due = Vec::new();
        for (identity, series) in self.series.iter_mut().filter(|(_, series)| series.is_behind()) {
            let bucket = self.buckets.entry(identity.object.clone());
            let bucket = bucket.or_insert_with(|| Bucket::full(now));
            if bucket.take(now) {
                due.push(series.tell());
            } else {
                let next = bucket.next();
                self.tell_at = Some(self.tell_at.map_or(next, |tell_at| tell_at.min(next)));
            }
        }
        due
    }

    /// All counts that were held back.
    pub(super) fn unsent(&mut self) -> Vec<Held> {
        let behind = self.series.values_mut().filter(|series| series.is_behind());
        behind.map(Series::tell).collect()
    }

    /// Whether the object may cause a write, and if not, when it next may.
    fn take_token(&mut self, object: &Subject, now: Timestamp) -> (bool, Timestamp) {
        let bucket = self.buckets.entry(object.clone()).or_insert_with(|| Bucket::full(now));
        let taken = (bucket.take(now), bucket.next());
        forget_oldest(&mut self.buckets, |bucket| bucket.refilled);
        taken
    }
}

impl Subject {
    fn of(object: &ObjectReference) -> Self {
        let ObjectReference { kind, namespace, name, uid, .. } = object;
        Self(kind.clone(), namespace.clone(), name.clone(), uid.clone())
    }
}

impl Series {
    fn is_behind(&self) -> bool {
        self.sent < self.count
    }

    fn tell(&mut self) -> Held {
        self.sent = self.count;
        Held {
            note: self.note.clone(),
            name: self.name.clone(),
            count: self.count,
            last: self.last,
        }
    }
}

impl Bucket {
    fn full(now: Timestamp) -> Self {
        Self { tokens: BURST, refilled: now }
    }

    fn take(&mut self, now: Timestamp) -> bool {
        let earned = age(self.refilled, now).as_secs() / REFILL.as_secs();
        if earned > 0 {
            let tokens = u64::from(self.tokens) + earned;
            self.tokens = u32::try_from(tokens).unwrap_or(BURST).min(BURST);
            self.refilled = now;
        }
        let allowed = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        allowed
    }

    /// When there is one more.
    fn next(&self) -> Timestamp {
        self.refilled.saturating_add(REFILL).unwrap_or(Timestamp::MAX)
    }
}

fn age(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or_default()
}

fn forget_oldest<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, last: impl Fn(&V) -> Timestamp) {
    if map.len() > REMEMBERED
        && let Some(oldest) = map.iter().min_by_key(|(_, v)| last(v)).map(|(k, _)| k.clone())
    {
        map.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(text: &str) -> Note {
        Note {
            controller: "at".to_owned(),
            regarding: ObjectReference { name: Some("x".to_owned()), ..Default::default() },
            related: None,
            kind: EventType::Normal,
            reason: "Started".to_owned(),
            action: "Started".to_owned(),
            text: text.to_owned(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_repeat_is_counted_and_a_late_one_is_new() {
        let mut correlator = Correlator::default();
        let mut see = |name: &str, second| correlator.observe(&note("hi"), name.into(), at(second));
        assert_eq!(see("a", 0), Action::Create { name: "a".into() });
        assert_eq!(see("b", 1), Action::Repeat { name: "a".into(), count: 2 });
        assert_eq!(see("c", 1000), Action::Create { name: "c".into() });
    }

    #[test]
    fn what_another_object_has_a_part_in_is_another_event() {
        let mut correlator = Correlator::default();
        let other = ObjectReference { name: Some("y".to_owned()), ..Default::default() };
        let related = Note { related: Some(other), ..note("hi") };
        let action = Note { action: "Stopping".to_owned(), ..note("hi") };
        for (one, name) in [(note("hi"), "a"), (related, "b"), (action, "c")] {
            let seen = correlator.observe(&one, name.into(), at(0));
            assert_eq!(seen, Action::Create { name: name.into() });
        }
    }

    #[test]
    fn a_chatty_object_is_held_back_and_its_count_is_not_lost() {
        let mut correlator = Correlator::default();
        for _ in 0..25 {
            assert_ne!(correlator.observe(&note("hi"), "a".into(), at(0)), Action::Hold);
        }
        assert_eq!(correlator.observe(&note("hi"), "b".into(), at(1)), Action::Hold);
        assert_eq!(correlator.observe(&note("new"), "c".into(), at(1)), Action::Drop);
        let held = || [Held { note: note("hi"), name: "a".to_owned(), count: 26, last: at(1) }];
        assert_eq!(correlator.unsent(), held());
        assert_eq!(correlator.unsent(), []);
        assert_ne!(correlator.observe(&note("new"), "d".into(), at(301)), Action::Drop);
    }

    #[test]
    fn what_was_held_back_is_told_as_soon_as_it_may_be() {
        let mut correlator = Correlator::default();
        for _ in 0..26 {
            correlator.observe(&note("hi"), "a".into(), at(0));
        }
        assert_eq!(correlator.tell_at(), Some(at(300)));
        assert_eq!(correlator.due(at(299)), []);
        assert_eq!(correlator.tell_at(), Some(at(300)), "not yet");
        let held = Held { note: note("hi"), name: "a".to_owned(), count: 26, last: at(0) };
        assert_eq!(correlator.due(at(300)), [held]);
        assert_eq!((correlator.tell_at(), correlator.due(at(900))), (None, Vec::new()));
    }
}
