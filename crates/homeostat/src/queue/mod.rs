//! The work queue: keys wait here until a worker takes them, one worker per key at a time.
//!
//! [`Machine`] is the pure state machine; [`Queue`] adds a lock, a clock and a wake-up around it.
//! Nothing here polls: a worker sleeps until the next key is due or somebody adds one.
//!
//! ```
//! use homeostat::queue::Queue;
//! use homeostat::{Key, Trigger};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let env = homeostat::Env::system();
//! let queue = Queue::new(env);
//! queue.add(Key::namespaced("default", "web"), Trigger::Initial);
//! while let Some(item) = queue.get().await {
//!     match reconcile(&item.key).await {
//!         Ok(()) => queue.forget(&item.key),
//!         Err(_) => drop(queue.add_rate_limited(item.key.clone())),
//!     }
//!     queue.done(&item.key);
//! #   queue.shut_down();
//! }
//! # });
//! # async fn reconcile(_: &Key) -> Result<(), ()> { Ok(()) }
//! ```

mod backoff;
mod chain;
mod line;
mod machine;
#[cfg(test)]
mod model;
mod rules;
mod slot;
mod slots;
#[cfg(test)]
mod tests;
mod throttle;

use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use homeostat_env::Env;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use backoff::Backoff;
pub use machine::{Item, Machine, Priority};
pub use rules::{Debounce, Lane, Rate, Rules};

use crate::trigger::Trigger;

/// No sleep is longer: a clock cannot add any duration to any instant.
const LONGEST_SLEEP: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A shared work queue; clones are handles on the same one.
pub struct Queue<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    env: Env,
    origin: Instant,
    backoff: Backoff,
    machine: Mutex<Machine<T>>,
    /// One worker at a time is woken for new work or for an earlier timer.
    work: Notify,
    /// How many workers wait for that; counted up under the lock.
    asleep: AtomicUsize,
    /// Everybody who waits for the drain.
    drained: Notify,
}

impl<T: Hash + Eq + Clone> Queue<T> {
    /// A queue with the default [`Backoff`].
    #[must_use]
    pub fn new(env: Env) -> Self {
        Self::with_backoff(env, Backoff::default())
    }

    /// A queue whose failing keys wait as `backoff` says.
    #[must_use]
    pub fn with_backoff(env: Env, backoff: Backoff) -> Self {
        Self::with_rules(env, Rules { backoff, ..Rules::default() })
    }

    /// A queue with rules of its own: lanes that take turns, a debounce, a rate.
    #[must_use]
    pub fn with_rules(env: Env, rules: Rules<T>) -> Self {
        let origin = env.instant();
        Self {
            shared: Arc::new(Shared {
                env,
                origin,
                backoff: rules.backoff,
                machine: Mutex::new(Machine::new(rules)),
                work: Notify::new(),
                asleep: AtomicUsize::new(0),
                drained: Notify::new(),
            }),
        }
    }

