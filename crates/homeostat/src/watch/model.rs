//! Machine and store against a model of a server, for any sequence of changes and faults: once nothing
//! goes wrong any more, the store holds what the server holds, and its deltas were exact.
//!
//! A server whose history is replaced is not among the faults: once the new one is as long as the old
//! one was, nobody can tell them apart. `tests` has one that is shorter.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use proptest::test_runner::Config;

use super::script::object;
use super::{Change, Details, Input, Machine, Next, Refusal, Request, Unreadable};
use crate::cache::{Delta, Entry, Store};
use crate::trigger::EventKind;
use crate::{Key, Kind};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
/// How many objects the model puts into a page.
const PAGE: usize = 2;
/// So many requests may follow each other at one moment: a watch that is refused, a list that is not
/// streamed after all, in pages, one of which is too old.
const AT_ONCE: u32 = 12;

#[derive(Debug, Clone, Copy)]
enum Fault {
    Refuse(u16),
    /// Refused, for so many seconds.
    Busy(u32),
    Break,
    Close,
    Silence,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A new version of an object; whether it can be read.
    Put(usize, bool),
    /// Its end, which may be as unreadable.
    Delete(usize, bool),
    /// The next thing that a stream says is how far it is.
    Bookmark,
    Compact,
    Pass(u64),
    Next(Fault),
    /// The next list that may be old comes from a server that lags by so many revisions.
    Lag(u64),
}

/// An object: its name and its revision.
type Version = (usize, u64);
type Objects = BTreeMap<usize, u64>;

struct Server {
    knows_streaming: bool,
    /// What there was at each revision.
    states: Vec<Objects>,
    /// What led to each revision after the first: an object, and whether it went.
    log: Vec<(usize, bool)>,
    /// What led to these revisions cannot be read.
    unreadable: BTreeSet<u64>,
    compacted: u64,
    fault: Option<Fault>,
    bookmark: bool,
    lag: u64,
}

impl Server {
    fn revision(&self) -> u64 {
        self.log.len() as u64
    }

    fn happens(&mut self, name: usize, gone: bool, readable: bool) {
        let mut state = self.states.last().cloned().unwrap_or_default();
        let was_there = state.remove(&name).is_some();
        if gone && !was_there {
            return;
        }
        self.log.push((name, gone));
        if !readable {
            self.unreadable.insert(self.revision());
        }
        if !gone {
            state.insert(name, self.revision());
        }
        self.states.push(state);
    }

    /// How a watch tells of a revision.
    fn tell(&self, (name, revision): Version, gone: bool) -> Input<Version> {
        if self.unreadable.contains(&revision) {
            return Input::Undecodable(unreadable((name, revision), gone));
        }
        let (object, revision) = ((name, revision), revision.to_string());
        if gone {
            return Input::Deleted { object, revision };
        }
        Input::Applied { object, revision }
    }

    /// What a list shows, and of when it is.
    fn list(&mut self, consistent: bool) -> (u64, Vec<Version>) {
        let lag = if consistent { 0 } else { std::mem::take(&mut self.lag) };
        let at = self.revision().saturating_sub(lag);
        (at, self.states[at as usize].iter().map(|(name, revision)| (*name, *revision)).collect())
    }
}

/// What is open between the two.
#[derive(Default)]
struct Open {
    backlog: VecDeque<Input<Version>>,
    /// Everything up to here was sent.
    position: u64,
    pages: (u64, Vec<Version>),
}

struct World {
    server: Server,
    open: Open,
    machine: Machine,
    now: Duration,
    store: Store,
    /// The deltas, put together again.
    told: Objects,
    listing: bool,
    /// What was told is complete up to here.
    floor: u64,
    requests_at_once: u32,
    /// How long the server wants to be left alone.
    busy: Duration,
}

