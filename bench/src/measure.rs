//! What is measured, in the order it is measured: from an empty server to a full one.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::mpsc;

use crate::load;
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
    pub(crate) get_cpu: Duration,
    pub(crate) create_cpu: Duration,
    pub(crate) full_create_cpu: Duration,
    /// Creates per second, with this many at once.
    pub(crate) creates: Vec<(usize, f64)>,
    pub(crate) object_bytes: f64,
    /// From a change to the moment the last watcher has it, on average.
    pub(crate) fan_out: Duration,
    pub(crate) fan_out_cpu: Duration,
    pub(crate) watcher_bytes: f64,
}

const GETS: usize = 3000;
const CREATES: usize = 2000;
const CHANGES: usize = 50;
/// How many creates at once, and how many in all.
const AT_ONCE: [(usize, usize); 3] = [(1, CREATES / 4), (16, CREATES), (64, CREATES)];
/// How many objects [`writes`] makes.
pub(crate) const WRITES: usize = CREATES / 4 + 3 * CREATES;
/// A server that has done nothing for so long is idle.
const SETTLE: Duration = Duration::from_secs(5);

pub(crate) async fn all(side: &Side, sizes: Sizes) -> Result<Figures> {
    tokio::time::sleep(SETTLE).await;
    let idle_bytes = side.memory()?;

    let requests = writes(side, 0).await?;
    let mut figures = Figures { ready: side.ready, idle_bytes, ..requests };
    let mut number = WRITES;

    watch(side, sizes, &mut figures).await.context("watchers")?;

    tokio::time::sleep(SETTLE).await;
    let (before, held) = (side.memory()?, number);
    while number + CREATES < sizes.objects {
        let next = (number + 10_000).min(sizes.objects - CREATES);
        load::create(&side.client, number..next, 64)
            .await
            .with_context(|| format!("creates up to {next} objects"))?;
        number = next;
    }
    let cpu = side.cpu()?;
    load::create(&side.client, number..number + CREATES, 16).await?;
    number += CREATES;
    figures.full_create_cpu = each(side.cpu()? - cpu, CREATES);
    tokio::time::sleep(SETTLE).await;
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let per_object = (side.memory()?.saturating_sub(before)) as f64 / (number - held) as f64;
    figures.object_bytes = per_object;
    println!("  {number} objects: {per_object:.0} bytes each");
    Ok(figures)
}

/// Creates and gets of a server that holds little. `number` of the objects made are there already.
pub(crate) async fn writes(side: &Side, mut number: usize) -> Result<Figures> {
    let mut figures = Figures::default();
    for (at_once, count) in AT_ONCE {
        let taken = load::create(&side.client, number..number + count, at_once)
            .await
            .with_context(|| format!("{at_once} creates at once"))?;
        number += count;
        figures.creates.push((at_once, per_second(count, taken)));
        println!("  {at_once} at once: {:.0} creates/s", per_second(count, taken));
    }
    let before = side.cpu()?;
    load::get(&side.client, 0, GETS).await.context("gets")?;
    figures.get_cpu = each(side.cpu()? - before, GETS);
    let before = side.cpu()?;
    load::create(&side.client, number..number + CREATES, 16).await?;
    figures.create_cpu = each(side.cpu()? - before, CREATES);
    println!("  cpu: {:?} per get, {:?} per create", figures.get_cpu, figures.create_cpu);
    Ok(figures)
}

/// A thousand watchers of one kind, each with a connection of its own.
async fn watch(side: &Side, sizes: Sizes, figures: &mut Figures) -> Result<()> {
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
