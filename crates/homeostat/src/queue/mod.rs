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
#[cfg(test)]
mod end;
mod line;
mod machine;
#[cfg(test)]
mod model;
mod rules;
mod sleep;
mod slot;
mod slots;
#[cfg(test)]
mod tests;
mod throttle;

use std::fmt;
use std::future::poll_fn;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, ready};
use std::time::Duration;

use homeostat_env::Env;
use tokio::sync::Notify;
use tokio::task::coop;
use tokio::time::Instant;

pub use backoff::Backoff;
pub use machine::{Item, Machine, Priority};
pub use rules::{Debounce, Lane, Rate, Rules};
use sleep::{Asleep, Bell, Guarded};

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
    guarded: Mutex<Guarded<T>>,
    /// How many keys have failed: a copy of what the machine says, for those who do not lock.
    failing: AtomicUsize,
    /// One worker at a time is woken for new work or for an earlier timer.
    work: Notify,
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
                guarded: Mutex::new(Guarded::new(Machine::new(rules))),
                failing: AtomicUsize::new(0),
                work: Notify::new(),
                drained: Notify::new(),
            }),
        }
    }

    /// The next key; waits until there is one. `None` once the queue is shut down and empty.
    /// The key is with the caller until [`Self::done`]; a dropped call takes nothing.
    pub fn get(&self) -> impl Future<Output = Option<Item<T>>> {
        let shared = &*self.shared;
        // Boxed, and no `async fn`: a call that finds a key at once is two words, which nobody has
        // to move about.
        let mut sleep = None;
        poll_fn(move |context| {
            // Who always finds a key gives way now and then, or nobody else would have its thread.
            let turn = ready!(coop::poll_proceed(context));
            loop {
                if sleep.is_none() {
                    let mut bell = Bell::new(&shared.work);
                    let mut guarded = shared.lock();
                    if let Some(id) = guarded.machine.next(|| shared.now()) {
                        shared.publish(&guarded);
                        bell.ring_if(guarded.needs_sleeper());
                        turn.made_progress();
                        return Poll::Ready(guarded.machine.hand_out(id));
                    }
                    if guarded.machine.is_over() {
                        bell.ring_if(guarded.needs_sleeper()); // Who sleeps on would do so for ever.
                        return Poll::Ready(None);
                    }
                    sleep = Some(Box::pin(shared.sleep(guarded)));
                }
                if let Some(sleep) = &mut sleep {
                    ready!(sleep.as_mut().poll(context));
                }
                sleep = None;
            }
        })
    }

    /// The caller has finished with a key it got; see [`Machine::done`].
    pub fn done(&self, key: &T) {
        let shared = &*self.shared;
        let mut guarded = shared.lock();
        guarded.machine.done(key, || shared.now());
        let drained = guarded.machine.is_drained();
        shared.leave(guarded);
        if drained {
            shared.drained.notify_waiters();
        }
    }

    /// Makes a key ready now, for this reason; see [`Machine::add`]. With a debounce it waits until
    /// it is quiet.
    pub fn add(&self, key: T, trigger: Trigger) {
        self.shared.add(key, trigger, Priority::Normal);
    }

    /// The same, behind every key of normal priority (but never starved by them).
    pub fn add_low(&self, key: T, trigger: Trigger) {
        self.shared.add(key, trigger, Priority::Low);
    }

    /// Makes a key ready behind all that are ready now (in its lane: lanes take turns), those of
    /// [`Self::add_low`] included: while there are any, it is the last of them.
    pub fn add_last(&self, key: T, trigger: Trigger) {
        self.change(|machine, now| machine.add(key, trigger, machine.last_priority(), now));
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
        self.add_rate_limited_at_least(key, Duration::ZERO)
    }

    /// The same, but no sooner than after `least`.
    pub(crate) fn add_rate_limited_at_least(&self, key: T, least: Duration) -> Duration {
        let Shared { backoff, env, .. } = &*self.shared;
        let dice = if backoff.jitter > 0.0 { env.random_unit() } else { 0.0 };
        self.change(|machine, now| {
            let delay = backoff.delay(machine.failures(&key), dice).max(least);
            machine.add_failed(key, delay, now);
            delay
        })
    }

    /// The key is well again: the next failure waits the shortest backoff.
    pub fn forget(&self, key: &T) {
        // Whoever has a key knows of its failures, which came before; so no lock if there are none.
        if self.shared.failing.load(Ordering::Relaxed) > 0 {
            self.change(|machine, _| machine.forget(key));
        }
    }

    /// The next event ends the backoff of the key, however many have done so before; see
    /// [`Machine::mended`].
    pub fn mended(&self, key: &T) {
        if self.shared.failing.load(Ordering::Relaxed) > 0 {
            self.change(|machine, _| machine.mended(key));
        }
    }

    /// Whether events have ended backoffs of the key since it last served one; only then is there
    /// anything that [`Self::mended`] changes.
    pub(crate) fn was_cut_short(&self, key: &T) -> bool {
        self.shared.failing.load(Ordering::Relaxed) > 0
            && self.look(|machine| machine.was_cut_short(key))
    }

    /// How many backoffs in a row a key has served; 0 for an unknown one.
    ///
    /// The queue itself gives no key up, however often it fails: whoever works on its keys counts
    /// with this. (With a [`Controller`](crate::Controller) that is `give_up_after`.) A backoff that
    /// an event ended is not among them: what has changed since may have mended the key.
    ///
    /// ```
    /// # use homeostat::queue::Queue;
    /// # use homeostat::{Key, Trigger};
    /// const ATTEMPTS: u32 = 3;
    ///
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// # let (env, mut tried) = (cluster.env.clone(), 0);
    /// # let mut reconcile = async |_: &Key| { tried += 1; assert!(tried <= 3); Err::<(), _>("no") };
    /// let mut dead_letters = Vec::new();
    /// let queue = Queue::new(env);
    /// queue.add(Key::namespaced("default", "web"), Trigger::Initial);
    /// while let Some(item) = queue.get().await {
    ///     match reconcile(&item.key).await {
    ///         Ok(()) => queue.forget(&item.key),
    ///         Err(why) if queue.failures(&item.key) + 1 >= ATTEMPTS => {
    ///             // It runs again when somebody adds it, and has all its attempts then.
    ///             queue.forget(&item.key);
    ///             dead_letters.push((item.key.clone(), why));
    /// #           queue.shut_down();
    ///         }
    ///         Err(_) => drop(queue.add_rate_limited(item.key.clone())),
    ///     }
    ///     queue.done(&item.key);
    /// }
    /// assert_eq!(dead_letters, [(Key::namespaced("default", "web"), "no")]);
    /// # assert_eq!(tried, 3);
    /// # });
    /// ```
    #[must_use]
    pub fn failures(&self, key: &T) -> u32 {
        self.look(|machine| machine.failures(key))
    }

    /// How many keys are ready for a worker.
    #[must_use]
    pub fn len(&self) -> usize {
        self.look(|machine| machine.ready())
    }

    /// How many keys wait for their time.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.look(|machine| machine.waiting())
    }

    /// How often a key became ready since the queue was made, all keys together.
    #[must_use]
    pub fn adds(&self) -> u64 {
        self.look(|machine| machine.adds())
    }

    /// How long an item that this queue handed out was ready before `began`, when work on it began.
    #[must_use]
    pub fn waited(&self, item: &Item<T>, began: Instant) -> Duration {
        began.saturating_duration_since(self.shared.origin).saturating_sub(item.ready_since)
    }

    /// Whether no key is ready.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes keys in and hands none out, until [`Self::resume`].
    pub fn pause(&self) {
        self.change(|machine, _| machine.pause(true));
        self.shared.drained.notify_waiters();
    }

    /// Whether keys are taken in only.
    pub(crate) fn is_paused(&self) -> bool {
        self.look(Machine::is_paused)
    }

    /// Drops a key whose object is gone, if nobody is to be given it; see [`Machine::strike_off`].
    pub(crate) fn strike_off(&self, key: &T) -> bool {
        self.change(|machine, _| machine.strike_off(key))
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

    /// Waits until the queue is shut down, hands nothing out any more, and the last worker has called
    /// [`Self::done`].
    pub async fn drained(&self) {
        loop {
            let mut notified = std::pin::pin!(self.shared.drained.notified());
            // Registered before looking, or a `done` in between would be missed.
            notified.as_mut().enable();
            if self.look(Machine::is_drained) {
                return;
            }
            notified.await;
        }
    }

    fn close(&self, close: impl FnOnce(&mut Machine<T>)) {
        self.change(|machine, _| close(machine));
        self.shared.work.notify_waiters();
        self.shared.drained.notify_waiters();
    }

    fn change<R>(&self, change: impl FnOnce(&mut Machine<T>, Duration) -> R) -> R {
        let now = self.shared.now();
        let mut guarded = self.shared.lock();
        let result = change(&mut guarded.machine, now);
        self.shared.leave(guarded);
        result
    }

    fn look<R>(&self, look: impl FnOnce(&Machine<T>) -> R) -> R {
        look(&self.shared.lock().machine)
    }
}

