//! A disk for tests that keeps only what was synced, and can be switched off at any moment.
//!
//! What was written and not synced is lost when the power goes, or is there, or part of it is: each
//! sector by itself, whatever the order it was written in, and the length of the file too. Names
//! that were made, moved or removed are durable when their directory was synced; before that any of
//! them may be. A sync that fails leaves what was written readable, and never makes it durable. It
//! believes in two things that disks promise: a sector is written whole or not at all, and what was
//! synced stays.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use homeostat_env::Env;

use super::{Disk, DiskFile, Opening};

const SECTOR: u64 = 512;
/// As long as what is written ahead at once.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
const ROOT: usize = 0;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The power goes: nothing works until [`LossyDisk::restart`].
    PowerLoss,
    /// The process ends: nothing works for it, and what it wrote is there for the next one.
    Kill,
    /// One call fails.
    Fault,
}

/// The disk; clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct LossyDisk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Files and directories; the first is the root.
    nodes: Vec<Node>,
    /// What put an end to all calls.
    over: Option<Trouble>,
    /// After so many calls that change something.
    trouble: Option<(u64, Trouble)>,
}

#[derive(Debug)]
enum Node {
    File(Content),
    Directory(Names),
}

#[derive(Debug, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// What was done since the last sync.
    pending: Vec<Edit>,
}

#[derive(Debug, Clone)]
enum Edit {
    Write { at: u64, bytes: Vec<u8> },
    Length(u64),
}

#[derive(Debug, Default)]
struct Names {
    now: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    pending: Vec<Naming>,
}

#[derive(Debug, Clone)]
enum Naming {
    Make(String, usize),
    Remove(String),
    Move(String, String, usize),
}

impl LossyDisk {
    /// An empty disk.
    pub(crate) fn new() -> Self {
        let nodes = vec![Node::Directory(Names::default())];
        Self(Arc::new(Mutex::new(State { nodes, over: None, trouble: None })))
    }

    /// Has `trouble` come instead of the call after the next `calls` that change something; writing
    /// zeros does not count.
    pub(crate) fn expect(&self, calls: u64, trouble: Trouble) {
        self.state().trouble = Some((calls, trouble));
    }

