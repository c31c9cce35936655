//! Who is told of the changes of an informer: handlers come and go while it runs.
//!
//! They are called in the informer's task alone, one change after the other. One that panics is
//! reported and harms nobody.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::{Delta, Entry};
use crate::contained::contained;
use crate::kind::Kind;

/// Somebody who wants to know of changes.
pub(crate) type Handler = Box<dyn Fn(&Delta) + Send + Sync>;

/// What an informer's task is told about its handlers.
pub(crate) enum Word {
    Join(u64, Handler),
    Leave(u64),
    /// To be answered when everything before it is done.
    Answer(oneshot::Sender<()>),
}

/// The words for one informer.
pub(super) type Words = mpsc::UnboundedSender<Word>;

/// The handlers of one informer, as its task has them.
pub(super) struct Audience {
    inbox: mpsc::UnboundedReceiver<Word>,
    handlers: Vec<(u64, Handler)>,
}

impl Audience {
    pub(super) fn new(inbox: mpsc::UnboundedReceiver<Word>) -> Self {
        Self { inbox, handlers: Vec::new() }
    }

    /// The next word; `None` when there will be none.
    pub(super) async fn hear(&mut self) -> Option<Word> {
        self.inbox.recv().await
    }

    /// Does what a word says; who joins is told what is `there`.
    pub(super) fn obey(
        &mut self,
        word: Word,
        kind: &Kind,
        there: impl FnOnce() -> Vec<Arc<Entry>>,
    ) {
        match word {
            Word::Join(id, handler) => {
                for entry in there() {
                    tell(kind, &handler, &Delta::added(entry, true));
                }
                self.handlers.push((id, handler));
            }
            Word::Leave(id) => self.handlers.retain(|(other, _)| *other != id),
            // Nobody waits for it any more: no harm.
            Word::Answer(answer) => drop(answer.send(())),
        }
    }

    pub(super) fn tell(&self, kind: &Kind, delta: &Delta) {
        self.handlers.iter().for_each(|(_, handler)| tell(kind, handler, delta));
    }
}

/// Calls one handler.
pub(super) fn tell(kind: &Kind, handler: &dyn Fn(&Delta), delta: &Delta) {
    // One handler's bug must not stop the others, nor the cache they all read.
    if let Err(said) = contained(|| handler(delta)) {
        tracing::error!(%kind, key = %delta.key(), said, "an event handler panicked");
    }
}

/// A handler of [`super::Informer::subscribe`], which is told of changes until this is dropped. It
/// may still hear of the change that is being told at that moment.
#[must_use = "a handler is told of nothing once its subscription is dropped"]
pub struct Subscription {
    id: u64,
    words: Words,
    joined: AtomicBool,
}

impl Subscription {
    pub(super) fn new(id: u64, handler: Handler, words: Words) -> Self {
        // Fails only when the informer was stopped: there will be no more events to tell of.
        let _ = words.send(Word::Join(id, handler));
        Self { id, words, joined: AtomicBool::new(false) }
    }

    /// Waits until the handler is in place: whatever is read from the cache after that and changes
    /// is told to it, and not as `initial`. For ever while the informer is not started.
    pub async fn joined(&self) {
        if !self.joined.load(Ordering::Acquire) {
            answered(&self.words).await;
            self.joined.store(true, Ordering::Release);
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let _ = self.words.send(Word::Leave(self.id));
    }
}

/// Waits until an informer's task has heard everything said so far, or has ended.
pub(super) async fn answered(words: &Words) {
    let (answer, answered) = oneshot::channel();
    if words.send(Word::Answer(answer)).is_ok() {
        drop(answered.await);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("id", &self.id).finish_non_exhaustive()
    }
}
