//! What the store promises, kept without a server around it.

use serde_json::json;

use super::{Draft, Expect, Key, Range, Store, StoreError};

fn draft(value: u32) -> Draft {
    Draft { value: json!({"metadata": {}, "value": value}), fields: Default::default() }
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn names(store: &Store, range: &Range) -> Result<Vec<String>, StoreError> {
    store.list("maps", range).map(|page| {
        page.items
            .iter()
            .map(|item| format!("{}/{}", item.key.name, item.value()["value"]))
            .collect()
    })
}

#[test]
fn every_commit_has_its_own_rising_revision_written_into_the_object() {
    let store = Store::new(10);
    assert_ne!(store.revision(), 0);
    let a = store.put("maps", &key("a"), Expect::Absent, draft(1)).unwrap();
    let b = store.put("secrets", &key("a"), Expect::Absent, draft(1)).unwrap();
    assert!(b.revision > a.revision);
    assert_eq!(a.value()["metadata"]["resourceVersion"], a.revision.to_string());
}

#[test]
fn a_write_that_expects_something_else_changes_nothing() {
    let store = Store::new(10);
    let first = store.put("maps", &key("a"), Expect::Absent, draft(1)).unwrap();
    let before = store.revision();
    assert_eq!(store.put("maps", &key("a"), Expect::Absent, draft(2)), Err(StoreError::Conflict));
    store.put("maps", &key("a"), Expect::Revision(first.revision), draft(2)).unwrap();
    let stale = Expect::Revision(first.revision);
    assert_eq!(store.put("maps", &key("a"), stale, draft(3)), Err(StoreError::Conflict));
    assert_eq!(store.delete("maps", &key("a"), first.revision), Err(StoreError::Conflict));
    assert_eq!(store.revision(), before + 1);
}

#[test]
fn lists_are_ordered_by_namespace_then_name() {
    let store = Store::new(10);
    for (namespace, name) in [("b", "a"), ("a", "z"), ("a", "b"), ("a-b", "c")] {
        let key = Key::new(namespace, name);
        store.put("maps", &key, Expect::Absent, draft(1)).unwrap();
    }
    let page = store.list("maps", &Range::default()).unwrap();
    let keys: Vec<_> =
        page.items.iter().map(|i| format!("{}/{}", i.key.namespace, i.key.name)).collect();
    assert_eq!(keys, ["a/b", "a/z", "a-b/c", "b/a"]);
    let only = Range { namespace: Some("a".into()), ..Range::default() };
    assert_eq!(names(&store, &only).unwrap(), ["b/1", "z/1"]);
}

#[test]
fn the_past_is_shown_as_it_was_until_it_is_forgotten() {
    let store = Store::new(3);
    store.put("maps", &key("a"), Expect::Absent, draft(1)).unwrap();
    let b = store.put("maps", &key("b"), Expect::Absent, draft(1)).unwrap();
    let then = Range { at: Some(store.revision()), ..Range::default() };
    store.put("maps", &key("b"), Expect::Revision(b.revision), draft(2)).unwrap();
    let a = store.get("maps", &key("a")).unwrap();
    store.delete("maps", &key("a"), a.revision).unwrap();
    store.put("maps", &key("c"), Expect::Absent, draft(1)).unwrap();
    assert_eq!(names(&store, &then).unwrap(), ["a/1", "b/1"]);
    assert_eq!(names(&store, &Range::default()).unwrap(), ["b/2", "c/1"]);
    store.put("maps", &key("d"), Expect::Absent, draft(1)).unwrap();
    assert!(matches!(names(&store, &then), Err(StoreError::Expired { .. })));
}

#[tokio::test]
async fn a_watcher_sees_each_change_once_and_ends_rather_than_skip() {
    let store = Store::new(3);
    let mut watcher = store.watch("maps", store.revision()).unwrap();
    let a = store.put("maps", &key("a"), Expect::Absent, draft(1)).unwrap();
    store.delete("maps", &key("a"), a.revision).unwrap();
    let seen = watcher.next().await.unwrap();
    assert_eq!(seen.iter().map(|change| change.deleted).collect::<Vec<_>>(), [false, true]);
    assert!(seen[1].object.revision > a.revision);
    assert_eq!(watcher.caught_up(), Some(store.revision()));
    for name in ["a", "b", "c", "d"] {
        store.put("maps", &key(name), Expect::Absent, draft(1)).unwrap();
    }
    assert!(matches!(watcher.next().await, Err(StoreError::Expired { .. })));
}

#[tokio::test]
async fn changes_of_other_resources_wake_nobody_but_move_the_bookmark() {
    let store = Store::new(3);
    let mut watcher = store.watch("maps", store.revision()).unwrap();
    for name in ["a", "b", "c", "d", "e"] {
        store.put("secrets", &key(name), Expect::Absent, draft(1)).unwrap();
    }
    assert_eq!(watcher.caught_up(), Some(store.revision()));
}
