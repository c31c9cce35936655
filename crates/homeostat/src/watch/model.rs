//! Machine and store against a model of a server, for any sequence of changes and faults: once nothing
//! goes wrong any more, the store holds what the server holds, and its deltas were exact.
//!
//! A server whose history is replaced is not among the faults: once the new one is as long as the old
//! one was, nobody can tell them apart. `tests` has one that is shorter.

use std::collections::{BTreeMap, VecDeque};
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
    /// Nobody can tell what the next object is that a stream tells of.
    Garble,
}

/// How much of a version can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    All,
    /// Not what it is.
    Name,
    /// Not even whose it is.
    Nothing,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A new version of an object, and how much of it can be read.
    Put(usize, Read),
    /// Its end, which may be as unreadable.
    Delete(usize, Read),
    /// The next thing that a stream says is how far it is.
    Bookmark,
    Compact,
    Pass(u64),
    Next(Fault),
    /// The next list that may be old comes from a server that lags by so many revisions.
    Lag(u64),
}

/// A version of an object.
#[derive(Debug, Clone, Copy)]
struct Version {
    name: usize,
    revision: u64,
    /// The revision with which the object was made: one that is made anew has another uid.
    made: u64,
}

/// By name: the revision, and the one with which it was made.
type Objects = BTreeMap<usize, (u64, u64)>;

struct Server {
    knows_streaming: bool,
    /// What there was at each revision.
    states: Vec<Objects>,
    /// What led to each revision after the first: a version, and whether it is the end.
    log: Vec<(Version, bool)>,
    /// What led to these revisions cannot be read as a whole.
    unreadable: BTreeMap<u64, Read>,
    compacted: u64,
    fault: Option<Fault>,
    bookmark: bool,
    lag: u64,
}

impl Server {
    fn revision(&self) -> u64 {
        self.log.len() as u64
    }

    fn happens(&mut self, name: usize, gone: bool, read: Read) {
        let mut state = self.states.last().cloned().unwrap_or_default();
        let before = state.remove(&name);
        if gone && before.is_none() {
            return;
        }
        let revision = self.revision() + 1;
        let made = before.map_or(revision, |(_, made)| made);
        self.log.push((Version { name, revision, made }, gone));
        if read != Read::All {
            self.unreadable.insert(revision, read);
        }
        if !gone {
            state.insert(name, (revision, made));
        }
        self.states.push(state);
    }

    /// How a watch tells of a version.
    fn tell(&self, object: Version, gone: bool) -> Input<Version> {
        if let Some(read) = self.unreadable.get(&object.revision) {
            return Input::Undecodable(unreadable(object, *read, gone));
        }
        let revision = object.revision.to_string();
        if gone {
            return Input::Deleted { object, revision };
        }
        Input::Applied { object, revision }
    }