impl World {
    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.requests_at_once = 0;
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Put(name, readable) => self.server.happens(name, false, readable),
            Event::Delete(name, readable) => self.server.happens(name, true, readable),
            Event::Bookmark => self.server.bookmark = true,
            Event::Compact => self.server.compacted = self.server.revision(),
            Event::Pass(seconds) => self.pass(Duration::from_secs(seconds)),
            Event::Next(fault) => self.server.fault = Some(fault),
            Event::Lag(lag) => self.server.lag = lag,
        }
    }

    fn answer(&mut self, request: Request) -> Input<Version> {
        self.requests_at_once += 1;
        assert!(self.requests_at_once <= AT_ONCE, "the server is hammered");
        assert!(self.busy.is_zero(), "the server is not left alone");
        match self.server.fault.take() {
            None => {}
            Some(Fault::Refuse(code)) => return refused(code),
            Some(Fault::Busy(seconds)) => return self.busy(seconds),
            Some(_) => return Input::Broken("no connection".to_owned()),
        }
        match request {
            Request::StreamingList { .. } if !self.server.knows_streaming => refused(400),
            Request::StreamingList { since, .. } => {
                let (at, items) = self.server.list(since.is_none());
                let put = |version| self.server.tell(version, false);
                let end = Input::Bookmark { revision: at.to_string(), initial_end: true };
                let backlog = items.into_iter().map(put).chain([end]).collect();
                self.open = Open { backlog, position: at, pages: (0, Vec::new()) };
                Input::Opened
            }
            Request::Page { token: Some(_), .. } if self.open.pages.0 < self.server.compacted => {
                refused(410)
            }
            Request::Page { since, limit, token } => {
                if token.is_none() {
                    self.open.pages = self.server.list(since.is_none());
                }
                let (at, left) = &mut self.open.pages;
                let size = limit.map_or(left.len(), |_| PAGE.min(left.len()));
                let unread = &self.server.unreadable;
                let (skipped, items): (Vec<_>, _) =
                    left.drain(..size).partition(|(_, revision)| unread.contains(revision));
                let skipped = skipped.into_iter().map(|version| unreadable(version, false));
                let token = (!left.is_empty()).then(|| "more".to_owned());
                Input::Page { items, skipped: skipped.collect(), revision: at.to_string(), token }
            }
            Request::Watch { from, .. } => {
                let position = from.parse().unwrap();
                assert!(position >= self.floor, "back from {} to {position}", self.floor);
                if position < self.server.compacted {
                    return refused(410);
                }
                self.open = Open { position, ..Open::default() };
                Input::Opened
            }
        }
    }

    /// The next thing that an open stream says; nothing if there is nothing to say.
    fn read(&mut self, idle: Duration) -> Option<Input<Version>> {
        match self.server.fault.take() {
            None => {}
            Some(Fault::Refuse(code)) => return Some(refused(code)),
            Some(Fault::Busy(seconds)) => return Some(self.busy(seconds)),
            Some(Fault::Break) => return Some(Input::Broken("cut".to_owned())),
            Some(Fault::Close) => return Some(Input::Closed),
            Some(Fault::Silence) => {
                self.pass(idle);
                return Some(Input::Silent);
            }
        }
        if std::mem::take(&mut self.server.bookmark) {
            let revision = self.open.position.to_string();
            return Some(Input::Bookmark { revision, initial_end: false });
        }
        if let Some(said) = self.open.backlog.pop_front() {
            return Some(said);
        }
        let (name, gone) = *self.server.log.get(self.open.position as usize)?;
        if self.open.position < self.server.compacted {
            return Some(refused(410));
        }
        self.open.position += 1;
        Some(self.server.tell((name, self.open.position), gone))
    }

    fn busy(&mut self, seconds: u32) -> Input<Version> {
        self.busy = Duration::from_secs(seconds.into());
        let details = Details { retry_after_seconds: seconds };
        Input::Refused(Refusal { code: 429, details, ..Refusal::default() })
    }

    /// What the informer does with a change.
    fn take(&mut self, change: Change<Version>) {
        let deltas = match change {
            Change::Restart { new_history } => {
                assert!(!new_history, "there is only one");
                self.listing = true;
                self.store.begin_list(false);
                Vec::new()
            }
            Change::Applied(version) => {
                let deltas = self.store.apply(entry(version));
                self.watched(version.1);
                deltas
            }
            Change::Deleted(version) => {
                let delta = self.store.delete(entry(version));
                self.watched(version.1);
                delta.into_iter().collect()
            }
            Change::Synced(revision) => {
                self.listing = false;
                let deltas = self.store.end_list(&revision);
                let revision = revision.parse().unwrap();
                assert!(revision >= self.floor, "the list is older than what was told");
                self.watched(revision);
                deltas
            }
            Change::Bookmark(revision) => {
                self.watched(revision.parse().unwrap());
                Vec::new()
            }
            Change::Skipped(object) => {
                let delta = self.store.skip(&object);
                self.watched(object.revision.parse().unwrap());
                delta.into_iter().collect()
            }
            Change::Watching | Change::Pending(_) => Vec::new(),
        };
        deltas.into_iter().for_each(|delta| self.tell(&delta));
    }

    fn watched(&mut self, revision: u64) {
        self.store.watched(&revision.to_string());
        if !self.listing {
            self.floor = self.floor.max(revision);
        }
    }

    fn tell(&mut self, delta: &Delta) {
        let header = &delta.object().header;
        let name = NAMES.iter().position(|name| **name == *header.key.name()).unwrap();
        let before = match delta.change {
            EventKind::Deleted => self.told.remove(&name),
            _ => self.told.insert(name, header.resource_version.parse().unwrap()),
        };
        assert_eq!(before.is_none(), delta.change == EventKind::Added, "{delta:?}");
    }

    /// The newest version of everything that can be read, an older one or none of the rest, which
    /// is known to be so; nothing else.
    fn holds_what_can_be_known(&self) {
        let there = self.server.states.last().cloned().unwrap_or_default();
        let unread = |revision: &u64| self.server.unreadable.contains(revision);
        for name in 0..NAMES.len() {
            let (newest, told) = (there.get(&name), self.told.get(&name));
            assert_eq!(self.store.is_unreadable(&key(name)), newest.is_some_and(unread), "{name}");
            match newest {
                Some(newest) if unread(newest) => assert!(told < Some(newest), "{name}"),
                newest => assert_eq!(told, newest, "{name}"),
            }
        }
    }

    /// One step of the machine; nothing if it waits for something that does not come.
    fn step(&mut self, input: Input<Version>) -> Option<Input<Version>> {
        let step = self.machine.step(input, self.now, 0.5);
        step.changes.into_iter().for_each(|change| self.take(change));
        match step.next {
            Next::Wait(delay) => {
                let told = std::mem::take(&mut self.busy);
                assert!(!delay.is_zero() && delay >= told);
                assert!(delay <= told.max(Duration::from_secs(30)));
                self.pass(delay);
                Some(Input::Go)
            }
            Next::Request(request) => Some(self.answer(request)),
            Next::Read(idle) => self.read(idle),
        }
    }
}

