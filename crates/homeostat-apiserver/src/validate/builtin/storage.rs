//! What storage is made of: classes of volumes, drivers, and what drivers have on a node.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::devices::{driver, too_long};
use super::report::{Report, at, list, text};
use super::workload::selector;
use crate::decode::Quantity;
use crate::go::internal;
use crate::validate::name;

/// How many parameters a class has at most, and how many bytes they take together.
const MOST_PARAMETERS: usize = 512;
const PARAMETERS_SIZE: usize = 256 * 1024;
const LONGEST_NODE_ID: usize = 256;

pub(super) fn storage_class(value: &Value, old: Option<&Value>, report: &mut Report) {
    provisioner(text(value, "/provisioner"), "provisioner", report);
    parameters(value, report);
    let policy = text(value, "/reclaimPolicy");
    if !policy.is_empty() {
        report.one_of("reclaimPolicy", policy, &["Delete", "Retain"]);
    }
    let (mode, modes) = (at(value, "/volumeBindingMode"), ["Immediate", "WaitForFirstConsumer"]);
    if !mode.as_str().is_some_and(|mode| modes.contains(&mode)) {
        report.unsupported("volumeBindingMode", mode, &modes);
    }
    topologies(list(value, "/allowedTopologies"), report);
    if let Some(old) = old {
        report.immutable(value, Some(old), "/parameters");
        report.immutable(value, Some(old), "/provisioner");
        report.immutable(value, Some(old), "/reclaimPolicy");
        report.immutable(value, Some(old), "/volumeBindingMode");
    }
}

pub(super) fn attributes_class(value: &Value, old: Option<&Value>, report: &mut Report) {
    for field in ["driverName", "parameters"] {
        if old.is_some_and(|old| old.get(field) != value.get(field)) {
            report.forbidden(field, &format!("updates to {field} are forbidden."));
        }
    }
    provisioner(text(value, "/driverName"), "driverName", report);
    parameters(value, report);
    if at(value, "/parameters").as_object().is_none_or(serde_json::Map::is_empty) {
        report.required("parameters", "must contain at least one key/value pair");
    }
}

/// Who provides volumes.
fn provisioner(given: &str, path: &str, report: &mut Report) {
    let given = given.to_lowercase();
    if given.is_empty() {
        report.required(path, "");
        return;
    }
    for problem in name::qualified(&given) {
        report.invalid(path, given.as_str(), problem);
    }
}

fn parameters(value: &Value, report: &mut Report) {
    let Some(given) = at(value, "/parameters").as_object() else { return };
    if given.len() > MOST_PARAMETERS {
        too_long("parameters", MOST_PARAMETERS, report);
        return;
    }
    if given.contains_key("") {
        report.invalid("parameters", "", "field can not be empty.");
    }
    let sizes = given.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len));
    if sizes.sum::<usize>() > PARAMETERS_SIZE {
        too_long("parameters", PARAMETERS_SIZE, report);
    }
}

/// Where volumes of a class may be.
fn topologies(terms: &[Value], report: &mut Report) {
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = vec![BTreeMap::new(); terms.len()];
    for (index, term) in terms.iter().enumerate() {
        let path = format!("allowedTopologies[{index}].matchLabelExpressions");
        let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (index, rule) in list(term, "/matchLabelExpressions").iter().enumerate() {
            let path = format!("{path}[{index}]");
            let mut values = BTreeSet::new();
            if list(rule, "/values").is_empty() {
                report.required(format!("{path}.values"), "");
            }
            for (index, value) in list(rule, "/values").iter().enumerate() {
                let value = value.as_str().unwrap_or_default();
                if !values.insert(value) {
                    report.duplicate(format!("{path}.values[{index}]"), value);
                }
            }
            let key = text(rule, "/key");
            for problem in name::qualified(key) {
                report.invalid(format!("{path}.key"), key, problem);
            }
            if keys.insert(key, values).is_some() {
                report.duplicate(format!("{path}.key"), key);
            }
        }
        // A term that asks for nothing is like one for every term there is, to begin with.
        for _ in seen.iter().filter(|other| **other == keys) {
            report.duplicate(path.as_str(), "");
        }
        seen.push(keys);
    }
}

