//! `ResourceQuota`: a write that would exceed a quota of its namespace is refused, any other one is
//! charged to it. Only what the quota's status knows counts; the controller keeps that up.

use homeostat_quota::{Amounts, Measure, is_terminating, matches_scopes, missing_requirements};
use serde_json::Value;

use super::{Operation, Review};
use crate::registry::metadata;
use crate::status::Status;

/// What a quota has in use once the write that causes it is done.
#[derive(Debug)]
pub(crate) struct Charge {
    /// The quota's name.
    pub(crate) quota: String,
    /// Its `status.used`.
    pub(crate) used: Value,
}

/// Reviews leave no objects behind, and Events come and go by themselves.
const IGNORED: &[&str] = &[
    "events",
    "events.events.k8s.io",
    "bindings",
    "localsubjectaccessreviews.authorization.k8s.io",
    "subjectaccessreviews.authorization.k8s.io",
    "selfsubjectaccessreviews.authorization.k8s.io",
    "selfsubjectrulesreviews.authorization.k8s.io",
    "tokenreviews.authentication.k8s.io",
];

fn applies(review: &Review<'_>) -> bool {
    let resource = review.resource();
    if review.namespace.is_empty() || IGNORED.contains(&resource.as_str()) {
        return false;
    }
    match (resource.as_str(), review.subresource, review.operation) {
        (_, "", Operation::Create)
        | ("services" | "persistentvolumeclaims", "", Operation::Update)
        | ("pods", "resize", Operation::Update) => true,
        ("persistentvolumeclaims", "status", Operation::Update) => {
            let of = |claim: &Value| claim.pointer("/status/allocatedResources/storage").cloned();
            review.old.is_some_and(|old| of(old) != of(&review.object))
        }
        ("pods", "", Operation::Update) => {
            review.old.is_some_and(|old| is_terminating(old) != is_terminating(&review.object))
        }
        _ => false,
    }
}

pub(super) fn check(review: &Review<'_>) -> Result<Vec<Charge>, Status> {
    if !applies(review) {
        return Ok(Vec::new());
    }
    let resource = review.resource();
    let measure = Measure::of(&resource);
    let now = review.writer.registry.env.now();
    let mut pertinent = Vec::new();
    for quota in review.list("resourcequotas", review.namespace) {
        let hard = Amounts::read(quota.pointer("/status/hard"));
        let limited: Vec<&str> = hard.names().filter(|name| measure.measures(name)).collect();
        if limited.is_empty() || !matches_scopes(&quota, &resource, &review.object) {
            continue;
        }
        let name = metadata::name(&quota);
        if resource == "pods" {
            let missing = missing_requirements(&review.object, &limited);
            if !missing.is_empty() {
                let words: Vec<String> = missing
                    .iter()
                    .map(|(resource, containers)| {
                        let containers: Vec<&str> = containers.iter().map(String::as_str).collect();
                        format!("{resource} for: {}", containers.join(","))
                    })
                    .collect();
                let words = words.join("; ");
                return Err(review.forbid(&format!("failed quota: {name}: must specify {words}")));
            }
        }
        let used = Amounts::read(quota.pointer("/status/used"));
        if limited.iter().any(|name| used.get(name).is_none()) {
            let limited = limited.join(",");
            let words = format!("status unknown for quota: {name}, resources: {limited}");
            return Err(review.forbid(&words));
        }
        pertinent.push((quota, hard, used));
    }
    if pertinent.is_empty() {
        return Ok(Vec::new());
    }
    let usage = measure.usage(&review.object, now);
    let negative = usage.filtered(|_, amount| amount.is_negative());
    if !negative.is_empty() {
        let names: Vec<&str> = negative.names().collect();
        let words = format!("quota usage is negative for resource(s): {}", names.join(","));
        return Err(review.forbid(&words));
    }
    let mut charges = Vec::new();
    for (quota, hard, mut used) in pertinent {
        let before = review.old.filter(|old| matches_scopes(&quota, &resource, old));
        let before = before.map(|old| measure.usage(old, now)).unwrap_or_default();
        let asked = usage
            .without(&before)
            .filtered(|name, amount| !amount.is_zero() && hard.get(name).is_some());
        if asked.is_empty() {
            continue;
        }
        let known = used.clone();
        used.add(&asked);
        let exceeded =
            asked.filtered(|name, _| matches!((used.get(name), hard.get(name)), (Some(used), Some(hard)) if used > hard));
        if !exceeded.is_empty() && review.subresource != "status" {
            let only = |amounts: &Amounts| amounts.filtered(|name, _| exceeded.get(name).is_some());
            return Err(review.forbid(&format!(
                "exceeded quota: {}, requested: {exceeded}, used: {}, limited: {}",
                metadata::name(&quota),
                only(&known),
                only(&hard)
            )));
        }
        charges.push(Charge { quota: metadata::name(&quota).to_owned(), used: used.to_value() });
    }
    Ok(charges)
}
