//! EndpointSlices: a field of the first versions that is not written any more, and APIServices that
//! wait for endpoints.

use serde_json::Value;

use super::{Hooks, NONE, api_services};

const TOPOLOGY: &str = "deprecatedTopology";
/// Where the name of a node was before it had a field.
const NODE: &str = "kubernetes.io/hostname";

pub(super) const HOOKS: Hooks = Hooks {
    create: |_, _, slice| {
        forget(&[], slice);
        Ok(())
    },
    update: |_, _, live, slice| {
        if live.get("endpoints") != slice.get("endpoints") {
            let endpoints = live.get("endpoints").and_then(Value::as_array);
            forget(endpoints.map_or(&[], Vec::as_slice), slice);
        }
        Ok(())
    },
    committed: Some(|writer, _, _, slice| api_services::slice_changed(writer, slice)),
    removed: |writer, _, slice| api_services::slice_changed(writer, slice),
    ..NONE
};

/// Takes the field away; a node that it named before keeps its place.
fn forget(before: &[Value], slice: &mut Value) {
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten().filter_map(Value::as_object_mut) {
        let Some(topology) = endpoint.shift_remove(TOPOLOGY) else { continue };
        let named = before
            .iter()
            .any(|old| old.get(TOPOLOGY).and_then(|old| old.get(NODE)) == topology.get(NODE));
        if let (Some(node), true) = (topology.get(NODE), named) {
            endpoint.entry("nodeName").or_insert_with(|| node.clone());
        }
    }
}
