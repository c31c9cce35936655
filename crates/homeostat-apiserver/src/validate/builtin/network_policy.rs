//! NetworkPolicies: who may talk to whom, by labels or by addresses, through which ports.

use serde_json::Value;

use super::report::{Report, at, list, text};
use super::workload::selector;
use crate::validate::ip::{self, Range};
use crate::validate::name;

/// The rules of a policy, each with the field that names the other side.
const DIRECTIONS: &[(&str, &str)] = &[("ingress", "from"), ("egress", "to")];

pub(super) fn network_policy(value: &Value, old: Option<&Value>, report: &mut Report) {
    selector(at(value, "/spec/podSelector"), "spec.podSelector", report);
    // What was written before the rules were may stay.
    let known = old.map(blocks).unwrap_or_default();
    for (direction, peers) in DIRECTIONS {
        for (index, rule) in list(value, &format!("/spec/{direction}")).iter().enumerate() {
            let path = format!("spec.{direction}[{index}]");
            for (index, given) in list(rule, "/ports").iter().enumerate() {
                port(given, &format!("{path}.ports[{index}]"), report);
            }
            for (index, given) in list(rule, &format!("/{peers}")).iter().enumerate() {
                peer(given, &format!("{path}.{peers}[{index}]"), &known, report);
            }
        }
    }
    let types = list(value, "/spec/policyTypes");
    if types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        report.invalid("spec.policyTypes", types.to_vec(), detail);
        return;
    }
    for (index, ty) in types.iter().enumerate() {
        if !matches!(ty.as_str(), Some("Ingress" | "Egress")) {
            report.unsupported(&format!("spec.policyTypes[{index}]"), ty, &["Ingress", "Egress"]);
        }
    }
}

/// All ranges of addresses in the policy.
fn blocks(policy: &Value) -> Vec<&str> {
    let rules = DIRECTIONS.iter().flat_map(|(direction, peers)| {
        let rules = list(policy, &format!("/spec/{direction}"));
        rules.iter().flat_map(move |rule| list(rule, &format!("/{peers}")))
    });
    rules
        .filter_map(|peer| peer.get("ipBlock"))
        .flat_map(|block| {
            let except = list(block, "/except").iter().filter_map(Value::as_str);
            except.chain([text(block, "/cidr")])
        })
        .collect()
}

fn port(port: &Value, path: &str, report: &mut Report) {
    let (protocol, known) = (at(port, "/protocol"), ["TCP", "UDP", "SCTP"]);
    if protocol.as_str().is_some_and(|protocol| !known.contains(&protocol)) {
        report.unsupported(&format!("{path}.protocol"), protocol, &known);
    }
    let end = at(port, "/endPort").as_i64();
    let end_path = format!("{path}.endPort");
    match at(port, "/port") {
        Value::Number(number) => {
            let first = number.as_i64().unwrap_or_default();
            report.port(format!("{path}.port"), first);
            if let Some(end) = end {
                if end < first {
                    // The number that is shown is the first one there, too.
                    let detail = "must be greater than or equal to `port`";
                    report.invalid(end_path.as_str(), first, detail);
                }
                report.port(end_path, end);
            }
        }
        Value::String(name) => {
            if let Some(end) = end {
                let detail = "may not be specified when `port` is non-numeric";
                report.invalid(end_path, end, detail);
            }
            for problem in name::port_name(name) {
                report.invalid(format!("{path}.port"), name.as_str(), problem);
            }
        }
        _ => {
            if let Some(end) = end {
                let detail = "may not be specified when `port` is not specified";
                report.invalid(end_path, end, detail);
            }
        }
    }
}

fn peer(peer: &Value, path: &str, known: &[&str], report: &mut Report) {
    let mut selectors = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if let Some(given) = peer.get(field) {
            selectors += 1;
            selector(given, &format!("{path}.{field}"), report);
        }
    }
    let block = peer.get("ipBlock");
    if let Some(given) = block {
        addresses(given, &format!("{path}.ipBlock"), known, report);
    }
    match (selectors, block) {
        (0, None) => report.required(path, "must specify a peer"),
        (1.., Some(_)) => report.forbidden(path, "may not specify both ipBlock and another peer"),
        _ => {}
    }
}

fn addresses(block: &Value, path: &str, known: &[&str], report: &mut Report) {
    let cidr = text(block, "/cidr");
    if cidr.is_empty() {
        report.required(format!("{path}.cidr"), "");
        return;
    }
    let Some(whole) = range(cidr, &format!("{path}.cidr"), known, report) else { return };
    for (index, except) in list(block, "/except").iter().enumerate() {
        let (except, path) =
            (except.as_str().unwrap_or_default(), format!("{path}.except[{index}]"));
        let Some(part) = range(except, &path, known, report) else { continue };
        if !whole.holds(part) {
            report.invalid(path, except, "must be a strict subset of `cidr`");
        }
    }
}

/// Reads a range, and says what is wrong with it.
fn range(text: &str, path: &str, known: &[&str], report: &mut Report) -> Option<Range> {
    if let Some(problem) = ip::range_problem(text).filter(|_| !known.contains(&text)) {
        report.invalid(path, text, problem);
    }
    Range::generous(text)
}
