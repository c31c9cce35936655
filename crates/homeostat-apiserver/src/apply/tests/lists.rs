//! Merging lists.

use serde_json::{Value, json};

use super::{at, status, thing};
use crate::apply::{ApplyError, apply};

const VERSION: &str = "example.com/v1";

fn applied(live: Value, config: Value) -> Result<Value, ApplyError> {
    let object = |spec| json!({"apiVersion": VERSION, "kind": "Thing", "spec": spec});
    let manager = at("one", VERSION, 0);
    apply(thing().root(), Some(&object(live)), &object(config), &manager, true, &status())
        .map(|object| object["spec"].clone())
}

fn letters(text: &Value) -> Vec<String> {
    text.as_str().unwrap().chars().map(String::from).collect()
}

#[test]
fn items_stand_in_the_order_kube_apiserver_gives_them() {
    let recorded: Value = serde_json::from_str(include_str!("orders.json")).unwrap();
    for case in recorded.as_array().unwrap() {
        let (live, config) = (letters(&case["live"]), letters(&case["config"]));
        let spec = applied(json!({ "tags": live }), json!({ "tags": config })).unwrap();
        assert_eq!(spec["tags"], json!(letters(&case["merged"])), "{case}");
    }
}

#[test]
fn items_with_the_same_keys_are_merged_and_others_added() {
    let live =
        json!({"rows": [{"name": "a", "port": 80, "note": "old"}, {"name": "b", "port": 1}]});
    let config = json!({"rows": [{"name": "a", "note": "new"}, {"name": "a", "port": 81}]});
    let spec = applied(live, config).unwrap();
    let rows = json!([
        {"name": "a", "port": 80, "note": "new"},
        {"name": "b", "port": 1},
        {"name": "a", "port": 81},
    ]);
    assert_eq!(spec["rows"], rows);
}

#[test]
fn an_item_that_is_twice_in_the_object_is_replaced_by_the_applied_one() {
    let live = json!({"rows": [{"name": "a", "note": "1"}, {"name": "a", "note": "2"}]});
    let spec = applied(live, json!({"rows": [{"name": "a"}]})).unwrap();
    assert_eq!(spec["rows"], json!([{"name": "a"}]));
}

#[test]
fn lists_without_keys_are_replaced() {
    let spec = applied(json!({"plain": ["a", "b"]}), json!({"plain": ["c"]})).unwrap();
    assert_eq!(spec["plain"], json!(["c"]));
}

#[test]
fn a_configuration_that_cannot_be_taken_apart_is_refused() {
    for (config, expected) in [
        (
            json!({"rows": [{"name": "a"}, {"name": "a", "port": 80}]}),
            "duplicate entries for key [name=\"a\",port=80]",
        ),
        (json!({"tags": ["x", "x"]}), ".spec.tags: duplicate entries for key [=\"x\"]"),
        (
            json!({"rows": [null]}),
            "element 0: associative list with keys may not have a null element",
        ),
        (json!({"rows": ["x"]}), "may not have non-map elements"),
        (json!({"tags": [{"a": 1}]}), "has an element that's a map type"),
        (json!({"other": 1}), ".spec.other: field not declared in schema"),
        (json!({"size": "1"}), ".spec.size: expected numeric (int or float), got string"),
        (json!({"rows": {}}), ".spec.rows: expected list, got &{map[]}"),
        (json!({"size": true, "tags": 1}), "errors:\n  .spec.size: expected numeric"),
    ] {
        let error = applied(json!({}), config.clone()).unwrap_err();
        assert!(matches!(error, ApplyError::Untypable(_)), "{config}");
        assert!(error.to_string().contains(expected), "{config}: {error}");
    }
}
