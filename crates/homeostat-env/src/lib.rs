//! The environment: the one place that time, randomness, uids and the host name come from.
//!
//! Every component takes an [`Env`] and asks it, so the same code runs on the wall clock in
//! production and on virtual time in a test. A simulated environment with the same seed gives the
//! same answers in every process.
//!
//! This crate never logs, never does IO besides reading the clock, the entropy source and the host
//! name, and nothing outside it may read those (`clippy.toml` forbids the calls).

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tokio::time::{Instant, Timeout};

/// The time limit given to [`Env::timeout`] passed before the future finished.
pub use tokio::time::error::Elapsed;

/// A cheap handle on the environment; clones share one clock and one random stream.
#[derive(Clone)]
pub struct Env {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Clock,
    host: String,
    rng: Mutex<ChaCha12Rng>,
}

enum Clock {
    /// The wall clock of the host.
    Wall,
    /// `start` plus whatever tokio's (paused, advancing) clock has moved since `origin`.
    Virtual { start: Timestamp, origin: Instant },
}

impl Env {
    /// The real world: wall clock, operating system entropy, the host's name.
    ///
    /// # Panics
    /// When the operating system has no entropy source: nothing safe can be done without one.
    #[must_use]
    pub fn system() -> Self {
        let mut seed = [0_u8; 32];
        #[expect(clippy::expect_used, reason = "no secret can be made without entropy")]
        getrandom::fill(&mut seed).expect("the operating system provides entropy");
        let host = hostname::get()
            .map_or_else(|_| "localhost".to_owned(), |name| name.to_string_lossy().into_owned());
        Self::with(Clock::Wall, host, ChaCha12Rng::from_seed(seed))
    }

    /// A simulated world: virtual time that starts at `start`, randomness from `seed`.
    ///
    /// Time moves with tokio's clock, so the runtime must be started paused
    /// (`tokio::time::pause`, `start_paused = true`) for it to be virtual.
    #[must_use]
    pub fn simulated(seed: u64, start: Timestamp) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the environment owns the clock")]
        let origin = Instant::now();
        Self::with(
            Clock::Virtual { start, origin },
            "simulated".to_owned(),
            ChaCha12Rng::seed_from_u64(seed),
        )
    }

    fn with(clock: Clock, host: String, rng: ChaCha12Rng) -> Self {
        Self { inner: Arc::new(Inner { clock, host, rng: Mutex::new(rng) }) }
    }

    /// The time of day.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self.inner.clock {
            #[expect(clippy::disallowed_methods, reason = "the environment owns the clock")]
            Clock::Wall => Timestamp::now(),
            Clock::Virtual { start, origin } => start
                .saturating_add(self.instant().saturating_duration_since(origin))
                .unwrap_or(Timestamp::MAX),
        }
    }

    /// A monotonic point in time, for measuring and for deadlines.
    #[must_use]
    #[inline]
    pub fn instant(&self) -> Instant {
        #[expect(clippy::disallowed_methods, reason = "the environment owns the clock")]
        Instant::now()
    }

    /// Waits for `duration`.
    pub async fn sleep(&self, duration: Duration) {
        #[expect(clippy::disallowed_methods, reason = "the environment owns the clock")]
        tokio::time::sleep(duration).await;
    }

    /// Waits until `deadline`; returns at once when it has passed.
    pub async fn sleep_until(&self, deadline: Instant) {
        #[expect(clippy::disallowed_methods, reason = "the environment owns the clock")]
        tokio::time::sleep_until(deadline).await;
    }

    /// Runs `future` for at most `limit` from now on: [`Elapsed`] when that passed first, and the future
    /// is dropped.
    // No `async fn`: that would have room for the future twice.
    pub fn timeout<F: Future>(&self, limit: Duration, future: F) -> Timeout<F> {
        #[expect(clippy::disallowed_methods, reason = "the environment owns the clock")]
        tokio::time::timeout(limit, future)
    }

    /// A random number.
    #[must_use]
    pub fn random_u64(&self) -> u64 {
        self.with_rng(Rng::next_u64)
    }

    /// A random number below `bound`; 0 when `bound` is 0.
    #[must_use]
    pub fn random_below(&self, bound: u64) -> u64 {
        // The bias of a 64-bit modulus is far below anything jitter or name suffixes could notice.
        self.random_u64().checked_rem(bound).unwrap_or(0)
    }

    /// A random number in `[0, 1)`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit an f64 exactly")]
    pub fn random_unit(&self) -> f64 {
        (self.random_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fills `bytes` with randomness; fit for secrets when the environment is the system's.
    pub fn fill_random(&self, bytes: &mut [u8]) {
        self.with_rng(|rng| rng.fill_bytes(bytes));
    }

    /// Random letters and digits: about 6 bits each, and nothing that needs escaping anywhere.
    #[must_use]
    pub fn random_alphanumeric(&self, length: usize) -> String {
        const ALPHABET: &[u8; 62] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let draw = || {
            let index = usize::try_from(self.random_below(62)).unwrap_or_default();
            char::from(ALPHABET[index])
        };
        (0..length).map(|_| draw()).collect()
    }

    /// A version 4 UUID in its usual text form.
    #[must_use]
    pub fn uid(&self) -> String {
        let mut bytes = [0_u8; 16];
        self.fill_random(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// The name of the host; `simulated` in a simulation.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.inner.host
    }

    fn with_rng<T>(&self, draw: impl FnOnce(&mut ChaCha12Rng) -> T) -> T {
        draw(&mut self.inner.rng.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = match self.inner.clock {
            Clock::Wall => "wall",
            Clock::Virtual { .. } => "virtual",
        };
        f.debug_struct("Env").field("clock", &clock).field("host", &self.inner.host).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    #[tokio::test(start_paused = true)]
    async fn virtual_time_moves_only_by_waiting() {
        let env = Env::simulated(1, START);
        assert_eq!(env.now(), START);
        env.sleep(Duration::from_secs(3600)).await;
        assert_eq!(env.now().duration_since(START).as_secs(), 3600);
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_seed_gives_the_same_uids() {
        let draw = |seed| {
            let env = Env::simulated(seed, START);
            (env.uid(), env.random_u64(), env.random_alphanumeric(32))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