    /// The next key; waits until there is one. `None` once the queue is shut down and empty.
    /// The key is with the caller until [`Self::done`]; a dropped call takes nothing.
    pub async fn get(&self) -> Option<Item<T>> {
        loop {
            let (next_due, woken, _asleep) = {
                let mut machine = self.lock();
                if let Some(item) = machine.take(self.now()) {
                    let more = machine.ready() > 0 || machine.next_due().is_some();
                    drop(machine);
                    // Somebody idle must take the next key, or sleep until it is due.
                    self.wake_one_if(more);
                    return Some(item);
                }
                if machine.is_over() {
                    return None;
                }
                // Under the lock: whoever adds after this sees that somebody sleeps.
                let asleep = Asleep::new(&self.shared.asleep);
                (machine.next_due(), self.shared.work.notified(), asleep)
            };
            let due = async {
                match next_due {
                    Some(due) => {
                        let due = due.min(LONGEST_SLEEP);
                        self.shared.env.sleep_until(self.shared.origin + due).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = woken => {}
                () = due => {}
            }
        }
    }

    /// The caller has finished with a key it got; see [`Machine::done`].
    pub fn done(&self, key: &T) {
        let mut machine = self.lock();
        let more = machine.done(key, || self.now());
        let drained = machine.is_closed() && machine.ready() == 0 && machine.running() == 0;
        drop(machine);
        self.wake_one_if(more);
        if drained {
            self.shared.drained.notify_waiters();
        }
    }

    /// Makes a key ready now, for this reason; see [`Machine::add`]. With a debounce it waits until
    /// it is quiet.
    pub fn add(&self, key: T, trigger: Trigger) {
        self.change(|machine, now| machine.add(key, trigger, Priority::Normal, now));
    }

    /// The same, behind every key of normal priority (but never starved by them).
    pub fn add_low(&self, key: T, trigger: Trigger) {
        self.change(|machine, now| machine.add(key, trigger, Priority::Low, now));
    }

    /// Makes a key ready after `delay` ([`Trigger::Timer`]), or earlier on [`Self::add`].
    pub fn add_after(&self, key: T, delay: Duration) {
        self.add_after_for(key, delay, Trigger::Timer);
    }

    /// The same with another reason, such as [`Trigger::Conflict`].
    pub fn add_after_for(&self, key: T, delay: Duration, trigger: Trigger) {
        self.change(|machine, now| {
            machine.add_at(key, trigger, now.saturating_add(delay), now);
        });
    }

    /// Makes a failed key ready after its backoff; returns how long that is.
    /// The failure counts once the backoff has been served: an event that comes first consumes it.
    pub fn add_rate_limited(&self, key: T) -> Duration {
        let Shared { backoff, env, .. } = &*self.shared;
        let dice = if backoff.jitter > 0.0 { env.random_unit() } else { 0.0 };
        self.change(|machine, now| {
            let delay = backoff.delay(machine.failures(&key), dice);
            machine.add_failed(key, delay, now);
            delay
        })
    }

    /// The key is well again: the next failure waits the shortest backoff.
    pub fn forget(&self, key: &T) {
        self.lock().forget(key);
    }

    /// How many backoffs in a row a key has served; 0 for an unknown one.
    #[must_use]
    pub fn failures(&self, key: &T) -> u32 {
        self.lock().failures(key)
    }

    /// How many keys are ready for a worker.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().ready()
    }

    /// How many keys wait for their time.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock().waiting()
    }

    /// How often a key became ready since the queue was made, all keys together.
    #[must_use]
    pub fn adds(&self) -> u64 {
        self.lock().adds()
    }

    /// For how long each key that is with a worker has been there, in no promised order.
    #[must_use]
    pub fn unfinished(&self) -> Vec<Duration> {
        let now = self.now();
        self.lock().unfinished(now).collect()
    }

    /// Whether no key is ready.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes keys in and hands none out, until [`Self::resume`].
    pub fn pause(&self) {
        self.lock().pause(true);
    }

    /// Hands keys out again.
    pub fn resume(&self) {
        self.change(|machine, _| machine.pause(false));
    }

    /// Stops the intake and drops all timers; keys that are ready, or wait for quiet, are still
    /// handed out.
    pub fn shut_down(&self) {
        self.close(Machine::close);
    }

    /// Stops the intake and drops all keys but those already with a worker.
    pub fn shut_down_now(&self) {
        self.close(|machine| {
            machine.close();
            machine.clear();
        });
    }

    /// Waits until the queue is shut down and the last worker has called [`Self::done`].
    pub async fn drained(&self) {
        loop {
            let mut notified = std::pin::pin!(self.shared.drained.notified());
            // Registered before looking, or a `done` in between would be missed.
            notified.as_mut().enable();
            {
                let machine = self.lock();
                if machine.is_closed() && machine.ready() == 0 && machine.running() == 0 {
                    return;
                }
            }
            notified.await;
        }
    }

    fn close(&self, close: impl FnOnce(&mut Machine<T>)) {
        close(&mut self.lock());
        self.shared.work.notify_waiters();
        self.shared.drained.notify_waiters();
    }

    fn change<R>(&self, change: impl FnOnce(&mut Machine<T>, Duration) -> R) -> R {
        let result = {
            let mut machine = self.lock();
            change(&mut machine, self.now())
        };
        self.wake_one_if(true);
        result
    }

    /// Wakes a worker that sleeps, if there is one and a reason.
    fn wake_one_if(&self, reason: bool) {
        if reason && self.shared.asleep.load(Ordering::Relaxed) > 0 {
            self.shared.work.notify_one();
        }
    }

    fn now(&self) -> Duration {
        self.shared.env.instant().saturating_duration_since(self.shared.origin)
    }

    fn lock(&self) -> MutexGuard<'_, Machine<T>> {
        self.shared.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker that waits, as long as it does.
struct Asleep<'a>(&'a AtomicUsize);

impl<'a> Asleep<'a> {
    fn new(asleep: &'a AtomicUsize) -> Self {
        asleep.fetch_add(1, Ordering::Relaxed);
        Self(asleep)
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("backoff", &self.shared.backoff).finish_non_exhaustive()
    }
}
