//! ResourceSlices: since when a device has a taint.

use serde_json::Value;

use super::{Hooks, NONE};
use crate::registry::Writer;

pub(super) const HOOKS: Hooks = Hooks {
    create: |writer, _, slice| {
        date(writer, slice);
        Ok(())
    },
    update: |writer, _, _, slice| {
        date(writer, slice);
        Ok(())
    },
    ..NONE
};

fn date(writer: &Writer<'_>, slice: &mut Value) {
    let devices = slice.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten() {
        let taints = device.get_mut("taints").and_then(Value::as_array_mut);
        for taint in taints.into_iter().flatten().filter_map(Value::as_object_mut) {
            taint.entry("timeAdded").or_insert_with(|| writer.now().into());
        }
    }
}
