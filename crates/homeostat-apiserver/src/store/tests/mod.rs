//! What the store promises, kept without a server around it.

mod absent;
mod in_place;
mod model;
mod place;
mod power;
mod threads;
mod watch;

use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::json;

use super::{
    Commit, Draft, Expect, Key, Limits, Loaded, Range, Snapshot, Storage, StorageError, Store,
    StoreError, Write,
};

fn store(changes: usize) -> Store {
    Store::new(Limits { changes, ..Limits::default() })
}

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
    let store = store(10);
    assert_ne!(store.revision(), 0);
    let a = store.put("maps", &key("a"), Expect::Absent, draft(1)).unwrap();
    let b = store.put("secrets", &key("a"), Expect::Absent, draft(1)).unwrap();
    assert!(b.revision > a.revision);
    assert_eq!(a.value()["metadata"]["resourceVersion"], a.revision.to_string());
}

#[test]
fn a_write_that_expects_something_else_changes_nothing() {
    let store = store(10);
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
fn lists_are_in_the_order_of_etcds_keys() {
    let store = store(10);
    for (namespace, name) in [("b", "a"), ("a", "z"), ("a", "b"), ("a-b", "c")] {
        let key = Key::new(namespace, name);
        store.put("maps", &key, Expect::Absent, draft(1)).unwrap();
    }
    let page = store.list("maps", &Range::default()).unwrap();
    let keys: Vec<_> =
        page.items.iter().map(|i| format!("{}/{}", i.key.namespace, i.key.name)).collect();
    assert_eq!(keys, ["a-b/c", "a/b", "a/z", "b/a"]);
    let only = Range { namespace: Some("a".into()), ..Range::default() };
    assert_eq!(names(&store, &only).unwrap(), ["b/1", "z/1"]);
}

#[test]
fn the_past_is_shown_as_it_was_until_it_is_forgotten() {
    let store = store(3);
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

#[test]
fn a_page_of_the_past_goes_on_behind_its_key_with_what_was_there() {
    let store = store(20);
    let [a, _, c, d] = ["a", "b", "c", "d"]
        .map(|name| store.put("maps", &key(name), Expect::Absent, draft(1)).unwrap());
    store.put("maps", &Key::new("other", "x"), Expect::Absent, draft(1)).unwrap();
    let then = Range { at: Some(store.revision()), after: Some(key("a")), ..Range::default() };
    let then = Range { namespace: Some("default".into()), ..then };
    // Gone, gone and back, changed twice, new: before, between and behind what stays.
    store.delete("maps", &key("a"), a.revision).unwrap();
    store.delete("maps", &key("c"), c.revision).unwrap();
    store.put("maps", &key("c"), Expect::Absent, draft(2)).unwrap();
    let changed = store.put("maps", &key("d"), Expect::Revision(d.revision), draft(2)).unwrap();
    store.delete("maps", &key("d"), changed.revision).unwrap();
    for name in ["aa", "bb", "e"] {
        store.put("maps", &key(name), Expect::Absent, draft(3)).unwrap();
    }
    assert_eq!(names(&store, &then).unwrap(), ["b/1", "c/1", "d/1"]);
    let now = Range { at: None, ..then };
    assert_eq!(names(&store, &now).unwrap(), ["aa/3", "b/1", "bb/3", "c/2", "e/3"]);
}

#[test]
fn what_is_deleted_is_last_seen_at_the_revision_of_its_deletion_and_otherwise_as_it_was() {
    let store = store(10);
    for is_said_elsewhere in [false, true] {
        let mut value = json!({"metadata": {}});
        if is_said_elsewhere {
            let number = (store.revision() + 1).to_string();
            let own = json!({"resourceVersion": number});
            value["text"] = own.to_string().into();
            value["own"] = own;
            value["a name with a \"resourceVersion"] = number.into();
        }
        let draft = Draft { value, fields: Default::default() };
        let written = store.put("maps", &key("a"), Expect::Absent, draft).unwrap();
        let gone = store.delete("maps", &key("a"), written.revision).unwrap();
        let mut expected = written.value();
        expected["metadata"]["resourceVersion"] = gone.revision.to_string().into();
        assert_eq!((gone.value(), gone.revision), (expected, store.revision()));
    }
}

#[tokio::test]
async fn a_watcher_sees_each_change_once_and_ends_rather_than_skip() {
    let store = store(3);
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
    let store = store(3);
    let mut watcher = store.watch("maps", store.revision()).unwrap();
    for name in ["a", "b", "c", "d", "e"] {
        store.put("secrets", &key(name), Expect::Absent, draft(1)).unwrap();
    }
    assert_eq!(watcher.caught_up(), Some(store.revision()));
}

#[test]
fn all_writes_of_a_commit_happen_at_one_revision_or_none_does() {
    let store = store(10);
    let write = |name: &str, expect| Write {
        resource: "maps".into(),
        key: key(name),
        expect,
        draft: Some(draft(1)),
    };
    let both = store.commit(vec![write("a", Expect::Absent), write("b", Expect::Absent)]).unwrap();
    assert_eq!(both[0].revision, both[1].revision);
    let before = store.revision();
    for refused in [
        vec![write("c", Expect::Absent), write("a", Expect::Absent)],
        vec![write("c", Expect::Absent), write("c", Expect::Absent)],
    ] {
        assert_eq!(store.commit(refused), Err(StoreError::Conflict));
    }
    assert_eq!(store.revision(), before);
    assert!(store.get("maps", &key("c")).is_none());
}

#[test]
fn a_reader_keeps_what_it_saw_while_writers_go_on() {
    let store = store(10);
    store.put("maps", &key("a"), Expect::Absent, draft(1)).unwrap();
    let seen = store.snapshot();
    let a = store.get("maps", &key("a")).unwrap();
    store.put("maps", &key("a"), Expect::Revision(a.revision), draft(2)).unwrap();
    store.put("maps", &key("b"), Expect::Absent, draft(2)).unwrap();
    assert_eq!(seen.objects("maps").count(), 1);
    assert_eq!(seen.get("maps", &key("a")), Some(a));
}

#[test]
fn the_past_takes_no_more_bytes_than_it_may_however_large_the_objects() {
    let limits = Limits { changes: 1000, bytes: 100_000 };
    let store = Store::new(limits);
    let large = |value: u32| Draft {
        value: json!({"metadata": {}, "value": value, "filling": "x".repeat(10_000)}),
        fields: Default::default(),
    };
    for resource in ["maps", "secrets"] {
        let mut revision =
            store.put(resource, &key("a"), Expect::Absent, large(0)).unwrap().revision;
        for value in 1..50 {
            let put = store.put(resource, &key("a"), Expect::Revision(revision), large(value));
            revision = put.unwrap().revision;
            assert!(store.figures().history_bytes <= limits.bytes);
        }
    }
    assert!(store.figures().history_bytes > limits.bytes / 2);
    assert!(matches!(store.watch("maps", 1), Err(StoreError::Expired { .. })));
}

#[test]
fn a_resource_of_which_nothing_is_left_takes_no_room_and_hides_no_change() {
    let store = store(10);
    let mut last = 0;
    for number in 0..100 {
        let name = format!("widgets-{number}.example.com");
        drop(store.watch(&name, store.revision()).unwrap());
        let made = store.put(&name, &key("a"), Expect::Absent, draft(1)).unwrap();
        last = store.delete(&name, &key("a"), made.revision).unwrap().revision;
    }
    let _watched = store.watch("maps", last).unwrap();
    assert_eq!(store.newest().resources.len(), 101, "their past is known");
    store.forget_until(last);
    assert_eq!(store.newest().resources.len(), 1);
    assert_eq!(store.published.watched(), 1, "nobody watches any of them");

    // Whoever saw less than was forgotten is told so, also when there are objects again.
    let first = "widgets-0.example.com";
    let next = store.put(first, &key("a"), Expect::Absent, draft(2)).unwrap().revision;
    let other = "widgets-1.example.com";
    for name in [first, other] {
        assert!(matches!(store.watch(name, last - 1), Err(StoreError::Expired { .. })), "{name}");
        assert!(store.watch(name, last).is_ok(), "{name}");
    }
    let changes = store.newest().changes(first, last, 1000).unwrap();
    assert_eq!(changes.iter().map(|it| it.object.revision).collect::<Vec<_>>(), [next]);
}

/// An object comes and goes; nothing is known of it when this returns. The revision of its end.
fn come_and_go(store: &Store, resource: &str) -> u64 {
    let made = store.put(resource, &key("a"), Expect::Absent, draft(1)).unwrap();
    let gone = store.delete(resource, &key("a"), made.revision).unwrap().revision;
    store.forget_until(gone);
    // What is forgotten shows with the next commit.
    let other = key(&format!("after-{gone}"));
    store.put("others", &other, Expect::Absent, draft(1)).unwrap();
    gone
}

#[tokio::test]
async fn a_watch_that_has_seen_everything_does_not_end_because_another_resource_is_forgotten() {
    for looks in [true, false] {
        for had_objects in [true, false] {
            let store = store(10);
            let seen = if had_objects { come_and_go(&store, "maps") } else { store.revision() };
            let mut watcher = store.watch("maps", seen).unwrap();
            for _ in 0..3 {
                come_and_go(&store, "secrets");
                if looks {
                    assert!(watcher.next().now_or_never().is_none(), "nothing to tell");
                    assert_eq!(watcher.caught_up(), Some(store.revision()));
                }
            }
            let first = store.put("maps", &key("a"), Expect::Absent, draft(1)).unwrap();
            let told = watcher.next().await.unwrap();
            assert_eq!(told.iter().map(|it| &it.object).collect::<Vec<_>>(), [&first]);
            assert_eq!(watcher.caught_up(), Some(store.revision()));
        }
    }
}

#[tokio::test]
async fn a_watcher_that_missed_changes_of_its_own_forgotten_resource_is_told_that_they_are_gone() {
    for others in [true, false] {
        let store = store(10);
        let (mut slow, mut slower) =
            (store.watch("maps", 1).unwrap(), store.watch("maps", 1).unwrap());
        let gone = come_and_go(&store, "maps");
        let mut knowing = store.watch("maps", gone).unwrap();
        if others {
            come_and_go(&store, "secrets");
        }
        let expired = Err(StoreError::Expired { asked: 1, oldest: gone });
        assert_eq!(slow.caught_up(), None);
        assert_eq!(slow.next().await.map(drop), expired);
        let next = store.put("maps", &key("a"), Expect::Absent, draft(1)).unwrap();
        assert_eq!(slower.next().await.map(drop), expired, "also when there are objects again");
        assert_eq!(knowing.next().await.unwrap()[0].object, next);
    }
}

#[test]
fn a_resource_of_which_nothing_is_left_is_kept_no_longer_than_it_is_watched() {
    let store = store(10);
    let names: Vec<String> = (0..100).map(|it| format!("widgets-{it}.example.com")).collect();
    let watchers: Vec<_> = names.iter().map(|name| store.watch(name, 1).unwrap()).collect();
    let last = names.iter().map(|name| come_and_go(&store, name)).max().unwrap();
    assert_eq!(store.newest().resources.len(), 101);
    drop(watchers);
    let _other = store.watch("others", store.revision()).unwrap();
    assert_eq!(store.newest().resources.len(), 1, "nobody watches any of them");
    for name in &names {
        let made = store.put(name, &key("a"), Expect::Absent, draft(2)).unwrap();
        assert!(matches!(store.watch(name, last - 1), Err(StoreError::Expired { .. })), "{name}");
        assert!(store.watch(name, made.revision).is_ok(), "{name}");
    }
}

/// A storage that waits to be told that commits are safe, or that they are not.
#[derive(Debug)]
struct Slow(std::sync::mpsc::Receiver<bool>);

impl Storage for Slow {
    fn load(&mut self, _: &mut dyn FnMut(Loaded)) -> Result<(), StorageError> {
        Ok(())
    }

    fn append(&mut self, _: &[Commit], _: &Snapshot) -> Result<(), StorageError> {
        if self.0.recv() == Ok(true) {
            return Ok(());
        }
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Err(StorageError::Io { what: "write", path: "log".into(), source })
    }
}

#[tokio::test]
async fn what_is_not_durable_is_seen_by_writers_only() {
    let (safe, told) = std::sync::mpsc::channel();
    let store = Store::open(Limits::default(), Slow(told)).unwrap();
    let mut watcher = store.watch("maps", store.revision()).unwrap();
    let a = store.put("maps", &key("a"), Expect::Absent, draft(1)).unwrap();
    assert_eq!(store.get("maps", &key("a")), Some(a.clone()));
    assert!(store.snapshot().get("maps", &key("a")).is_none());
    assert!(watcher.next().now_or_never().is_none());
    assert!(store.settle().now_or_never().is_none());
    safe.send(true).unwrap();
    store.settle().await.unwrap();
    assert_eq!(store.snapshot().get("maps", &key("a")), Some(a));
    assert_eq!(watcher.next().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_storage_that_fails_ends_all_writing_and_no_write_is_acknowledged() {
    let (safe, told) = std::sync::mpsc::channel();
    let store = Store::open(Limits::default(), Slow(told)).unwrap();
    store.put("maps", &key("a"), Expect::Absent, draft(1)).unwrap();
    safe.send(false).unwrap();
    assert_eq!(store.settle().await, Err(StoreError::Failed));
    assert_eq!(store.put("maps", &key("b"), Expect::Absent, draft(1)), Err(StoreError::Failed));
    assert!(store.snapshot().get("maps", &key("a")).is_none());
}

#[tokio::test]
async fn commits_that_come_while_others_are_written_are_made_durable_together() {
    let (safe, told) = std::sync::mpsc::channel();
    let store = Store::open(Limits::default(), Slow(told)).unwrap();
    let all: Vec<_> = (0..100)
        .map(|n| store.put("maps", &key(&format!("{n}")), Expect::Absent, draft(n)).unwrap())
        .collect();
    // The first write of the storage takes whatever was there, the second one the rest.
    safe.send(true).unwrap();
    safe.send(true).unwrap();
    store.wait_for(all[99].revision).await.unwrap();
    let listed = store.snapshot().list("maps", &Range::default()).unwrap();
    assert_eq!(listed.items.len(), 100);
    assert!(all.iter().all(|object| listed.items.iter().any(|it| Arc::ptr_eq(it, object))));
}
