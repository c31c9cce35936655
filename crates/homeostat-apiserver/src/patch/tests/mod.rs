//! What the three patches promise. Much more is replayed from kube-apiserver's own answers in
//! `apply/tests/recorded.rs`.

use serde_json::{Value, json};

use super::{PatchError, json, merge, strategic};
use crate::apply::tests::builtin;

fn deployment(container: &Value) -> Value {
    json!({"metadata": {}, "spec": {"template": {"spec": {"containers": [container]}}}})
}

#[test]
fn merged_lists_stand_in_the_order_kube_apiserver_gives_them() {
    let recorded: Value = serde_json::from_str(include_str!("orders.json")).unwrap();
    let schema = builtin("Deployment").root();
    for case in recorded.as_array().unwrap() {
        let (live, patch) = if let Some(finalizers) = case.get("liveFinalizers") {
            let live = if *finalizers == json!([]) {
                json!({})
            } else {
                json!({ "finalizers": finalizers })
            };
            (json!({ "metadata": live }), json!({ "metadata": case["patch"] }))
        } else {
            let env: Vec<Value> = case["live"]
                .as_str()
                .unwrap()
                .chars()
                .map(|name| json!({ "name": name }))
                .collect();
            let mut container = json!({ "name": "w" });
            if !env.is_empty() {
                container["env"] = env.into();
            }
            let mut patch = case["patch"].clone();
            patch["name"] = json!("w");
            (deployment(&container), deployment(&patch))
        };
        match strategic(schema, &live, &patch) {
            Ok(result) if case.get("finalizers").is_some() => {
                let finalizers = result["metadata"].get("finalizers").cloned().unwrap_or(json!([]));
                assert_eq!(finalizers, case["finalizers"], "{case}");
            }
            Ok(result) => {
                let env = &result["spec"]["template"]["spec"]["containers"][0]["env"];
                let names = env.as_array().into_iter().flatten();
                let names: String = names.map(|item| item["name"].as_str().unwrap()).collect();
                assert_eq!(json!(names), case["env"], "{case}");
            }
            Err(error) => assert_eq!(case["code"], error.status(), "{case}: {error}"),
        }
    }
}

#[test]
fn directives_and_nulls_never_reach_the_object() {
    let schema = builtin("Deployment").root();
    let patch = deployment(&json!({
        "name": "new", "image": null,
        "env": [{"name": "A", "value": null}, {"name": "B", "$patch": "delete"}],
        "resources": {"$patch": "replace", "limits": {"cpu": "1", "memory": null}},
        "$setElementOrder/ports": [],
    }));
    let result = strategic(schema, &json!({}), &patch).unwrap();
    let text = result.to_string();
    assert!(!text.contains('$') && !text.contains("null"), "{text}");
}

#[test]
fn replace_and_delete_work_on_maps() {
    let schema = builtin("Deployment").root();
    let live = json!({"metadata": {"labels": {"a": "1", "b": "2"}, "annotations": {"x": "y"}}});
    let patch = json!({"metadata": {
        "labels": {"$patch": "replace", "c": "3"}, "annotations": {"$patch": "delete"},
    }});
    let result = strategic(schema, &live, &patch).unwrap();
    assert_eq!(result, json!({"metadata": {"labels": {"c": "3"}, "annotations": {}}}));
}

#[test]
fn a_map_that_the_schema_replaces_is_not_merged() {
    let schema = builtin("PodDisruptionBudget").root();
    let live = json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}});
    let patch = json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}});
    assert_eq!(strategic(schema, &live, &patch), Ok(patch));
}

#[test]
fn malformed_strategic_patches_say_what_is_wrong() {
    let schema = builtin("Deployment").root();
    let live = deployment(&json!({"name": "w", "env": [{"name": "A"}]}));
    for (patch, status) in [
        (json!([]), 400),
        (json!({"$retainKeys": "x"}), 400),
        (json!({"metadata": {"$deleteFromPrimitiveList": ["x"]}}), 400),
        (json!({"metadata": {"$setElementOrder": ["x"]}}), 400),
        (json!({"metadata": {"$patch": "unknown"}}), 500),
        (deployment(&json!({"image": "no name"})), 500),
        (deployment(&json!({"name": "w", "env": [{"$patch": "merge"}]})), 500),
        (deployment(&json!({"name": "w", "env": [["x"]]})), 422),
    ] {
        let error = strategic(schema, &live, &patch).unwrap_err();
        assert_eq!(error.status(), status, "{patch}: {error}");
    }
}

#[test]
fn json_patch_is_all_or_nothing() {
    let live = json!({"a": 1});
    let patch =
        json!([{"op": "add", "path": "/b", "value": 2}, {"op": "test", "path": "/a", "value": 9}]);
    assert!(matches!(json(&live, &patch), Err(PatchError::Unprocessable(_))));
    assert!(matches!(json(&live, &json!({})), Err(PatchError::Malformed(_))));
    assert!(matches!(
        json(&live, &json!([{"op": "nosuch", "path": "/a"}])),
        Err(PatchError::Unprocessable(_))
    ));
    let fine = json!([{"op": "move", "from": "/a", "path": "/c"}]);
    assert_eq!(json(&live, &fine), Ok(json!({"c": 1})));
}

#[test]
fn json_patch_has_a_limit_of_its_own() {
    let operation = json!({"op": "add", "path": "/a", "value": 1});
    let many = |count| Value::Array(vec![operation.clone(); count]);
    assert!(json(&json!({}), &many(10_000)).is_ok());
    let error = json(&json!({}), &many(10_001)).unwrap_err();
    assert_eq!(
        (error.status(), error.to_string().as_str()),
        (413, "The allowed maximum operations in a JSON patch is 10000, got 10001")
    );
}

#[test]
fn copies_make_no_object_of_any_size_or_depth() {
    let wider = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    let many = Value::Array(vec![wider; 60]);
    let error = json(&json!({"a": ["x"]}), &many).unwrap_err();
    assert_eq!(error.status(), 422, "{error}");

    let mut path = String::from("/a");
    let deeper: Vec<Value> = (0..200)
        .map(|_| {
            let operation = json!({"op": "add", "path": path, "value": {}});
            path += "/a";
            operation
        })
        .collect();
    let error = json(&json!({}), &Value::Array(deeper)).unwrap_err();
    assert_eq!(error.status(), 422, "{error}");
}

#[test]
fn merge_patch_merges_objects_deletes_by_null_and_replaces_lists() {
    let live = json!({"a": {"b": 1, "c": 2}, "l": [1, 2]});
    let patch = json!({"a": {"b": null, "d": {"e": null, "f": 1}}, "l": [3]});
    assert_eq!(merge(&live, &patch), json!({"a": {"c": 2, "d": {"f": 1}}, "l": [3]}));
    assert_eq!(merge(&live, &json!([1])), json!([1]));
}
