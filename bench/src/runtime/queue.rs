//! What a work queue takes for one add, get, forget and done: alone, and behind many keys.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::FutureExt as _;
use homeostat::queue::Queue;
use homeostat::{Env, Key, Trigger};

/// The same numbers as in bench/peers/controller-runtime/queue.go.
const ROUNDS: usize = 200_000;
pub(super) const WAITING: usize = 100_000;

/// The figures of one queue.
pub(super) struct Queued {
    pub(super) name: String,
    pub(super) alone: Duration,
    pub(super) behind_many: Duration,
}

pub(super) fn ours() -> Queued {
    Queued { name: "homeostat".to_owned(), alone: measure(0), behind_many: measure(WAITING) }
}

/// Asks the program that has Go's queues.
pub(super) fn theirs(program: &Path) -> Result<Vec<Queued>> {
    let output = Command::new(program).arg("queue").output()?;
    ensure!(output.status.success(), "the queues of Go could not be measured");
    let nanoseconds = |text: &str| Ok::<_, anyhow::Error>(Duration::from_nanos(text.parse()?));
    let read = |line: &str| {
        let mut words = line.split(' ');
        let mut word = || words.next().context("a short line about a queue");
        let name = word()?.to_owned();
        Ok(Queued { name, alone: nanoseconds(word()?)?, behind_many: nanoseconds(word()?)? })
    };
    String::from_utf8(output.stdout)?.lines().map(read).collect()
}

fn measure(depth: usize) -> Duration {
    let queue = Queue::new(Env::system());
    let key =
        |number| Key::namespaced(format!("namespace-{}", number % 100), format!("pod-{number:07}"));
    let mut keys = (0..depth + ROUNDS).map(key).collect::<Vec<_>>().into_iter();
    for key in keys.by_ref().take(depth) {
        queue.add(key, Trigger::Initial);
    }
    let begin = Instant::now();
    for key in keys {
        queue.add(key, Trigger::Initial);
        // There is one: it is ready at once.
        if let Some(Some(item)) = queue.get().now_or_never() {
            queue.forget(&item.key);
            queue.done(&item.key);
        }
    }
    begin.elapsed() / u32::try_from(ROUNDS).unwrap_or(u32::MAX)
}
