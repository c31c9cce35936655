//! Group commit: one thread that makes commits durable and then shows them.
//!
//! While one group is being written, the next one gathers; every commit waits for at most two
//! writes, however many come at once. What is not durable is not shown, to anybody.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::head::{Commit, Head};
use super::publish::Published;
use super::storage::Storage;

/// What writers and the thread share.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) head: Mutex<Writers>,
    gathered: Condvar,
}

/// The newest state, and what of it is not durable yet.
#[derive(Debug)]
pub(super) struct Writers {
    pub(super) head: Head,
    pub(super) waiting: Vec<Commit>,
    pub(super) failed: bool,
    closing: bool,
}

impl Queue {
    pub(super) fn new(head: Head) -> Self {
        let writers = Writers { head, waiting: Vec::new(), failed: false, closing: false };
        Self { head: Mutex::new(writers), gathered: Condvar::new() }
    }

    /// Tells the thread that a commit waits.
    pub(super) fn ring(&self) {
        self.gathered.notify_one();
    }
}

/// The thread; dropping it writes what waits and ends it.
#[derive(Debug)]
pub(super) struct Flusher {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    pub(super) fn start(
        queue: Arc<Queue>,
        published: Arc<Published>,
        mut storage: Box<dyn Storage>,
    ) -> std::io::Result<Self> {
        let shared = queue.clone();
        let thread = std::thread::Builder::new()
            .name("homeostat-log".into())
            .spawn(move || run(&shared, &published, storage.as_mut()))?;
        Ok(Self { queue, thread: Some(thread) })
    }
}

fn run(queue: &Queue, published: &Published, storage: &mut dyn Storage) {
    loop {
        let (commits, after) = {
            let writers = queue.head.lock().unwrap_or_else(PoisonError::into_inner);
            let mut writers = queue
                .gathered
                .wait_while(writers, |writers| writers.waiting.is_empty() && !writers.closing)
                .unwrap_or_else(PoisonError::into_inner);
            if writers.waiting.is_empty() {
                return;
            }
            (std::mem::take(&mut writers.waiting), writers.head.snapshot.clone())
        };
        if let Err(error) = storage.append(&commits, &after) {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the storage failed: nothing is written any more until the server is restarted"
            );
            queue.head.lock().unwrap_or_else(PoisonError::into_inner).failed = true;
            published.fail();
            return;
        }
        let resources: BTreeSet<Arc<str>> =
            commits.into_iter().flat_map(|commit| commit.changes).map(|(name, _)| name).collect();
        published.show(after, resources.into_iter());
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.queue.head.lock().unwrap_or_else(PoisonError::into_inner).closing = true;
        self.queue.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
