//! What the system says of this process, under the names that Prometheus' own clients use.
//!
//! Read when somebody scrapes, and only then: it is of no simulation, and the same for every manager of
//! the process. What the system does not tell (there is no `/proc`) is left out.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// All of them, as OpenMetrics text without its end.
pub(crate) fn text() -> String {
    let mut text = String::new();
    let mut show = |name: &str, kind: &str, help: &str, value: Option<String>| {
        let Some(value) = value else { return };
        let suffix = if kind == "counter" { "_total" } else { "" };
        // Writing to a string does not fail.
        let _ =
            writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{suffix} {value}");
    };
    let stat = fs::read_to_string("/proc/self/stat").ok();
    let stat = stat.as_deref().and_then(Stat::of);
    let of = |value: fn(&Stat) -> u64| stat.as_ref().map(|stat| value(stat).to_string());
    let cpu = stat.as_ref().map(|stat| in_seconds(stat.cpu));
    let begun = stat.as_ref().and_then(|stat| Some(booted()? + in_seconds(stat.begun)));
    let seconds = |value: Option<Duration>| value.map(|value| value.as_secs_f64().to_string());
    // The folder that is being read is one of them.
    let open = fs::read_dir("/proc/self/fd").ok().map(|open| open.count().saturating_sub(1));
    let most = getrlimit(Resource::Nofile).current.filter(|_| open.is_some());
    show("process_cpu_seconds", "counter", "CPU time of this process", seconds(cpu));
    show("process_resident_memory_bytes", "gauge", "Memory it has", of(|stat| stat.resident));
    show("process_virtual_memory_bytes", "gauge", "Memory it has asked for", of(|stat| stat.size));
    show("process_start_time_seconds", "gauge", "When it began, since 1970", seconds(begun));
    show("process_open_fds", "gauge", "Files it has open", open.map(|open| open.to_string()));
    show("process_max_fds", "gauge", "Files it may have open", most.map(|most| most.to_string()));
    text
}

/// What `/proc/self/stat` says.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// User and system time, in ticks.
    cpu: u64,
    /// When it began, in ticks after the system.
    begun: u64,
    /// In bytes.
    size: u64,
    resident: u64,
}

impl Stat {
    fn of(stat: &str) -> Option<Self> {
        // The name of the program is in brackets, and may have any of its own. The third field follows.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let page = u64::try_from(page_size()).ok()?;
        Some(Self {
            cpu: field(14)? + field(15)?,
            begun: field(22)?,
            size: field(23)?,
            resident: field(24)? * page,
        })
    }
}

fn in_seconds(ticks: u64) -> Duration {
    let tick = 1_000_000_000 / clock_ticks_per_second().max(1);
    Duration::from_nanos(ticks.saturating_mul(tick))
}

/// When the system began, since 1970.
fn booted() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs::File;

    use homeostat_env::Env;

    use super::*;

    fn value(name: &str) -> f64 {
        let text = text();
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = lines.next().unwrap_or_else(|| panic!("no {name} in {text}"));
        value.parse().unwrap()
    }

    #[test]
    fn what_this_process_takes_is_told_and_plausible() {
        let open: Vec<File> = (0..50).map(|_| File::open("/dev/null").unwrap()).collect();
        assert!(value("process_open_fds") >= 53.0 && value("process_open_fds") < 10_000.0);
        assert!(value("process_max_fds") >= value("process_open_fds"));
        drop(open);
        let resident = value("process_resident_memory_bytes");
        let memory = vec![1_u8; 64 << 20];
        assert!(value("process_resident_memory_bytes") - resident > f64::from(32 << 20));
        assert!(value("process_virtual_memory_bytes") > f64::from(64 << 20));
        drop(memory);
        let now = Env::system().now().as_second();
        let begun = value("process_start_time_seconds");
        let age = Duration::from_secs(u64::try_from(now).unwrap()).as_secs_f64() - begun;
        let system = booted().unwrap().as_secs_f64();
        assert!((-2.0..3600.0).contains(&age) && begun > system + 1.0, "{age} {begun} {system}");
        // The clock of the process goes while it works.
        let (before, mut sum) = (value("process_cpu_seconds_total"), 0_u64);
        let busy = (0..1_000_000).any(|round| {
            sum = (0..10_000).fold(sum, |sum, next| sum.rotate_left(7) ^ next);
            round % 100 == 99 && value("process_cpu_seconds_total") > before
        });
        assert!(busy && value("process_cpu_seconds_total") < 3600.0, "{before} {sum}");
    }

    #[test]
    fn a_name_with_brackets_hides_no_field() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 30 12 13 14 15 16 17 18 700 8000 9 0";
        let stat = Stat::of(&format!("1 (a) b (c)) {rest}")).unwrap();
        let page = u64::try_from(page_size()).unwrap();
        assert_eq!(stat, Stat { cpu: 42, begun: 700, size: 8000, resident: 9 * page });
        assert_eq!(Stat::of("1 (a) S 1"), None);
    }
}