impl<T: Hash + Eq + Clone> Shared<T> {
    fn add(&self, key: T, trigger: Trigger, priority: Priority) {
        let now = self.now();
        let mut guarded = self.lock();
        guarded.machine.add(key, trigger, priority, now);
        self.leave(guarded);
    }

    fn lock(&self) -> MutexGuard<'_, Guarded<T>> {
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up the lock after a change, and wakes a worker if one that sleeps is needed.
    fn leave(&self, guarded: MutexGuard<'_, Guarded<T>>) {
        self.publish(&guarded);
        let mut bell = Bell::new(&self.work);
        bell.ring_if(guarded.needs_sleeper());
        drop(guarded);
    }

    /// Sleeps until there may be something to do; counts as asleep from when the lock is given up.
    fn sleep<'a>(&'a self, guarded: MutexGuard<'a, Guarded<T>>) -> impl Future<Output = ()> + 'a {
        self.publish(&guarded);
        let woken = self.work.notified();
        let asleep = Asleep::begin(self, guarded);
        async move {
            let alarm = async {
                match asleep.alarm() {
                    Some(due) => {
                        let due = due.min(LONGEST_SLEEP);
                        self.env.sleep_until(self.origin + due).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = woken => {}
                () = alarm => {}
            }
            asleep.end();
        }
    }

    /// Copies what is read without the lock.
    fn publish(&self, guarded: &Guarded<T>) {
        let failing = guarded.machine.failing();
        if failing != self.failing.load(Ordering::Relaxed) {
            self.failing.store(failing, Ordering::Relaxed);
        }
    }

    /// The time of the queue: since it was made.
    fn now(&self) -> Duration {
        self.env.instant().saturating_duration_since(self.origin)
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
