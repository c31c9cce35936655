//! What the host has for Pods: processors, memory, and room on the disk where they live.

use std::path::{Path, PathBuf};

/// What the host has. A control group that this process lives in may leave it less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) cpus: usize,
    /// In bytes.
    pub(crate) memory: u64,
    /// In bytes.
    pub(crate) disk: u64,
}

impl Capacity {
    /// What there is, as far as the system tells, for Pods with files below `data`.
    pub(super) fn of_host(data: &Path) -> Self {
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        let memory = total(&read(Path::new("/proc/meminfo")));
        let limits = groups(&read(Path::new("/proc/self/cgroup")));
        let limits = limits.iter().filter_map(|group| read(group).trim().parse().ok());
        let disk = rustix::fs::statvfs(data).map_or(0, |disk| disk.f_blocks * disk.f_frsize);
        Self {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory: limits.chain(memory).min().unwrap_or(1 << 30),
            disk,
        }
    }
}

/// The memory of the machine, from `/proc/meminfo`.
fn total(words: &str) -> Option<u64> {
    let line = words.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The files with the limits of a control group (`/proc/self/cgroup`) and of those around it.
fn groups(words: &str) -> Vec<PathBuf> {
    let own = words.lines().find_map(|line| line.strip_prefix("0::/"));
    let own = own.map(|own| Path::new("/sys/fs/cgroup").join(own));
    let around = own.iter().flat_map(|own| own.ancestors());
    let around = around.take_while(|group| group.starts_with("/sys/fs/cgroup"));
    around.map(|group| group.join("memory.max")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_that_of_the_machine_or_of_the_group_within() {
        assert_eq!(total("MemTotal:  16 kB\nMemFree: 8 kB\n"), Some(16384));
        assert_eq!(
            groups("1:name=systemd:/other\n0::/user.slice/a\n"),
            [
                "/sys/fs/cgroup/user.slice/a/memory.max",
                "/sys/fs/cgroup/user.slice/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
            .map(PathBuf::from)
        );
        assert_eq!(groups("0::/\n"), [PathBuf::from("/sys/fs/cgroup/memory.max")]);
    }

    #[test]
    fn this_host_has_something_of_everything() {
        let Capacity { cpus, memory, disk } = Capacity::of_host(&std::env::temp_dir());
        assert!(cpus > 0 && memory > 0 && disk > 0);
    }
}
