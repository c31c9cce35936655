//! `Priority`: a Pod's priority class becomes its number, and there is at most one default class.

use serde_json::{Value, json};

use super::{Operation, Review};
use crate::registry::metadata;
use crate::status::Status;

const CLASSES: &str = "priorityclasses.scheduling.k8s.io";

pub(super) fn resolve(review: &mut Review<'_>) -> Result<(), Status> {
    if !review.is_for("pods") || !review.object.get("spec").is_some_and(Value::is_object) {
        return Ok(());
    }
    match (review.operation, review.old) {
        (Operation::Create, _) => resolve_new(review),
        (Operation::Update, Some(old)) => {
            for field in ["priority", "preemptionPolicy"] {
                let kept = old.pointer(&format!("/spec/{field}"));
                if let (Some(kept), true) = (kept, is_absent(&review.object["spec"], field)) {
                    review.object["spec"][field] = kept.clone();
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn is_absent(spec: &Value, field: &str) -> bool {
    spec.get(field).is_none_or(Value::is_null)
}

fn resolve_new(review: &mut Review<'_>) -> Result<(), Status> {
    let name = review.text("/spec/priorityClassName").to_owned();
    let class = if name.is_empty() {
        default_class(review)
    } else {
        let found = review.writer.registry.peek(CLASSES, "", &name);
        Some(found.ok_or_else(|| {
            review.forbid(&format!("no PriorityClass with name {name} was found"))
        })?)
    };
    let field = |field: &str| class.as_ref().and_then(|class| class.get(field)).cloned();
    let value = field("value").unwrap_or(json!(0));
    let policy = field("preemptionPolicy").unwrap_or(json!("PreemptLowerPriority"));
    let spec = &review.object["spec"];
    if !is_absent(spec, "priority") && spec["priority"] != value {
        return Err(review.forbid(&format!(
            "the integer value of priority ({}) must not be provided in pod spec; priority \
             admission controller computed {value} from the given PriorityClass name",
            spec["priority"]
        )));
    }
    if !is_absent(spec, "preemptionPolicy") && spec["preemptionPolicy"] != policy {
        return Err(review.forbid(&format!(
            "the string value of PreemptionPolicy ({}) must not be provided in pod spec; priority \
             admission controller computed {} from the given PriorityClass name",
            spec["preemptionPolicy"].as_str().unwrap_or(""),
            policy.as_str().unwrap_or("")
        )));
    }
    let spec = &mut review.object["spec"];
    if let (true, Some(class)) = (name.is_empty(), &class) {
        spec["priorityClassName"] = metadata::name(class).into();
    }
    spec["priority"] = value;
    spec["preemptionPolicy"] = policy;
    Ok(())
}

/// The class of Pods that name none; of several the lowest.
fn default_class(review: &Review<'_>) -> Option<Value> {
    let classes = review.list(CLASSES, "").into_iter();
    classes
        .filter(|class| class["globalDefault"] == json!(true))
        .min_by_key(|class| class["value"].as_i64().unwrap_or(0))
}

pub(super) fn one_default(review: &Review<'_>) -> Result<(), Status> {
    if !review.is_for(CLASSES) || review.object["globalDefault"] != json!(true) {
        return Ok(());
    }
    match default_class(review) {
        Some(other)
            if review.operation == Operation::Create
                || metadata::name(&other) != metadata::name(&review.object) =>
        {
            Err(review.forbid(&format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                metadata::name(&other)
            )))
        }
        _ => Ok(()),
    }
}
