//! What is measured, in the order it is measured: from an empty server to a full one.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::mpsc;

use crate::load::{self, Verb};
use crate::side::Side;

/// How much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) objects: usize,
    pub(crate) watchers: usize,
}

/// What came out, for one side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    pub(crate) ready: Duration,
    pub(crate) idle_bytes: u64,
    /// Processor time of one request.
    pub(crate) cpu: Vec<(Verb, Duration)>,
    pub(crate) full_create_cpu: Duration,
    /// Creates per second, with this many at once.
    pub(crate) creates: Vec<(usize, f64)>,
    pub(crate) object_bytes: f64,
    /// The same of objects with [`LONG`] bytes of text.
    pub(crate) long_object_bytes: f64,
    /// From a change to the moment the last watcher has it, on average.
    pub(crate) fan_out: Duration,
    pub(crate) fan_out_cpu: Duration,
    pub(crate) watcher_bytes: f64,
}

/// What costs how much, in this order, and how many of each there are; writes are all of the same
/// objects.
const REQUESTS: [(Verb, usize); 7] = [
    (Verb::Get, 3000),
    (Verb::List, 100),
    (Verb::Create, CREATES),
    (Verb::Update, CREATES),
    (Verb::Patch, CREATES),
    (Verb::Apply, CREATES),
    (Verb::Delete, CREATES),
];
const CREATES: usize = 2000;
const CHANGES: usize = 50;
/// How many creates at once, and how many in all.
const AT_ONCE: [(usize, usize); 3] = [(1, CREATES / 4), (16, CREATES), (64, CREATES)];
/// How many objects [`requests`] makes.
pub(crate) const WRITES: usize = CREATES / 4 + 3 * CREATES;
/// Bytes of text in an object, and in one of those that are long.
const SHORT: usize = 700;
const LONG: usize = 7000;
/// How many long ones there are.
const LONG_ONES: usize = 5000;
/// A server that has done nothing for so long is idle.
const SETTLE: Duration = Duration::from_secs(5);

pub(crate) async fn all(side: &Side, sizes: Sizes) -> Result<Figures> {
    tokio::time::sleep(SETTLE).await;
    let idle_bytes = side.memory()?;
    let requests = requests(side, 0).await?;
    let mut figures = Figures { ready: side.ready, idle_bytes, ..requests };

    let last = sizes.objects - CREATES;
    let full = held(side, WRITES..last, SHORT, &mut figures.object_bytes).await?;
    let cpu = side.cpu()?;
    load::run(&side.client, Verb::Create, full..full + CREATES, SHORT, 16).await?;
    figures.full_create_cpu = each(side.cpu()? - cpu, CREATES);
    let long = full + CREATES..full + CREATES + LONG_ONES;
    held(side, long, LONG, &mut figures.long_object_bytes).await?;
    watch(side, sizes, &mut figures).await.context("watchers")?;
    Ok(figures)
}

/// Makes those objects, with so much text, and weighs them; gives the number of the next one.
async fn held(
    side: &Side,
    objects: Range<usize>,
    text: usize,
    bytes_each: &mut f64,
) -> Result<usize> {
    tokio::time::sleep(SETTLE).await;
    let (before, end) = (side.memory()?, objects.end);
    for begin in objects.clone().step_by(10_000) {
        let some = begin..end.min(begin + 10_000);
        load::run(&side.client, Verb::Create, some.clone(), text, 64)
            .await
            .with_context(|| format!("creates up to {} objects", some.end))?;
    }
    tokio::time::sleep(SETTLE).await;
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let per_object = side.memory()?.saturating_sub(before) as f64 / objects.len() as f64;
    *bytes_each = per_object;
    println!("  {end} objects, {text} bytes of text: {per_object:.0} bytes each");
    Ok(end)
}

/// Requests to a server that holds little. `number` of the objects made are there already.
pub(crate) async fn requests(side: &Side, mut number: usize) -> Result<Figures> {
    let mut figures = Figures::default();
    for (at_once, count) in AT_ONCE {
        let range = number..number + count;
        let taken = load::run(&side.client, Verb::Create, range, SHORT, at_once)
            .await
            .with_context(|| format!("{at_once} creates at once"))?;
        number += count;
        figures.creates.push((at_once, per_second(count, taken)));
        println!("  {at_once} at once: {:.0} creates/s", per_second(count, taken));
    }
    for (verb, count) in REQUESTS {
        // What is only read is what was made before.
        let first = if matches!(verb, Verb::Get | Verb::List) { 0 } else { number };
        let (before, at_once) = (side.cpu()?, if first == 0 { 1 } else { 16 });
        load::run(&side.client, verb, first..first + count, SHORT, at_once)
            .await
            .with_context(|| verb.name())?;
        let cpu = each(side.cpu()? - before, count);
        figures.cpu.push((verb, cpu));
        println!("  cpu of a {}: {cpu:?}", verb.name());
    }
    Ok(figures)
}

/// A thousand watchers of one kind, each with a connection of its own.
async fn watch(side: &Side, sizes: Sizes, figures: &mut Figures) -> Result<()> {
    tokio::time::sleep(SETTLE).await;
    let (seen, mut told) = mpsc::unbounded_channel();
    let before = side.memory()?;
    for _ in 0..sizes.watchers {
        load::watch(&side.another_client()?, seen.clone()).await?;
    }
    let cpu = side.cpu()?;
    let mut waited = Duration::ZERO;
    for value in 0..CHANGES {
        let begin = Instant::now();
        load::change(&side.client, 0, value).await?;
        for _ in 0..sizes.watchers {
            told.recv().await.context("a watch ended")?;
        }
        waited += begin.elapsed();
    }
    figures.fan_out = each(waited, CHANGES);
    figures.fan_out_cpu = each(side.cpu()? - cpu, CHANGES);
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let bytes = (side.memory()?.saturating_sub(before)) as f64 / sizes.watchers as f64;
    figures.watcher_bytes = bytes;
    println!("  {} watchers: {:?} until all have a change", sizes.watchers, figures.fan_out);
    Ok(())
}

fn each(all: Duration, count: usize) -> Duration {
    all / u32::try_from(count).unwrap_or(u32::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn per_second(count: usize, taken: Duration) -> f64 {
    count as f64 / taken.as_secs_f64()
}