    /// Ends the trouble. If the power went, what comes back is what `env` leaves of it.
    pub(crate) fn restart(&self, env: &Env) {
        let mut state = self.state();
        state.trouble = None;
        if state.over.take() == Some(Trouble::PowerLoss) {
            for node in &mut state.nodes {
                match node {
                    Node::File(content) => content.lose(env),
                    Node::Directory(names) => names.lose(env),
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Begins a call that changes something.
    fn call(&mut self) -> io::Result<()> {
        self.look()?;
        match &mut self.trouble {
            None => Ok(()),
            Some((0, trouble)) => {
                self.over = Some(*trouble).filter(|trouble| *trouble != Trouble::Fault);
                self.trouble = None;
                Err(io::Error::other("the call that fails"))
            }
            Some((calls, _)) => {
                *calls -= 1;
                Ok(())
            }
        }
    }

    fn look(&self) -> io::Result<()> {
        self.over.map_or(Ok(()), |_| Err(io::Error::other("it is over")))
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        let mut node = ROOT;
        for component in path.components() {
            let Component::Normal(name) = component else { continue };
            let Node::Directory(names) = &self.nodes[node] else {
                return Err(ErrorKind::NotADirectory.into());
            };
            let found = name.to_str().and_then(|name| names.now.get(name));
            node = *found.ok_or(ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    /// The directory that `path` is in, and its name there.
    fn place(&mut self, path: &Path) -> io::Result<(&mut Names, String)> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(ErrorKind::InvalidInput.into());
        };
        let parent = self.find(parent)?;
        let Node::Directory(names) = &mut self.nodes[parent] else {
            return Err(ErrorKind::NotADirectory.into());
        };
        Ok((names, name.to_string_lossy().into_owned()))
    }

    fn make(&mut self, path: &Path, node: Node) -> io::Result<usize> {
        let made = self.nodes.len();
        let (names, name) = self.place(path)?;
        names.change(Naming::Make(name, made));
        self.nodes.push(node);
        Ok(made)
    }

    fn content(&mut self, node: usize) -> io::Result<&mut Content> {
        match &mut self.nodes[node] {
            Node::File(content) => Ok(content),
            Node::Directory(_) => Err(ErrorKind::IsADirectory.into()),
        }
    }
}

impl Content {
    fn change(&mut self, edit: Edit) {
        edit.apply(&mut self.now, |_| true);
        self.pending.push(edit);
    }

    fn sync(&mut self) {
        for edit in std::mem::take(&mut self.pending) {
            edit.apply(&mut self.durable, |_| true);
        }
    }

    fn lose(&mut self, env: &Env) {
        let fate = Fate::draw(env);
        let survives = |_| fate.spares(env);
        let mut lengths = vec![self.durable.len()];
        let mut whole = self.durable.clone();
        for edit in std::mem::take(&mut self.pending) {
            edit.apply(&mut self.durable, survives);
            edit.apply(&mut whole, |_| true);
            lengths.push(whole.len());
        }
        if fate == Fate::Mixed {
            let at = env.random_below(lengths.len() as u64);
            self.durable.resize(lengths[usize::try_from(at).unwrap()], 0);
        }
        self.now = self.durable.clone();
    }
}

impl Edit {
    /// Does to a file what was done, as far as it `survives`: each sector by itself.
    fn apply(&self, bytes: &mut Vec<u8>, survives: impl Fn(u64) -> bool) {
        match self {
            Self::Length(length) if survives(0) => {
                bytes.resize(usize::try_from(*length).unwrap(), 0);
            }
            Self::Length(_) => {}
            Self::Write { at, bytes: written } => {
                let mut rest = written.as_slice();
                let mut at = *at;
                while !rest.is_empty() {
                    let room = usize::try_from(SECTOR - at % SECTOR).unwrap();
                    let (piece, later) = rest.split_at(room.min(rest.len()));
                    if survives(at / SECTOR) {
                        let begin = usize::try_from(at).unwrap();
                        let end = begin + piece.len();
                        if bytes.len() < end {
                            bytes.resize(end, 0);
                        }
                        bytes[begin..end].copy_from_slice(piece);
                    }
                    (at, rest) = (at + piece.len() as u64, later);
                }
            }
        }
    }
}

impl Names {
    fn change(&mut self, naming: Naming) {
        naming.apply(&mut self.now);
        self.pending.push(naming);
    }

    fn sync(&mut self) {
        for naming in std::mem::take(&mut self.pending) {
            naming.apply(&mut self.durable);
        }
    }

    fn lose(&mut self, env: &Env) {
        let fate = Fate::draw(env);
        for naming in std::mem::take(&mut self.pending) {
            if fate.spares(env) {
                naming.apply(&mut self.durable);
            }
        }
        self.now = self.durable.clone();
    }
}

/// What becomes of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lost,
    Kept,
    Mixed,
}

impl Fate {
    fn draw(env: &Env) -> Self {
        match env.random_below(5) {
            0 => Self::Lost,
            1 => Self::Kept,
            _ => Self::Mixed,
        }
    }

    /// Whether one piece of it is there afterwards.
    fn spares(self, env: &Env) -> bool {
        self == Self::Kept || self == Self::Mixed && env.random_below(2) == 0
    }
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Make(name, node) => drop(names.insert(name.clone(), *node)),
            Self::Remove(name) => drop(names.remove(name)),
            Self::Move(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }
}

impl Disk for LossyDisk {
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.call()?;
        let node = match (state.find(path), opening) {
            (Err(error), Opening::Existing) => return Err(error),
            (Err(_), _) => state.make(path, Node::File(Content::default()))?,
            (Ok(node), Opening::Emptied) => {
                state.content(node)?.change(Edit::Length(0));
                node
            }
            (Ok(node), _) => node,
        };
        Ok(Box::new(LossyFile { disk: self.clone(), node }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut state = self.state();
        state.look()?;
        let node = state.find(path)?;
        state.content(node).map(|content| content.now.clone())
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        state.look()?;
        match &state.nodes[state.find(directory)?] {
            Node::Directory(names) => Ok(names.now.keys().cloned().collect()),
            Node::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        let node = state.find(from)?;
        assert_eq!(from.parent(), to.parent(), "files are moved within a directory");
        let (_, to) = state.place(to)?;
        let (names, from) = state.place(from)?;
        names.change(Naming::Move(from, to, node));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        state.find(path)?;
        let (names, name) = state.place(path)?;
        names.change(Naming::Remove(name));
        Ok(())
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        if state.find(path).is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        state.make(path, Node::Directory(Names::default())).map(drop)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call()?;
        let node = state.find(path)?;
        if let Node::Directory(names) = &mut state.nodes[node] {
            names.sync();
        }
        Ok(())
    }
}

/// A file that stays the same one whatever its name becomes.
#[derive(Debug)]
struct LossyFile {
    disk: LossyDisk,
    node: usize,
}

impl DiskFile for LossyFile {
    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.look()?;
        // Zeros are many, and the call after them leaves the same in doubt.
        let called = if ZEROS.starts_with(bytes) { Ok(()) } else { state.call() };
        // A write that fails has written its first sectors.
        let half = (at + bytes.len() as u64 / 2) / SECTOR * SECTOR;
        let part = usize::try_from(half.saturating_sub(at)).unwrap();
        let written = if called.is_ok() { bytes } else { &bytes[..part] };
        state.content(self.node)?.change(Edit::Write { at, bytes: written.to_vec() });
        called
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.call()?;
        state.content(self.node)?.change(Edit::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let (called, is_over) = (state.call(), state.over.is_some());
        let content = state.content(self.node)?;
        match called {
            Ok(()) => content.sync(),
            // At the end it is open what was written; otherwise nothing was, nor will it be.
            Err(_) if is_over => {}
            Err(_) => content.pending.clear(),
        }
        called
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }
}
