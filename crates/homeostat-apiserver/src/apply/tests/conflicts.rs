//! Several managers and one object.

use serde_json::{Value, json};

use super::{at, builtin, owned, status};
use crate::apply::{ApplyError, apply, track_update};

fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
}

fn apply_at(
    live: Option<&Value>,
    data: &Value,
    manager: &str,
    second: i64,
) -> Result<Value, ApplyError> {
    let schema = builtin("ConfigMap").root();
    apply(schema, live, &config_map(data), &at(manager, "v1", second), false, &status())
}

#[test]
fn applying_the_same_again_changes_nothing_not_even_a_time() {
    let first = apply_at(None, &json!({"a": "1"}), "one", 0).unwrap();
    let again = apply_at(Some(&first), &json!({"a": "1"}), "one", 60).unwrap();
    assert_eq!(first, again);
}

#[test]
fn a_field_left_out_is_removed_and_a_shared_one_stays() {
    let both = apply_at(None, &json!({"a": "1", "b": "2"}), "one", 0).unwrap();
    let shared = apply_at(Some(&both), &json!({"a": "1"}), "two", 1).unwrap();
    let left = apply_at(Some(&shared), &json!({}), "one", 2).unwrap();
    assert_eq!(left["data"], json!({"a": "1"}));
    assert_eq!(owned(&left, "two"), Some(json!({"f:data": {"f:a": {}}})));
    let gone = apply_at(Some(&left), &json!({}), "two", 3).unwrap();
    assert_eq!(gone.get("data"), None);
}

#[test]
fn what_nobody_applied_is_never_removed() {
    let live = apply_at(None, &json!({"a": "1"}), "one", 0).unwrap();
    let mut edited = live.clone();
    edited["data"]["b"] = json!("by hand");
    track_update(
        builtin("ConfigMap").root(),
        Some(&live),
        &mut edited,
        &at("hand", "v1", 1),
        &status(),
    )
    .unwrap();
    let applied = apply_at(Some(&edited), &json!({"c": "3"}), "one", 2).unwrap();
    assert_eq!(applied["data"], json!({"b": "by hand", "c": "3"}));
}

#[test]
fn an_update_between_two_applies_is_a_conflict_that_names_manager_and_field() {
    let live = apply_at(None, &json!({"a": "1"}), "one", 0).unwrap();
    let mut edited = live.clone();
    edited["data"]["a"] = json!("2");
    track_update(
        builtin("ConfigMap").root(),
        Some(&live),
        &mut edited,
        &at("hand", "v1", 1),
        &status(),
    )
    .unwrap();
    assert_eq!(owned(&edited, "one"), None);
    let error = apply_at(Some(&edited), &json!({"a": "1"}), "one", 2).unwrap_err();
    let expected = "Apply failed with 1 conflict: conflict with \"hand\" using v1: .data.a";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn force_takes_the_field_and_leaves_the_rest_to_its_owner() {
    let live = apply_at(None, &json!({"a": "1", "b": "1"}), "one", 0).unwrap();
    let (config, manager) = (config_map(&json!({"a": "2"})), at("two", "v1", 1));
    let schema = builtin("ConfigMap").root();
    let forced = apply(schema, Some(&live), &config, &manager, true, &status()).unwrap();
    assert_eq!(forced["data"], json!({"a": "2", "b": "1"}));
    assert_eq!(owned(&forced, "one"), Some(json!({"f:data": {"f:b": {}}})));
    assert_eq!(owned(&forced, "two"), Some(json!({"f:data": {"f:a": {}}})));
}

#[test]
fn fields_the_endpoint_resets_are_not_owned_through_it() {
    let schema = builtin("Deployment").root();
    let config = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 1}, "status": {"replicas": 1},
    });
    let applied = apply(schema, None, &config, &at("one", "apps/v1", 0), false, &status()).unwrap();
    assert_eq!(owned(&applied, "one"), Some(json!({"f:spec": {"f:replicas": {}}})));
}

#[test]
fn managed_fields_in_the_configuration_are_refused() {
    let mut config = config_map(&json!({}));
    config["metadata"]["managedFields"] = json!([]);
    let schema = builtin("ConfigMap").root();
    let refused = apply(schema, None, &config, &at("one", "v1", 0), false, &status());
    assert_eq!(refused, Err(ApplyError::Invalid("metadata.managedFields must be nil".to_owned())));
}
