//! The figures as a table for people.

use std::fmt::Write as _;
use std::time::Duration;

use crate::measure::{Figures, Sizes};
use crate::process;

struct Row {
    what: String,
    ours: f64,
    theirs: f64,
    unit: &'static str,
    /// What the ratio or our figure shall be.
    goal: &'static str,
    /// Whether more is better.
    more: bool,
}

pub(crate) fn render(
    ours: &Figures,
    theirs: &Figures,
    sizes: Sizes,
    in_process: [Duration; 2],
) -> String {
    let mut text = String::from(
        "`cargo xtask bench api`. Both sides on one machine, one after the other, over TLS with the same client,\n\
         both durable (a write is on disk before it is acknowledged). Objects are ConfigMaps of about 1 kB.\n\
         All watchers come when all objects are there. Ours has the allocator of the `homeostat` binary; a start\n\
         in-process has the system's, ends when a client has a list, and is the median of fresh processes: their\n\
         first server and their second.\n\n",
    );
    let _ = writeln!(text, "Machine: {}.\n", process::machine());
    text.push_str(
        "| figure | homeostat | kube-apiserver + etcd | ratio | goal |\n|---|---:|---:|---:|---|\n",
    );
    for row in rows(ours, theirs, sizes) {
        let ratio = if row.more { row.ours / row.theirs } else { row.theirs / row.ours };
        let _ = writeln!(
            text,
            "| {} | {} {unit} | {} {unit} | {ratio:.1}× | {} |",
            row.what,
            shown(row.ours),
            shown(row.theirs),
            row.goal,
            unit = row.unit,
        );
    }
    let [first, second] = in_process.map(|taken| shown(milliseconds(taken)));
    let _ = writeln!(
        text,
        "| start to ready in-process: first, later | {first} ms, {second} ms | – | – | ≤ 5 ms |"
    );
    text
}

fn rows(ours: &Figures, theirs: &Figures, sizes: Sizes) -> Vec<Row> {
    let row = |what: &str, unit, goal, more, figure: &dyn Fn(&Figures) -> f64| Row {
        what: what.to_owned(),
        ours: figure(ours),
        theirs: figure(theirs),
        unit,
        goal,
        more,
    };
    let mut rows = vec![
        row("start to ready", "ms", "≤ 50 ms", false, &|it| milliseconds(it.ready)),
        row("memory, idle", "MB", "≤ 30 MB", false, &|it| megabytes(it.idle_bytes)),
    ];
    for (at, (verb, _)) in ours.cpu.iter().enumerate() {
        let what = format!("CPU per {}", verb.name());
        rows.push(row(&what, "µs", "10×", false, &|it| microseconds(it.cpu[at].1)));
    }
    for (at, (at_once, _)) in ours.creates.iter().enumerate() {
        let what = format!("creates per second, {at_once} at once");
        rows.push(row(&what, "/s", "5×", true, &|it| it.creates[at].1));
    }
    let what = format!("memory per object at {}", sizes.objects);
    rows.push(row(&what, "kB", "grows with the bytes", false, &|it| it.object_bytes / 1000.0));
    let what = "memory per object ten times as long".to_owned();
    rows.push(row(&what, "kB", "grows with the bytes", false, &|it| it.long_object_bytes / 1000.0));
    let what = format!("CPU per create at {} objects", sizes.objects);
    rows.push(row(&what, "µs", "as when empty", false, &|it| microseconds(it.full_create_cpu)));
    let watchers = sizes.watchers;
    let what = format!("a change seen by all of {watchers} watchers then");
    rows.push(row(&what, "ms", "", false, &|it| milliseconds(it.fan_out)));
    let what = format!("CPU for a change to {watchers} watchers");
    rows.push(row(&what, "ms", "", false, &|it| milliseconds(it.fan_out_cpu)));
    rows.push(row("memory per watcher", "kB", "", false, &|it| it.watcher_bytes / 1000.0));
    rows
}

pub(crate) fn shown(figure: f64) -> String {
    if figure >= 100.0 {
        format!("{figure:.0}")
    } else if figure >= 10.0 {
        format!("{figure:.1}")
    } else {
        format!("{figure:.2}")
    }
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub(crate) fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
