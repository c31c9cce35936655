//! ResourceSlices: since when a device has a taint, and what is not for everybody yet.

use serde_json::{Map, Value, json};

use super::{Hooks, NONE};
use crate::registry::Writer;

/// Attributes that are lists, which kube-apiserver takes only where somebody turned them on.
const LISTS: [&str; 4] = ["bools", "ints", "strings", "versions"];
/// The same of devices that take from what their node has.
const FROM_NODE: &str = "nodeAllocatableResourceMappings";

pub(super) const HOOKS: Hooks = Hooks {
    create: |writer, _, slice| {
        complete(writer, slice);
        Ok(())
    },
    update: |writer, _, _, slice| {
        complete(writer, slice);
        Ok(())
    },
    kept: |slice| {
        // That it was said counted while it was judged.
        if let Some(spec) = slice.get_mut("spec").and_then(Value::as_object_mut)
            && spec.get("sharedCounters") == Some(&json!([]))
        {
            spec.shift_remove("sharedCounters");
        }
    },
    ..NONE
};

fn complete(writer: &Writer<'_>, slice: &mut Value) {
    let devices = slice.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten().filter_map(Value::as_object_mut) {
        date(writer, device);
        device.shift_remove(FROM_NODE);
        let capacities = device.get_mut("capacity").and_then(Value::as_object_mut);
        for capacity in capacities.into_iter().flat_map(Map::values_mut) {
            // What is asked for where nobody says it is never left out.
            if let Some(policy) = capacity.get_mut("requestPolicy").and_then(Value::as_object_mut) {
                policy.entry("default").or_insert(Value::Null);
            }
        }
        let attributes = device.get_mut("attributes").and_then(Value::as_object_mut);
        for attribute in attributes.into_iter().flat_map(Map::values_mut) {
            let Some(values) = attribute.as_object_mut() else { continue };
            LISTS.iter().for_each(|list| drop(values.shift_remove(*list)));
        }
    }
}

fn date(writer: &Writer<'_>, device: &mut Map<String, Value>) {
    let taints = device.get_mut("taints").and_then(Value::as_array_mut);
    for taint in taints.into_iter().flatten().filter_map(Value::as_object_mut) {
        taint.entry("timeAdded").or_insert_with(|| writer.now().into());
    }
}