fn refused(code: u16) -> Input<Version> {
    Input::Refused(Refusal { code, ..Refusal::default() })
}

fn unreadable((name, revision): Version, gone: bool) -> Unreadable {
    let (uid, revision) = (format!("uid-{}", NAMES[name]), revision.to_string());
    Unreadable { key: Some(key(name)), uid, revision, gone, why: "a script says so".to_owned() }
}

fn key(name: usize) -> Key {
    Key::namespaced("default", NAMES[name])
}

fn entry((name, revision): Version) -> Entry {
    let kind = Kind::of::<ConfigMap>();
    Entry::parse(&kind, &object(NAMES[name], revision).to_string(), false).unwrap()
}

/// Two times of three.
fn mostly() -> impl Strategy<Value = bool> {
    select(vec![true, true, false])
}

fn event() -> impl Strategy<Value = Event> {
    let fault = prop_oneof![
        select(vec![400, 403, 410, 429, 500, 504]).prop_map(Fault::Refuse),
        select(vec![1, 20, 90]).prop_map(Fault::Busy),
        select(vec![Fault::Break, Fault::Close, Fault::Silence]),
    ];
    prop_oneof![
        4 => (0..NAMES.len(), mostly()).prop_map(|(name, readable)| Event::Put(name, readable)),
        2 => (0..NAMES.len(), mostly()).prop_map(|(name, readable)| Event::Delete(name, readable)),
        1 => Just(Event::Bookmark),
        1 => Just(Event::Compact),
        2 => select(vec![1, 7, 70]).prop_map(Event::Pass),
        4 => fault.prop_map(Event::Next),
        1 => (1..4_u64).prop_map(Event::Lag),
    ]
}

proptest! {
    #![proptest_config(Config { cases: 10_000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn whatever_goes_wrong_the_store_ends_as_the_server_and_never_goes_back(
        knows_streaming in any::<bool>(),
        // Each after so many steps of the machine, or as soon as it has nothing to do.
        events in proptest::collection::vec((0..6_u8, event()), 1..40),
    ) {
        let server = Server {
            knows_streaming,
            states: vec![Objects::new()],
            log: Vec::new(),
            unreadable: BTreeSet::new(),
            compacted: 0,
            fault: None,
            bookmark: false,
            lag: 0,
        };
        let mut world = World {
            server,
            open: Open::default(),
            machine: Machine::default(),
            now: Duration::ZERO,
            store: Store::default(),
            told: Objects::new(),
            listing: true,
            floor: 0,
            requests_at_once: 0,
            busy: Duration::ZERO,
        };
        let mut input = Some(Input::Go);
        for (steps, event) in events {
            for _ in 0..steps {
                input = match input {
                    Some(input) => world.step(input),
                    None => break,
                };
            }
            world.happens(event);
            input = input.or_else(|| world.read(Duration::from_secs(600)));
        }
        (world.server.fault, world.server.lag) = (None, 0);
        input = input.or_else(|| world.read(Duration::from_secs(600)));
        for _ in 0..300 {
            let Some(next) = input else { break };
            input = world.step(next);
        }
        assert!(input.is_none(), "it does not come to rest");
        world.holds_what_can_be_known();
        assert_eq!(world.store.len(), world.told.len());
        assert!(world.store.revision().is_some(), "the first list has ended");
    }
}
