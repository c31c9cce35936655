//! Fields that are known but that nobody has turned on: they go before an object is judged. Which
//! they are is data of the kinds.

use serde_json::Value;

use crate::kinds::{Kind, TURNED_OFF_IN_PODS};

/// Drops what nobody has turned on.
pub(super) fn drop_turned_off(kind: &Kind, object: &mut Value) {
    let strategy = &kind.strategy;
    strategy.turned_off.iter().for_each(|path| remove(object, path));
    let template = strategy.template.and_then(|place| object.pointer_mut(place));
    if let Some(template) = template {
        TURNED_OFF_IN_PODS.iter().for_each(|path| remove(template, path));
    }
}

/// Removes the field at the path, wherever there is one.
fn remove(value: &mut Value, path: &str) {
    let Some((name, rest)) = path.split_once('.') else {
        if let Some(fields) = value.as_object_mut() {
            fields.shift_remove(path);
        }
        return;
    };
    if name == "*" {
        value.as_array_mut().into_iter().flatten().for_each(|item| remove(item, rest));
        return;
    }
    let plain = name.trim_end_matches('?');
    let Some(below) = value.get_mut(plain) else { return };
    let was_empty = is_empty(below);
    remove(below, rest);
    if name != plain && !was_empty && is_empty(below) {
        remove(value, plain);
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_turned_on_goes_from_pods_and_from_templates_of_pods() {
        let containers = json!([
            {"lifecycle": {"stopSignal": "SIGINT"}},
            {"lifecycle": {"stopSignal": "SIGINT", "preStop": {}}},
            {"lifecycle": {}},
        ]);
        let spec = json!({"schedulingGroup": {}, "containers": containers});
        let left = json!({"containers": [{}, {"lifecycle": {"preStop": {}}}, {"lifecycle": {}}]});
        for (plural, mut object, place) in [
            ("pods", json!({"spec": spec}), "/spec"),
            ("podtemplates", json!({"template": {"spec": spec}}), "/template/spec"),
        ] {
            let kind = crate::kinds::builtin().iter().find(|kind| kind.plural == plural).unwrap();
            drop_turned_off(kind, &mut object);
            assert_eq!(object.pointer(place), Some(&left), "{plural}");
        }
    }
}
