//! What a work queue takes for one add, get, forget and done: alone, and behind many keys.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use futures::FutureExt as _;
use homeostat::queue::{Queue, Rules};
use homeostat::{Env, Key, Trigger};

/// The same numbers as in bench/peers/controller-runtime/queue.go.
const ROUNDS: usize = 200_000;
pub(super) const WAITING: usize = 100_000;
/// A pass takes a few hundredths of a second, which anything may disturb: the median of so many counts.
const PASSES: usize = 7;

/// The figures of one queue.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(super) name: String,
    pub(super) alone: Duration,
    pub(super) behind_many: Duration,
}

/// Measured on a thread of its own: a task has to give way now and then, and the queue sees to it.
pub(crate) fn ours() -> Result<Queued> {
    let both = || Ok::<_, anyhow::Error>((median(0)?, median(WAITING)?));
    let both = std::thread::scope(|scope| scope.spawn(both).join());
    let (alone, behind_many) = both.map_err(|_| anyhow!("the queue panicked"))??;
    Ok(Queued { name: "homeostat".to_owned(), alone, behind_many })
}

fn median(depth: usize) -> Result<Duration> {
    let mut passes = [Duration::ZERO; PASSES];
    for pass in &mut passes {
        *pass = measure(depth)?;
    }
    passes.sort_unstable();
    Ok(passes[PASSES / 2])
}

/// All queues, measured in turn; of each figure the median.
pub(super) fn in_turn(program: &Path, rounds: usize) -> Result<Vec<Queued>> {
    let mut all: Vec<Vec<Queued>> = Vec::new();
    for _ in 0..rounds {
        let round = [ours()?].into_iter().chain(theirs(program)?);
        for (place, queue) in round.enumerate() {
            match all.get_mut(place) {
                Some(queues) => queues.push(queue),
                None => all.push(vec![queue]),
            }
        }
    }
    let middle = |queues: &[Queued], figure: fn(&Queued) -> Duration| {
        let mut figures: Vec<_> = queues.iter().map(figure).collect();
        figures.sort_unstable();
        figures[figures.len() / 2]
    };
    let median = |queues: &Vec<Queued>| Queued {
        name: queues[0].name.clone(),
        alone: middle(queues, |queue| queue.alone),
        behind_many: middle(queues, |queue| queue.behind_many),
    };
    Ok(all.iter().map(median).collect())
}

/// Asks the program that has Go's queues.
fn theirs(program: &Path) -> Result<Vec<Queued>> {
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

fn measure(depth: usize) -> Result<Duration> {
    // As controllers have it, with a turn for every namespace.
    let queue = Queue::with_rules(Env::system(), Rules::by_namespace());
    // As caches hand them out: the keys live on in the cache.
    let key =
        |number| Key::namespaced(format!("namespace-{}", number % 100), format!("pod-{number:07}"));
    let keys: Vec<Key> = (0..depth + ROUNDS).map(key).collect();
    for key in &keys[..depth] {
        queue.add(key.clone(), Trigger::Initial);
    }
    let begin = Instant::now();
    for key in &keys[depth..] {
        queue.add(key.clone(), Trigger::Initial);
        // There is one: it is ready at once.
        let item = queue.get().now_or_never().flatten().context("a key is held back")?;
        queue.forget(&item.key);
        queue.done(&item.key);
    }
    Ok(begin.elapsed() / u32::try_from(ROUNDS)?)
}
