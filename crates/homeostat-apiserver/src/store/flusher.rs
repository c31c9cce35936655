//! Group commit: what is committed is made durable group by group, and then shown.
//!
//! While one group is being written, the next one gathers; every commit waits for at most two
//! writes, however many come at once. A thread writes them. A writer that would only wait for it,
//! and finds nobody writing, does it in its place: handing over to a thread and back takes about
//! as long as a disk. What is not durable is not shown, to anybody.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, ThreadId};

use super::head::{Commit, Head};
use super::publish::Published;
use super::snapshot::Snapshot;
use super::storage::Storage;
use crate::aside::aside;

/// What writers and the thread share.
#[derive(Debug)]
pub(super) struct Queue {
    head: Mutex<Writers>,
    gathered: Condvar,
}

/// The newest state, and what of it is not durable yet.
#[derive(Debug)]
pub(super) struct Writers {
    pub(super) head: Head,
    pub(super) failed: bool,
    waiting: Vec<Commit>,
    /// Among them are some that nobody sees to but the thread.
    unattended: bool,
    /// Somebody is writing a group, and will see to it that the next one is written.
    is_flushing: bool,
    /// Those who will see to it themselves that what they commit is written.
    in_place: Vec<ThreadId>,
    closing: bool,
}

/// Commits that are made durable together.
struct Group {
    commits: Vec<Commit>,
    after: Snapshot,
}

impl Queue {
    pub(super) fn new(head: Head) -> Self {
        let writers = Writers {
            head,
            failed: false,
            waiting: Vec::new(),
            unattended: false,
            is_flushing: false,
            in_place: Vec::new(),
            closing: false,
        };
        Self { head: Mutex::new(writers), gathered: Condvar::new() }
    }

    pub(super) fn writers(&self) -> MutexGuard<'_, Writers> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has commits written soon.
    pub(super) fn push(
        &self,
        mut writers: MutexGuard<'_, Writers>,
        commits: impl IntoIterator<Item = Commit>,
    ) {
        let before = writers.waiting.len();
        writers.waiting.extend(commits);
        if writers.waiting.len() == before {
            // The thread takes being woken for nothing for the end.
            return;
        }
        let own = writers.in_place.contains(&std::thread::current().id());
        writers.unattended |= !own;
        let is_seen_to = own || writers.is_flushing;
        drop(writers);
        if !is_seen_to {
            self.gathered.notify_one();
        }
    }
}

impl Writers {
    /// Whether the thread has something to write.
    fn needs_thread(&self) -> bool {
        self.unattended && !self.is_flushing
    }

    /// What waits, for whoever is going to write it now.
    fn take(&mut self) -> Option<Group> {
        if self.is_flushing || self.failed || self.waiting.is_empty() {
            return None;
        }
        (self.is_flushing, self.unattended) = (true, false);
        let commits = std::mem::take(&mut self.waiting);
        Some(Group { commits, after: self.head.snapshot.clone() })
    }
}

/// Makes commits durable; dropping it writes what waits and ends the thread.
#[derive(Debug)]
pub(super) struct Flusher {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

/// What it takes to write a group.
#[derive(Debug)]
struct Desk {
    queue: Arc<Queue>,
    published: Arc<Published>,
    /// Of whoever has taken a group.
    storage: Mutex<Box<dyn Storage>>,
}

impl Flusher {
    pub(super) fn start(
        queue: Arc<Queue>,
        published: Arc<Published>,
        storage: Box<dyn Storage>,
    ) -> std::io::Result<Self> {
        let desk = Arc::new(Desk { queue, published, storage: Mutex::new(storage) });
        let shared = desk.clone();
        let thread =
            std::thread::Builder::new().name("homeostat-log".into()).spawn(move || shared.run())?;
        Ok(Self { desk, thread: Some(thread) })
    }

    /// Does `work`; what it commits is durable when this returns, or somebody is writing it.
    pub(super) fn in_place<T>(&self, work: impl FnOnce() -> T) -> T {
        let turn = Turn::begin(&self.desk.queue);
        let done = work();
        let group = {
            let mut writers = self.desk.queue.writers();
            let group = writers.take();
            // Somebody else is writing: what waits is left to the thread.
            writers.unattended |= !writers.waiting.is_empty();
            group
        };
        drop(turn);
        if let Some(group) = group {
            aside(|| self.desk.write(group));
        }
        done
    }
}

impl Desk {
    fn run(&self) {
        let idle =
            |writers: &mut Writers| !writers.needs_thread() && !writers.closing && !writers.failed;
        loop {
            let writers = self.queue.gathered.wait_while(self.queue.writers(), idle);
            let group = writers.unwrap_or_else(PoisonError::into_inner).take();
            let Some(group) = group else { return };
            self.write(group);
        }
    }

    /// Makes a group durable and shows it, then lets the next one be written.
    fn write(&self, group: Group) {
        let Group { commits, after } = group;
        let appended = {
            let mut storage = self.storage.lock().unwrap_or_else(PoisonError::into_inner);
            storage.append(&commits, &after)
        };
        let is_kept = appended.is_ok();
        if let Err(error) = appended {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the storage failed: nothing is written any more until the server is restarted"
            );
            self.queue.writers().failed = true;
            self.published.fail();
        } else {
            let changes = commits.into_iter().flat_map(|commit| commit.changes);
            let resources: BTreeSet<Arc<str>> = changes.map(|(name, _)| name).collect();
            self.published.show(after, resources.into_iter());
        }
        let mut writers = self.queue.writers();
        writers.is_flushing = false;
        let is_more = writers.needs_thread();
        drop(writers);
        if is_more || !is_kept {
            self.queue.gathered.notify_one();
        }
    }
}

/// A time in which what this thread commits is left to it.
struct Turn<'a> {
    queue: &'a Queue,
}

impl<'a> Turn<'a> {
    fn begin(queue: &'a Queue) -> Self {
        queue.writers().in_place.push(std::thread::current().id());
        Self { queue }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut writers = self.queue.writers();
        let own = std::thread::current().id();
        if let Some(at) = writers.in_place.iter().position(|thread| *thread == own) {
            writers.in_place.swap_remove(at);
        }
        if std::thread::panicking() {
            writers.unattended |= !writers.waiting.is_empty();
        }
        let is_left = writers.needs_thread();
        drop(writers);
        if is_left {
            self.queue.gathered.notify_one();
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.desk.queue.writers().closing = true;
        self.desk.queue.gathered.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
