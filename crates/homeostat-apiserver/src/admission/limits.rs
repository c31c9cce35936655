//! `LimitRanger`: what containers leave out they get from their namespace's LimitRanges, and what
//! they ask for must lie within them.

use homeostat_quota::{Amounts, Overhead, Quantity, pod_limits, pod_requests};
use serde_json::{Value, json};

use super::{Operation, Review};
use crate::registry::metadata;
use crate::status::Status;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Whether limits are looked at: containers of a Pod cannot change except through `resize`.
fn applies(review: &Review<'_>) -> bool {
    let main = match review.operation {
        Operation::Create => review.is_for("pods") || review.is_for("persistentvolumeclaims"),
        Operation::Update => review.is_for("persistentvolumeclaims"),
        Operation::Delete | Operation::Connect => false,
    };
    let resize = review.operation == Operation::Update
        && review.subresource == "resize"
        && review.resource() == "pods";
    (main || resize) && !review.old.is_some_and(metadata::is_deleting)
}

fn limits_of(range: &Value) -> impl Iterator<Item = &Value> {
    range.pointer("/spec/limits").and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn default(review: &mut Review<'_>) -> Result<(), Status> {
    if !applies(review) || review.resource() != "pods" {
        return Ok(());
    }
    for range in review.list("limitranges", review.namespace) {
        let (mut requests, mut limits) = (Amounts::default(), Amounts::default());
        for limit in limits_of(&range).filter(|limit| limit["type"] == "Container") {
            for (name, amount) in Amounts::read(limit.get("defaultRequest")).iter() {
                requests.set(name, amount);
            }
            for (name, amount) in Amounts::read(limit.get("default")).iter() {
                limits.set(name, amount);
            }
        }
        let mut notes = Vec::new();
        for (list, words) in [("containers", "container"), ("initContainers", "init container")] {
            let containers = review.object.pointer_mut(&format!("/spec/{list}"));
            for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
                let name = container["name"].as_str().unwrap_or("").to_owned();
                for (which, defaults, word) in
                    [("requests", &requests, "request"), ("limits", &limits, "limit")]
                {
                    let set = fill(container, which, defaults);
                    if !set.is_empty() {
                        notes.push(format!("{} {word} for {words} {name}", set.join(", ")));
                    }
                }
            }
        }
        if !notes.is_empty() {
            let note = format!("LimitRanger plugin set: {}", notes.join("; "));
            metadata::set_annotation(&mut review.object, ANNOTATION, &note);
        }
    }
    Ok(())
}

/// Sets what the container does not name; says what was set.
fn fill(container: &mut Value, which: &str, defaults: &Amounts) -> Vec<String> {
    let present = Amounts::read(container.pointer(&format!("/resources/{which}")));
    let missing = defaults.filtered(|name, _| present.get(name).is_none());
    let Some(container) = container.as_object_mut() else { return Vec::new() };
    if missing.is_empty() {
        return Vec::new();
    }
    let resources = container.entry("resources").or_insert_with(|| json!({}));
    for (name, amount) in missing.iter() {
        resources[which][name] = amount.to_string().into();
    }
    missing.names().map(str::to_owned).collect()
}

pub(super) fn check(review: &Review<'_>) -> Result<(), Status> {
    if !applies(review) {
        return Ok(());
    }
    for range in review.list("limitranges", review.namespace) {
        let mut refusals = Vec::new();
        for limit in limits_of(&range) {
            if review.resource() == "pods" {
                check_pod(limit, &review.object, &mut refusals);
            } else {
                check_claim(limit, &review.object, &mut refusals);
            }
        }
        if !refusals.is_empty() {
            return Err(review.forbid(&aggregate(refusals)));
        }
    }
    Ok(())
}

