//! `RuntimeClass`: a Pod takes over what its runtime class costs and where it runs.

use homeostat_quota::Amounts;
use serde_json::{Value, json};

use super::{Operation, Review};
use crate::status::Status;
use crate::validate::name;

fn class(review: &Review<'_>) -> Result<Option<Value>, Status> {
    let name = review.object.pointer("/spec/runtimeClassName").and_then(Value::as_str);
    let Some(name) = name else { return Ok(None) };
    if let Some(class) = review.writer.registry.peek("runtimeclasses.node.k8s.io", "", name) {
        return Ok(Some(class));
    }
    Err(match name::unaskable(name) {
        Some(why) => Status::unexplained(why),
        None => review.forbid(&format!("pod rejected: RuntimeClass {name:?} not found")),
    })
}

fn applies(review: &Review<'_>) -> bool {
    review.operation == Operation::Create
        && review.is_for("pods")
        && review.object.get("spec").is_some_and(Value::is_object)
}

fn overhead(class: Option<&Value>) -> Option<Amounts> {
    let overhead = class?.get("overhead").filter(|overhead| !overhead.is_null())?;
    Some(Amounts::read(overhead.get("podFixed")))
}

pub(super) fn complete(review: &mut Review<'_>) -> Result<(), Status> {
    if !applies(review) {
        return Ok(());
    }
    let Some(class) = class(review)? else { return Ok(()) };
    if let Some(overhead) = overhead(Some(&class)) {
        let given = Amounts::read(review.object.pointer("/spec/overhead"));
        if !given.is_empty() && given != overhead {
            return Err(review.forbid(
                "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            ));
        }
        review.object["spec"]["overhead"] = overhead.to_value();
    }
    let selector = class.pointer("/scheduling/nodeSelector").and_then(Value::as_object);
    for (key, value) in selector.into_iter().flatten() {
        let pointer = format!("/spec/nodeSelector/{}", key.replace('~', "~0").replace('/', "~1"));
        match review.object.pointer(&pointer) {
            Some(own) if own != value => {
                return Err(review.forbid(&format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; \
                     pod.spec.nodeSelector[{key}] = {}",
                    value.as_str().unwrap_or(""),
                    own.as_str().unwrap_or("")
                )));
            }
            _ => review.object["spec"]["nodeSelector"][key] = value.clone(),
        }
    }
    let extra = class.pointer("/scheduling/tolerations").and_then(Value::as_array);
    if let Some(extra) = extra.filter(|extra| !extra.is_empty())
        && let Some(spec) = review.object["spec"].as_object_mut()
        && let Value::Array(own) = spec.entry("tolerations").or_insert_with(|| json!([]))
    {
        let new: Vec<Value> = extra.iter().filter(|t| !own.contains(t)).cloned().collect();
        own.extend(new);
    }
    Ok(())
}

pub(super) fn check(review: &Review<'_>) -> Result<(), Status> {
    if !applies(review) {
        return Ok(());
    }
    let given = review.object.pointer("/spec/overhead");
    let is_given = given.is_some_and(|given| !given.is_null())
        || review.wish.inquiry().is_given_empty("/spec/overhead");
    match overhead(class(review)?.as_ref()) {
        Some(overhead) if overhead != Amounts::read(given) => Err(review
            .forbid("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")),
        None if is_given => Err(review.forbid(
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        )),
        _ => Ok(()),
    }
}
