//! How a Pod finds names: its resolver, names of its own, and the addresses in its status.

use serde_json::Value;

use super::report::{Report, at, list, text};
use crate::validate::{ip, name};

const MOST_SERVERS: usize = 3;
const MOST_SEARCHED: usize = 32;
const LONGEST_SEARCH: usize = 2048;

/// `dnsConfig` and what `dnsPolicy` asks of it.
pub(super) fn resolution(spec: &Value, path: &str, report: &mut Report) {
    let path = format!("{path}.dnsConfig");
    let config = at(spec, "/dnsConfig");
    let (servers, searched) = (list(config, "/nameservers"), list(config, "/searches"));
    if text(spec, "/dnsPolicy") == "None" {
        if config.is_null() {
            report.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            report.required(format!("{path}.nameservers"), detail);
            return;
        }
    }
    if servers.len() > MOST_SERVERS {
        let detail = format!("must not have more than {MOST_SERVERS} nameservers");
        report.invalid(format!("{path}.nameservers"), servers.to_vec(), detail);
    }
    for (index, server) in servers.iter().enumerate() {
        let server = server.as_str().unwrap_or_default();
        if let Some(problem) = ip::problem(server) {
            report.invalid(format!("{path}.nameservers[{index}]"), server, problem);
        }
    }
    if searched.len() > MOST_SEARCHED {
        let detail = format!("must not have more than {MOST_SEARCHED} search paths");
        report.invalid(format!("{path}.searches"), searched.to_vec(), detail);
    }
    // As one line, with spaces between.
    let lengths = searched.iter().filter_map(Value::as_str).map(|search| search.len() + 1);
    if lengths.sum::<usize>() > LONGEST_SEARCH + 1 {
        let detail = format!(
            "must not have more than {LONGEST_SEARCH} characters (including spaces) in the search list"
        );
        report.invalid(format!("{path}.searches"), searched.to_vec(), detail);
    }
    for (index, search) in searched.iter().enumerate() {
        let search = search.as_str().unwrap_or_default();
        let plain = search.strip_suffix('.').unwrap_or(search);
        for problem in name::dns_subdomain_or_underscore(plain).iter().filter(|_| search != ".") {
            report.invalid(format!("{path}.searches[{index}]"), plain, problem.as_str());
        }
    }
    for (index, option) in list(config, "/options").iter().enumerate() {
        if text(option, "/name").is_empty() {
            report.required(format!("{path}.options[{index}]"), "must not be empty");
        }
    }
}

/// Names that only this Pod knows.
pub(super) fn aliases(spec: &Value, path: &str, report: &mut Report) {
    for (index, alias) in list(spec, "/hostAliases").iter().enumerate() {
        let path = format!("{path}.hostAliases[{index}]");
        let address = text(alias, "/ip");
        if let Some(problem) = ip::problem(address) {
            report.invalid(format!("{path}.ip"), address, problem);
        }
        for (index, host) in list(alias, "/hostnames").iter().enumerate() {
            let host = host.as_str().unwrap_or_default();
            for problem in name::dns_subdomain(host) {
                report.invalid(format!("{path}.hostnames[{index}]"), host, problem);
            }
        }
    }
}

/// The addresses in the status of a Pod, except those it had before.
pub(super) fn addresses(pod: &Value, old: Option<&Value>, report: &mut Report) {
    for field in ["podIPs", "hostIPs"] {
        let pointer = format!("/status/{field}");
        let known = old.map(|old| list(old, &pointer)).unwrap_or_default();
        let known: Vec<&str> = known.iter().map(|address| text(address, "/ip")).collect();
        for (index, address) in list(pod, &pointer).iter().enumerate() {
            let address = text(address, "/ip");
            if let Some(problem) = ip::problem(address).filter(|_| !known.contains(&address)) {
                report.invalid(format!("status.{field}[{index}]"), address, problem);
            }
        }
    }
}
