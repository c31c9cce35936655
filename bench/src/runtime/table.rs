//! The figures of the runtime as tables for people.

use std::fmt::Write as _;
use std::time::Duration;

use super::queue::{Queued, WAITING};
use super::{Figures, IN_FLIGHT};
use crate::process;
use crate::table::{microseconds, milliseconds, shown};

/// A figure: what it is, its unit, what shall come of it, and how to get it.
type Row = (String, &'static str, &'static str, Box<dyn Fn(&Figures) -> f64>);

pub(super) fn render(
    all: &[(&str, Figures)],
    queues: &[Queued],
    [pods, size, events]: [usize; 3],
) -> String {
    let mut text = format!(
        "`cargo xtask bench runtime`. {pods} Pods of {size} bytes on the embedded server (over TLS, in memory, with the
allocator of the `homeostat` binary), the same no-op controller with 10 workers on each runtime. All read JSON: the
server sends no protobuf, which controller-runtime asks for. kube-rs is its `Controller` as it comes, and once more with
managedFields dropped through its unstable streams; controller-runtime drops managedFields, reads without copies, and
had to give free memory back before it was weighed. Memory is resident memory beyond that of the idle process. All
figures are the medians of five rounds, all controllers in turn. Events: {events} Pods were changed once each, one every
2 ms, in the server's own process; the time runs from the server's answer to the reconcile. In flight: ConfigMaps without
data, each reconcile unfinished until so many later ones have begun, {pods} of them from when so many are under way, on one
processor: what one costs that ends while another begins.

Machine: {}.

| figure |",
        process::machine(),
    );
    for (name, _) in all {
        let _ = write!(text, " {name} |");
    }
    text.push_str(" ratios | goal |\n|---|");
    text.push_str(&"---:|".repeat(all.len() + 1));
    text.push_str("---|\n");
    for (what, unit, goal, figure) in rows(pods) {
        let _ = write!(text, "| {what} |");
        for (_, figures) in all {
            let _ = write!(text, " {} {unit} |", shown(figure(figures)));
        }
        let ratio = |other: &(&str, Figures)| ratio(figure(&all[0].1), figure(&other.1));
        let ratios = all.iter().skip(1).map(ratio).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, " {ratios} | {goal} |");
    }
    queue_table(&mut text, queues);
    text
}

fn rows(pods: usize) -> Vec<Row> {
    let row = |what: &str, unit, goal, figure: fn(&Figures) -> f64| -> Row {
        (what.to_owned(), unit, goal, Box::new(figure))
    };
    let in_flight = IN_FLIGHT.iter().enumerate().map(|(which, most)| -> Row {
        let goal = if which == 0 { "" } else { "as with 10" };
        let figure = move |it: &Figures| microseconds(it.in_flight[which]);
        (format!("CPU per reconcile, {most} in flight"), "µs", goal, Box::new(figure))
    });
    let others = vec![
        row("memory per Pod", "kB", "12× kube-rs, 5× controller-runtime", |it| {
            kilobytes(it.pod_bytes)
        }),
        row("memory per Pod, peak", "kB", "", |it| kilobytes(it.peak_pod_bytes)),
        row(&format!("CPU until all {pods} are reconciled"), "s", "4×", |it| {
            it.cold_cpu.as_secs_f64()
        }),
        row("time until then", "s", "", |it| it.cold_wall.as_secs_f64()),
        row("event to reconcile, median", "ms", "", |it| milliseconds(it.median)),
        row("event to reconcile, p99", "ms", "2×", |it| milliseconds(it.p99)),
        row("CPU per event", "µs", "", |it| microseconds(it.event_cpu)),
    ];
    others.into_iter().chain(in_flight).collect()
}

fn queue_table(text: &mut String, queues: &[Queued]) {
    text.push_str(
        "\nOne add, get, forget and done of a work queue; ours lets 100 namespaces take turns, as those of controllers do:\n\n\
         | keys in the queue |",
    );
    for queue in queues {
        let _ = write!(text, " {} |", queue.name);
    }
    text.push_str(" ratios | goal |\n|---|");
    text.push_str(&"---:|".repeat(queues.len() + 1));
    text.push_str("---|\n");
    let alone: fn(&Queued) -> Duration = |queue| queue.alone;
    for (depth, figure) in [(0, alone), (WAITING, |queue: &Queued| queue.behind_many)] {
        let nanoseconds = |queue: &Queued| figure(queue).as_secs_f64() * 1e9;
        let _ = write!(text, "| {depth} |");
        for queue in queues {
            let _ = write!(text, " {} ns |", shown(nanoseconds(queue)));
        }
        let ratio = |other: &Queued| ratio(nanoseconds(&queues[0]), nanoseconds(other));
        let ratios = queues.iter().skip(1).map(ratio).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, " {ratios} | 2× client-go |");
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn kilobytes(bytes: u64) -> f64 {
    bytes as f64 / 1e3
}

fn ratio(ours: f64, theirs: f64) -> String {
    format!("{:.1}×", theirs / ours)
}
