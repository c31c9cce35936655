//! What wakes a controller besides the API: a channel, a stream, a clock.
//!
//! A source only names keys. It says nothing about what happened, so a lost or repeated word does
//! no harm: the reconcile looks at the world itself.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};
use tokio::sync::mpsc;

use crate::Env;
use crate::cache::KindCache;
use crate::key::Key;
use crate::queue::Queue;
use crate::trigger::Trigger;

/// A source of wake-ups outside the API, for [`crate::Controller::watches_source`].
///
/// The reconciles it causes have [`Trigger::Source`] with its name. One that ends wakes nobody any
/// more and is no error; one that panics is logged.
pub struct Source {
    name: String,
    words: Words,
}

enum Words {
    Keys(BoxStream<'static, Key>),
    Every(Duration),
}

impl Source {
    /// Wakes each key that arrives in the channel. Keys are taken out at once, however busy the
    /// controller is; those of objects that do not exist wake nobody.
    ///
    /// ```
    /// use homeostat::{Key, controller::Source};
    ///
    /// let (keys, inbox) = tokio::sync::mpsc::channel(16);
    /// let source = Source::channel("orders", inbox);
    /// keys.try_send(Key::namespaced("default", "web")).unwrap();
    /// ```
    #[must_use]
    pub fn channel(name: &str, mut inbox: mpsc::Receiver<Key>) -> Self {
        Self::stream(name, futures::stream::poll_fn(move |context| inbox.poll_recv(context)))
    }

    /// Wakes each key that the stream yields.
    #[must_use]
    pub fn stream(name: &str, keys: impl Stream<Item = Key> + Send + 'static) -> Self {
        Self { name: name.to_owned(), words: Words::Keys(keys.boxed()) }
    }

    /// Wakes every object again and again, one `period` after the other, behind whatever else is
    /// waiting. For a world that tells nobody when it changes; a period of zero is never.
    #[must_use]
    pub fn every(name: &str, period: Duration) -> Self {
        Self { name: name.to_owned(), words: Words::Every(period) }
    }

    /// Runs until the source ends.
    pub(super) async fn run(self, env: Env, primaries: KindCache, queue: Queue<Key>) {
        let Self { name, words } = self;
        let trigger = || Trigger::Source(name.clone());
        let told = async {
            match words {
                Words::Keys(mut keys) => {
                    let keys: &mut Pin<Box<_>> = &mut keys;
                    while let Some(key) = keys.next().await {
                        queue.add(key, trigger());
                    }
                    tracing::debug!(source = name, "a source has ended");
                }
                Words::Every(Duration::ZERO) => {}
                Words::Every(period) => loop {
                    env.sleep(period).await;
                    for entry in primaries.entries() {
                        queue.add_low(entry.header.key.clone(), trigger());
                    }
                },
            }
        };
        if std::panic::AssertUnwindSafe(told).catch_unwind().await.is_err() {
            tracing::error!(source = name, "a source panicked and wakes nobody any more");
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}
