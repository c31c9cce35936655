//! What wakes a controller besides the API: a channel, a stream, a clock.
//!
//! A source only names keys. It says nothing about what happened, so a lost or repeated word does
//! no harm: the reconcile looks at the world itself.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;

use super::everything::Everything;
use super::source::is_worth_waking;
use crate::Env;
use crate::contained::contained;
use crate::key::Key;
use crate::queue::{Backoff, Queue};
use crate::trigger::Trigger;

/// A source of wake-ups outside the API, for [`crate::Controller::watches_source`].
///
/// The reconciles it causes have [`Trigger::Source`] with its name. One that ends wakes nobody any
/// more and is no error. One that panics is logged, counted (`homeostat_source_panics`) and asked
/// again with backoff, from 1 s to 5 min: a stream that panicked over one word may have others. The
/// readiness names it until it can be asked without a panic.
pub struct Source {
    name: String,
    words: Words,
}

enum Words {
    Keys(BoxStream<'static, Key>),
    Every(Duration),
}

/// How a source is: what its last panic said, until it is well again. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct SourceHealth {
    pub(crate) controller: Arc<str>,
    pub(crate) source: Arc<str>,
    trouble: Arc<Mutex<Option<String>>>,
    panics: Counter,
}

impl SourceHealth {
    pub(super) fn new(controller: &Arc<str>, source: &Source, panics: Counter) -> Self {
        let (controller, source) = (Arc::clone(controller), Arc::from(&*source.name));
        Self { controller, source, trouble: Arc::default(), panics }
    }

    /// What is wrong with it, in words.
    pub(crate) fn problem(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn says(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
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
    /// waiting; none that the controller's filter leaves out at the start. For a world that tells nobody when it changes; a period of zero is never.
    #[must_use]
    pub fn every(name: &str, period: Duration) -> Self {
        Self { name: name.to_owned(), words: Words::Every(period) }
    }

    /// Runs until the source ends.
    pub(super) async fn run(
        self,
        env: Env,
        everything: Everything,
        queue: Queue<Key>,
        how: SourceHealth,
    ) {
        let Self { name, words } = self;
        let trigger = || Trigger::Source(name.clone());
        match words {
            Words::Keys(mut keys) => {
                let mut panics = 0_u32;
                loop {
                    match next(&mut keys, &how).await {
                        Ok(Some(key)) => {
                            panics = 0;
                            if is_worth_waking(&key, &everything.primaries, &queue) {
                                queue.add(key, trigger());
                            }
                        }
                        Ok(None) => break,
                        Err(said) => {
                            tracing::error!(source = name, error = said, "a source panicked");
                            how.panics.inc();
                            how.says(Some(format!("it panicked: {said}")));
                            let delay = Backoff::default().delay(panics, env.random_unit());
                            panics = panics.saturating_add(1);
                            env.sleep(delay).await;
                        }
                    }
                }
                tracing::debug!(source = name, "a source has ended");
            }
            Words::Every(Duration::ZERO) => {}
            Words::Every(period) => loop {
                env.sleep(period).await;
                everything.wake(&queue, &trigger());
            },
        }
    }
}

/// The next key, or what a panic said instead. A stream that can be asked is well; one that ends
/// after a panic stays what it was.
async fn next(
    keys: &mut BoxStream<'static, Key>,
    how: &SourceHealth,
) -> Result<Option<Key>, String> {
    let mut was_well = how.problem().is_none();
    poll_fn(|context| {
        let polled = match contained(|| keys.poll_next_unpin(context)) {
            Ok(polled) => polled,
            Err(said) => return Poll::Ready(Err(said)),
        };
        if !was_well && !matches!(polled, Poll::Ready(None)) {
            how.says(None);
            was_well = true;
        }
        polled.map(Ok)
    })
    .await
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}
