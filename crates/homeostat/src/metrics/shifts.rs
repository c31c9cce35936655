//! Since when each worker of a controller has been with its key. A worker writes its own cell and
//! nobody locks: a reconcile pays two plain stores. Never looks at a clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// What a cell holds while its worker has no key.
const FREE: u64 = 0;

/// The workers of one controller, by number.
#[derive(Debug)]
pub(crate) struct Shifts {
    origin: Instant,
    /// Nanoseconds since the origin, and one more.
    since: Box<[AtomicU64]>,
}

impl Shifts {
    pub(crate) fn new(workers: usize, origin: Instant) -> Self {
        Self { origin, since: (0..workers).map(|_| AtomicU64::new(FREE)).collect() }
    }

    /// That worker has taken a key.
    pub(crate) fn begin(&self, worker: usize, now: Instant) {
        let since = now.saturating_duration_since(self.origin).as_nanos();
        self.set(worker, u64::try_from(since).unwrap_or(u64::MAX).saturating_add(1));
    }

    /// It has given the key back.
    pub(crate) fn end(&self, worker: usize) {
        self.set(worker, FREE);
    }

    /// For how long each worker that has a key has had it.
    pub(crate) fn unfinished(&self, now: Instant) -> impl Iterator<Item = Duration> {
        let now = now.saturating_duration_since(self.origin);
        let busy = self.since.iter().map(|cell| cell.load(Ordering::Relaxed));
        let busy = busy.filter(|since| *since != FREE);
        busy.map(move |since| now.saturating_sub(Duration::from_nanos(since - 1)))
    }

    fn set(&self, worker: usize, since: u64) {
        if let Some(cell) = self.since.get(worker) {
            cell.store(since, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_workers_with_a_key_are_unfinished() {
        let env = homeostat_env::Env::system();
        let origin = env.instant();
        let shifts = Shifts::new(3, origin);
        let at = |seconds| origin + Duration::from_secs(seconds);
        shifts.begin(0, at(0));
        shifts.begin(1, at(1));
        shifts.begin(2, at(2));
        shifts.end(1);
        let unfinished: Vec<u64> = shifts.unfinished(at(5)).map(|time| time.as_secs()).collect();
        assert_eq!(unfinished, [5, 3]);
    }
}