pub(super) fn csi_node(value: &Value, old: Option<&Value>, report: &mut Report) {
    for before in old.map(|old| list(old, "/spec/drivers")).unwrap_or_default() {
        kept(before, list(value, "/spec/drivers"), report);
    }
    let drivers = list(value, "/spec/drivers");
    for (index, given) in drivers.iter().enumerate() {
        let path = format!("spec.drivers[{index}]");
        let (name, id) = (text(given, "/name"), text(given, "/nodeID"));
        driver(name, &format!("{path}.name"), report);
        if id.is_empty() {
            report.required(format!("{path}.nodeID"), "");
        } else if id.len() > LONGEST_NODE_ID {
            let why = format!("must be {LONGEST_NODE_ID} characters or less");
            report.invalid(format!("{path}.nodeID"), id, why);
        }
        if let Some(count) = at(given, "/allocatable/count").as_i64().filter(|count| *count < 0) {
            let why = "must be greater than or equal to 0";
            report.invalid(format!("{path}.allocatable.count"), count, why);
        }
        if drivers[..index].iter().any(|other| text(other, "/name") == name) {
            report.duplicate(format!("{path}.name"), name);
        }
        let keys = list(given, "/topologyKeys");
        for (index, key) in keys.iter().enumerate() {
            let shown = key.as_str().unwrap_or_default();
            if shown.is_empty() {
                report.required(path.as_str(), "");
            }
            if keys[..index].contains(key) {
                report.duplicate(path.as_str(), shown);
            }
            for problem in name::qualified(shown) {
                report.invalid(path.as_str(), shown, problem);
            }
        }
    }
}

/// A driver that stays on a node stays the same, but for how much it can take.
fn kept(before: &Value, drivers: &[Value], report: &mut Report) {
    let name = text(before, "/name");
    for now in drivers.iter().filter(|now| text(now, "/name") == name) {
        let same = |field: &str| at(before, field) == at(now, field);
        if !(same("/nodeID") && same("/topologyKeys")) {
            let mut shown = internal::form("io.k8s.api.storage.v1.CSINodeDriver", now);
            shown["Allocatable"] = Value::Null;
            report.invalid("spec.drivers", shown, "field is immutable");
        }
    }
}

/// How much of a class is left for some nodes.
pub(super) fn capacity(value: &Value, old: Option<&Value>, report: &mut Report) {
    report.immutable(value, old, "/nodeTopology");
    report.immutable(value, old, "/storageClassName");
    selector(at(value, "/nodeTopology"), "nodeTopology", report);
    let class = text(value, "/storageClassName");
    for problem in name::dns_subdomain(class) {
        report.invalid("storageClassName", class, problem);
    }
    let amount = text(value, "/capacity");
    if amount.parse::<Quantity>().is_ok_and(Quantity::is_negative) {
        report.invalid("capacity", amount, "must be greater than or equal to 0");
    }
}

/// The shortest and the longest life of a token, in seconds.
const LIFE_OF_TOKENS: [i64; 2] = [600, 1 << 32];

pub(super) fn csi_driver(value: &Value, old: Option<&Value>, report: &mut Report) {
    let policy = at(value, "/spec/fsGroupPolicy");
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    if policy.as_str().is_some_and(|policy| !policies.contains(&policy)) {
        report.unsupported("spec.fsGroupPolicy", policy, &policies);
    }
    let requests = list(value, "/spec/tokenRequests");
    for (index, request) in requests.iter().enumerate() {
        let path = format!("spec.tokenRequests[{index}]");
        let audience = text(request, "/audience");
        if requests[..index].iter().any(|other| text(other, "/audience") == audience) {
            report.duplicate(format!("{path}.audience"), audience);
            continue;
        }
        let Some(seconds) = at(request, "/expirationSeconds").as_i64() else { continue };
        let path = format!("{path}.expirationSeconds");
        if seconds < LIFE_OF_TOKENS[0] {
            report.invalid(path, seconds, "may not specify a duration less than 10 minutes");
        } else if seconds > LIFE_OF_TOKENS[1] {
            report.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds");
        }
    }
    for mode in list(value, "/spec/volumeLifecycleModes") {
        if !matches!(mode.as_str(), Some("Persistent" | "Ephemeral")) {
            report.unsupported("spec.volumeLifecycleModes", mode, &["Persistent", "Ephemeral"]);
        }
    }
    let period = at(value, "/spec/nodeAllocatableUpdatePeriodSeconds").as_i64();
    if let Some(period) = period.filter(|period| *period < 10) {
        let detail = "must be greater than or equal to 10 seconds";
        report.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, detail);
    }
    let in_secrets = at(value, "/spec/serviceAccountTokenInSecrets");
    if in_secrets.is_boolean() && requests.is_empty() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        report.invalid("spec.serviceAccountTokenInSecrets", in_secrets.clone(), detail);
    }
    let Some(old) = old else { return };
    // The path of the first one is misspelt there.
    for (field, path) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        let (now, before) =
            (at(value, &format!("/spec/{field}")), at(old, &format!("/spec/{field}")));
        if now != before {
            report.invalid(format!("spec.{path}"), now.clone(), "field is immutable");
        }
    }
}