/// One refusal as it is, several in brackets, each once.
fn aggregate(refusals: Vec<String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for refusal in refusals {
        if !all.contains(&refusal) {
            all.push(refusal);
        }
    }
    match &all[..] {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

fn check_claim(limit: &Value, claim: &Value, refusals: &mut Vec<String>) {
    if limit["type"] != "PersistentVolumeClaim" {
        return;
    }
    let asked = Amounts::read(claim.pointer("/spec/resources/requests"));
    let check =
        Check { what: "PersistentVolumeClaim", requests: &asked, limits: &Amounts::default() };
    for (name, bound) in Amounts::read(limit.get("min")).iter() {
        refusals.extend(check.minimum(name, bound));
    }
    for (name, bound) in Amounts::read(limit.get("max")).iter() {
        let words = format!("maximum {name} usage per PersistentVolumeClaim is {bound}");
        match asked.get(name) {
            None => refusals.push(format!("{words}.  No request is specified")),
            Some(own) if own > bound => refusals.push(format!("{words}, but request is {own}")),
            Some(_) => {}
        }
    }
}

fn check_pod(limit: &Value, pod: &Value, refusals: &mut Vec<String>) {
    match limit["type"].as_str() {
        Some("Container") => {
            for list in ["containers", "initContainers"] {
                let containers = pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
                for container in containers.into_iter().flatten() {
                    let requests = Amounts::read(container.pointer("/resources/requests"));
                    let limits = Amounts::read(container.pointer("/resources/limits"));
                    let check = Check { what: "Container", requests: &requests, limits: &limits };
                    check.all(limit, refusals);
                }
            }
        }
        Some("Pod") => {
            let requests = pod_requests(pod, Overhead::Ignored);
            let limits = pod_limits(pod, Overhead::Ignored);
            Check { what: "Pod", requests: &requests, limits: &limits }.all(limit, refusals);
        }
        _ => {}
    }
}

/// What something asks for, against the bounds of one row of a LimitRange.
struct Check<'a> {
    what: &'a str,
    requests: &'a Amounts,
    limits: &'a Amounts,
}

impl Check<'_> {
    fn all(&self, limit: &Value, refusals: &mut Vec<String>) {
        for (name, bound) in Amounts::read(limit.get("min")).iter() {
            refusals.extend(self.minimum(name, bound));
        }
        for (name, bound) in Amounts::read(limit.get("max")).iter() {
            refusals.extend(self.maximum(name, bound));
        }
        for (name, bound) in Amounts::read(limit.get("maxLimitRequestRatio")).iter() {
            refusals.extend(self.ratio(name, bound));
        }
    }

    fn minimum(&self, name: &str, bound: Quantity) -> Option<String> {
        let words = format!("minimum {name} usage per {} is {bound}", self.what);
        match (self.requests.get(name), self.limits.get(name)) {
            (None, _) => Some(format!("{words}.  No request is specified")),
            (Some(own), _) if own < bound => Some(format!("{words}, but request is {own}")),
            (_, Some(own)) if own < bound => Some(format!("{words}, but limit is {own}")),
            _ => None,
        }
    }

    fn maximum(&self, name: &str, bound: Quantity) -> Option<String> {
        let words = format!("maximum {name} usage per {} is {bound}", self.what);
        match (self.limits.get(name), self.requests.get(name)) {
            (None, _) => Some(format!("{words}.  No limit is specified")),
            (Some(own), _) if own > bound => Some(format!("{words}, but limit is {own}")),
            (_, Some(own)) if own > bound => Some(format!("{words}, but request is {own}")),
            _ => None,
        }
    }

    fn ratio(&self, name: &str, bound: Quantity) -> Option<String> {
        let words = format!("{name} max limit to request ratio per {} is {bound}", self.what);
        let some = |amounts: &Amounts| amounts.get(name).filter(|amount| !amount.is_zero());
        let (Some(request), limit) = (some(self.requests), some(self.limits)) else {
            return Some(format!("{words}, but no request is specified or request is 0"));
        };
        let Some(limit) = limit else {
            return Some(format!("{words}, but no limit is specified or limit is 0"));
        };
        let ratio = limit.ratio(request);
        (ratio > bound.ratio(Quantity::whole(1)))
            .then(|| format!("{words}, but provided ratio is {ratio:.6}"))
    }
}
