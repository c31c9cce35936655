//! The ports of all nodes that Services have: each belongs to one Service of the whole cluster.
//!
//! Which are taken follows from the Services that are stored; it is kept beside them, so that a
//! write never looks at all of them. Nothing is reserved before the commit: whoever holds the pen
//! draws, and what was drawn is taken once the Service is written.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::{Writer, metadata};

/// The ports that are given out.
const PORTS: Range<i64> = 30_000..32_768;
/// The first ones are left to those who ask for a port by its number, as long as there are others.
const BY_NUMBER: i64 = 86;

/// The ports that are taken.
#[derive(Debug, Default)]
pub(super) struct NodePorts(Mutex<BTreeSet<i64>>);

impl NodePorts {
    fn taken(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one write takes, before it is committed.
pub(super) struct Drawing<'a> {
    pool: &'a NodePorts,
    dry_run: bool,
    /// Where the search begins: a write that is run again finds the same ports.
    start: i64,
    drawn: Vec<i64>,
}

impl Drawing<'_> {
    /// Takes the port, or says why it cannot be had.
    pub(super) fn claim(&mut self, port: i64) -> Result<(), String> {
        // Whoever only tries may ask for any number.
        if !PORTS.contains(&port) && !self.dry_run {
            let (first, last) = (PORTS.start, PORTS.end - 1);
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {first}-{last}"
            ));
        }
        if self.drawn.contains(&port) || self.pool.taken().contains(&port) {
            return Err("provided port is already allocated".to_owned());
        }
        self.drawn.push(port);
        Ok(())
    }

    /// Takes any port that is free; there may be none.
    pub(super) fn next(&mut self) -> Option<i64> {
        let port = if self.dry_run {
            // A number that nobody gets is as good as any.
            self.drawn.iter().max().map_or(PORTS.end, |last| (*last).max(0)) + 1
        } else {
            let taken = self.pool.taken();
            let middle = PORTS.start + BY_NUMBER;
            let start = middle + self.start.rem_euclid(PORTS.end - middle);
            (start..PORTS.end)
                .chain(middle..start)
                .chain(PORTS.start..middle)
                .find(|port| !taken.contains(port) && !self.drawn.contains(port))?
        };
        self.drawn.push(port);
        Some(port)
    }
}

impl Writer<'_> {
    /// Begins to take ports for a Service.
    pub(super) fn draw_node_ports(&self, service: &Value) -> Drawing<'_> {
        let start = i64::from(crc32fast::hash(metadata::uid(service).as_bytes()));
        let pool = &self.registry.node_ports;
        Drawing { pool, dry_run: self.dry_run, start, drawn: Vec::new() }
    }

    /// Makes the ports of a Service its own and gives back those it has no more.
    pub(super) fn keep_node_ports(&self, old: Option<&Value>, service: Option<&Value>) {
        let mut taken = self.registry.node_ports.taken();
        for port in old.into_iter().flat_map(all) {
            taken.remove(&port);
        }
        taken.extend(service.into_iter().flat_map(all).filter(|port| PORTS.contains(port)));
    }

    /// Takes up where the last process stopped.
    pub(crate) fn restore_node_ports(&self) {
        for service in self.registry.store.newest().objects("services") {
            self.keep_node_ports(None, Some(&service.value()));
        }
    }
}

/// All ports of nodes that a Service has.
fn all(service: &Value) -> impl Iterator<Item = i64> {
    let checked = service.pointer("/spec/healthCheckNodePort").and_then(Value::as_i64);
    of_ports(service).chain(checked)
}

/// The ports of nodes that lead to ports of the Service.
pub(super) fn of_ports(service: &Value) -> impl Iterator<Item = i64> {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    ports.map(number).filter(|port| *port != 0)
}

/// The port of nodes that leads to a port of a Service; 0 if there is none.
pub(super) fn number(port: &Value) -> i64 {
    port.get("nodePort").and_then(Value::as_i64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Drawing, NodePorts, PORTS};

    fn drawing(pool: &NodePorts, start: i64) -> Drawing<'_> {
        Drawing { pool, dry_run: false, start, drawn: Vec::new() }
    }

    #[test]
    fn the_first_ports_are_given_out_last_and_no_port_twice() {
        let pool = NodePorts::default();
        let mut drawing = drawing(&pool, 12_345);
        let mut all: Vec<i64> = std::iter::from_fn(|| drawing.next()).collect();
        assert!(all[..2682].iter().all(|port| *port >= 30_086), "{all:?}");
        all.sort_unstable();
        assert_eq!(all, PORTS.collect::<Vec<_>>());
    }

    #[test]
    fn a_port_that_is_taken_or_out_of_range_is_refused_with_the_reason() {
        let pool = NodePorts::default();
        pool.taken().insert(30_100);
        let mut drawing = drawing(&pool, 14);
        assert_eq!(drawing.next(), Some(30_101));
        assert_eq!(drawing.claim(30_101).unwrap_err(), "provided port is already allocated");
        assert_eq!(drawing.claim(30_100).unwrap_err(), "provided port is already allocated");
        assert!(drawing.claim(80).unwrap_err().ends_with("valid ports is 30000-32767"));
    }
}