    /// What a list shows, and of when it is.
    fn list(&mut self, consistent: bool) -> (u64, Vec<Version>) {
        let lag = if consistent { 0 } else { std::mem::take(&mut self.lag) };
        let at = self.revision().saturating_sub(lag);
        let all = self.states[at as usize].iter();
        let version = |(name, (revision, made)): (&usize, &(u64, u64))| Version {
            name: *name,
            revision: *revision,
            made: *made,
        };
        (at, all.map(version).collect())
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
    /// Whether something nameless came in the list that is under way, or since the last one began.
    doubts: (bool, bool),
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
            Event::Put(name, read) => self.server.happens(name, false, read),
            Event::Delete(name, read) => self.server.happens(name, true, read),
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
                let (skipped, items): (Vec<Version>, _) =
                    left.drain(..size).partition(|version| unread.contains_key(&version.revision));
                let skip = |version: Version| unreadable(version, unread[&version.revision], false);
                let skipped = skipped.into_iter().map(skip);
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
            Some(Fault::Garble) => {
                let said = self.said()?;
                let garbled = said.is_a_word() && !matches!(said, Input::Bookmark { .. });
                return Some(if garbled { Input::Undecodable(nameless()) } else { said });
            }
        }
        self.said()
    }

    fn said(&mut self) -> Option<Input<Version>> {
        if std::mem::take(&mut self.server.bookmark) {
            let revision = self.open.position.to_string();
            return Some(Input::Bookmark { revision, initial_end: false });
        }
        if let Some(said) = self.open.backlog.pop_front() {
            return Some(said);
        }
        let (version, gone) = *self.server.log.get(self.open.position as usize)?;
        if self.open.position < self.server.compacted {
            return Some(refused(410));
        }
        self.open.position += 1;
        Some(self.server.tell(version, gone))
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
                self.doubts.0 = false;
                self.store.begin_list(false);
                Vec::new()
            }
            Change::Applied(version) => {
                let deltas = self.store.apply(entry(version));
                self.watched(version.revision);
                deltas
            }
            Change::Deleted(version) => {
                let delta = self.store.delete(entry(version));
                self.watched(version.revision);
                delta.into_iter().collect()
            }
            Change::Synced(revision) => {
                self.listing = false;
                self.doubts.1 = self.doubts.0;
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
                if object.key.is_none() {
                    self.doubts = (self.doubts.0 || self.listing, true);
                }
                if let Ok(revision) = object.revision.parse() {
                    self.watched(revision);
                }
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
        let made = header.uid.rsplit('-').next().unwrap().parse().unwrap();
        let before = match delta.change {
            EventKind::Deleted => self.told.remove(&name),
            _ => self.told.insert(name, (header.resource_version.parse().unwrap(), made)),
        };
        assert_eq!(before.is_none(), delta.change == EventKind::Added, "{delta:?}");
        assert!(before.is_none_or(|before| before.1 == made), "not the same object: {delta:?}");
    }

    /// The newest version of everything that can be read, an older one of the same object or none of
    /// the rest, which is known to be so; nothing else. What is nameless may be any of them: then
    /// what is no longer there may be kept, and what is there be older than anybody knows.
    fn holds_what_can_be_known(&self) {
        let there = self.server.states.last().cloned().unwrap_or_default();
        for name in 0..NAMES.len() {
            let (newest, told) = (there.get(&name), self.told.get(&name));
            let read = newest.map(|(revision, _)| self.server.unreadable.get(revision));
            let is_unreadable = self.store.is_unreadable(&key(name));
            match read {
                Some(Some(Read::Nothing)) => assert!(told < newest, "{name}"),
                Some(Some(_)) => {
                    let made = |version: &(u64, u64)| version.1;
                    assert!(is_unreadable && told < newest, "{name}");
                    assert!(told.is_none() || told.map(made) == newest.map(made), "{name}");
                }
                None if self.doubts.1 => {}
                Some(None) | None => assert_eq!((told, is_unreadable), (newest, false), "{name}"),
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

fn unreadable(version: Version, read: Read, gone: bool) -> Unreadable {
    let (key, why) = (key(version.name), "a script says so".to_owned());
    let (uid, revision) = (uid(version), version.revision.to_string());
    match read {
        Read::All | Read::Name => Unreadable { key: Some(key), uid, revision, gone, why },
        Read::Nothing => Unreadable { gone, ..nameless() },
    }
}

fn nameless() -> Unreadable {
    let (uid, revision, why) = (String::new(), String::new(), "a script says so".to_owned());
    Unreadable { key: None, uid, revision, gone: false, why }
}

fn uid(Version { name, made, .. }: Version) -> String {
    format!("uid-{}-{made}", NAMES[name])
}

fn key(name: usize) -> Key {
    Key::namespaced("default", NAMES[name])
}

fn entry(version: Version) -> Entry {
    let mut object = object(NAMES[version.name], version.revision);
    object["metadata"]["uid"] = uid(version).into();
    Entry::parse(&Kind::of::<ConfigMap>(), &object.to_string(), false).unwrap()
}

/// Two times of three all of it.
fn read() -> impl Strategy<Value = Read> {
    prop_oneof![12 => Just(Read::All), 5 => Just(Read::Name), 1 => Just(Read::Nothing)]
}

fn event() -> impl Strategy<Value = Event> {
    let fault = prop_oneof![
        select(vec![400, 403, 410, 429, 500, 504]).prop_map(Fault::Refuse),
        select(vec![1, 20, 90]).prop_map(Fault::Busy),
        select(vec![Fault::Break, Fault::Close, Fault::Silence, Fault::Garble]),
    ];
    prop_oneof![
        4 => (0..NAMES.len(), read()).prop_map(|(name, read)| Event::Put(name, read)),
        2 => (0..NAMES.len(), read()).prop_map(|(name, read)| Event::Delete(name, read)),
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
            unreadable: BTreeMap::new(),
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
            doubts: (false, false),
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
