//! A queue that rests, because another process works: keys are taken in, none is handed out, and
//! those whose object goes meanwhile are struck off, or there would be more of them all the time.

use std::hash::Hash;

use super::{Machine, Priority, State};

impl<T: Hash + Eq + Clone> Machine<T> {
    /// While paused, keys are taken in and none is handed out.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Whether keys are taken in only.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// While paused, drops a key with all that is known about it. `false` if there is something to
    /// do about it all the same: the queue hands keys out, or the key is with a worker.
    pub fn strike_off(&mut self, key: &T) -> bool {
        if !self.paused {
            return false;
        }
        let Some(id) = self.slots.find(key) else { return true };
        match self.slots[id].state {
            State::Running { .. } => return false,
            State::Ready { priority: Priority::Low, .. } => {
                self.low.leave(&mut self.slots, id);
            }
            State::Ready { priority: Priority::Normal, .. } => {
                self.normal.leave(&mut self.slots, id);
            }
            State::Waiting { turn } => {
                if let Some(timer) = &self.slots[id].timer {
                    self.waiting.remove(&(timer.due, turn));
                }
            }
            State::Idle => {}
        }
        self.remove(id);
        true
    }
}
