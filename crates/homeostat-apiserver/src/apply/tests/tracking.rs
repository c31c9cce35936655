//! `managedFields` after plain writes.

use serde_json::{Value, json};

use super::{at, builtin, owned, status};
use crate::apply::{Manager, keep_times, track_update};

fn tracked(live: Option<&Value>, mut new: Value, manager: &Manager<'_>) -> Value {
    track_update(builtin("ConfigMap").root(), live, &mut new, manager, &status()).unwrap();
    new
}

fn created() -> Value {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n", "uid": "u", "resourceVersion": "1",
                     "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "data": {"a": "1"},
    });
    tracked(None, object, &at("creator", "v1", 0))
}

#[test]
fn nobody_owns_what_only_the_server_writes() {
    assert_eq!(owned(&created(), "creator"), Some(json!({"f:data": {".": {}, "f:a": {}}})));
}

#[test]
fn a_write_that_changes_nothing_keeps_owners_and_times() {
    let live = created();
    assert_eq!(tracked(Some(&live), live.clone(), &at("other", "v1", 60)), live);
}

#[test]
fn a_client_that_drops_the_list_does_not_make_the_server_forget() {
    let live = created();
    let mut new = live.clone();
    new["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert_eq!(tracked(Some(&live), new, &at("other", "v1", 60)), live);
}

#[test]
fn an_empty_list_forgets_all_owners_until_the_next_apply() {
    let live = created();
    for reset in [json!([]), json!([{}])] {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = reset;
        let forgotten = tracked(Some(&live), new, &at("other", "v1", 1));
        assert_eq!(forgotten["metadata"].get("managedFields"), None);
        let mut changed = forgotten.clone();
        changed["data"]["b"] = json!("2");
        let untracked = tracked(Some(&forgotten), changed, &at("other", "v1", 2));
        assert_eq!(untracked["metadata"].get("managedFields"), None);
    }
}

#[test]
fn the_list_cannot_be_edited_through_a_subresource() {
    let live = created();
    let mut new = live.clone();
    new["metadata"]["managedFields"] = json!([]);
    let manager = Manager { subresource: "status", ..at("other", "v1", 1) };
    assert_eq!(tracked(Some(&live), new, &manager), live);
}

#[test]
fn what_is_removed_has_no_owner() {
    let live = created();
    let mut new = live.clone();
    new.as_object_mut().unwrap().remove("data");
    let removed = tracked(Some(&live), new, &at("other", "v1", 1));
    assert_eq!(removed["metadata"].get("managedFields"), None);
}

#[test]
fn more_than_ten_updaters_become_one_ancient_one() {
    let mut object = created();
    let names: Vec<String> = (1..=12).map(|number| format!("m{number:02}")).collect();
    for (second, name) in (1..).zip(&names) {
        let mut new = object.clone();
        new["data"][name] = json!("x");
        object = tracked(Some(&object), new, &at(name, "v1", second));
    }
    let managers: Vec<&str> = object["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["manager"].as_str().unwrap())
        .collect();
    assert_eq!(managers.len(), 10);
    assert_eq!(managers[0], "ancient-changes");
    let ancient = json!({"f:data": {".": {}, "f:a": {}, "f:m01": {}, "f:m02": {}, "f:m03": {}}});
    assert_eq!(owned(&object, "ancient-changes"), Some(ancient));
}

#[test]
fn times_alone_are_no_reason_to_write() {
    let live = created();
    let mut new = live.clone();
    new["metadata"]["managedFields"][0]["time"] = json!("2030-01-01T00:00:00Z");
    let mut changed = new.clone();
    changed["data"]["a"] = json!("2");
    keep_times(&live, &mut new);
    assert_eq!(new, live);
    let before = changed.clone();
    keep_times(&live, &mut changed);
    assert_eq!(changed, before);
}

#[test]
fn nobody_owns_an_object_with_an_item_that_cannot_be_named() {
    let schema = builtin("ServiceAccount");
    let account = |secrets: Value| {
        let mut new = json!({"apiVersion": "v1", "kind": "ServiceAccount", "secrets": secrets});
        track_update(schema.root(), None, &mut new, &at("one", "v1", 0), &status())
    };
    assert!(account(json!([{"name": "s"}])).is_ok());
    assert!(account(json!([{"name": "s"}, {}])).is_err());
}
