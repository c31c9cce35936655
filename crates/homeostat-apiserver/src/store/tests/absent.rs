//! Objects that are finished but for their revision.

use super::place::{Keeping, Place};
use super::{draft, key, names, store};
use crate::store::{Expect, Finished, Limits, Range, Store, StoreError};

fn finished(name: &str, value: u32) -> Finished {
    let before = r#"{"kind":"Map","apiVersion":"v1","metadata":{"resourceVersion":""#;
    Finished {
        resource: "maps",
        key: key(name),
        api_version: "v1",
        labels: [("app", name)].into_iter().collect(),
        fields: Default::default(),
        text: [before.to_owned(), format!("\"}},\"value\":{value}}}")],
    }
}

#[test]
fn what_is_missing_is_made_at_a_revision_of_its_own_and_what_is_there_stays() {
    let store = store(10);
    store.put("maps", &key("b"), Expect::Absent, draft(7)).unwrap();
    let before = store.revision();
    let made = store.put_absent(["a", "b", "c", "a"].map(|name| finished(name, 1))).unwrap();
    let revisions: Vec<_> = made.iter().map(|made| Some(made.as_ref()?.revision)).collect();
    assert_eq!(revisions, [Some(before + 1), None, Some(before + 2), None]);
    assert_eq!(store.revision(), before + 2);
    assert_eq!(names(&store, &Range::default()).unwrap(), ["a/1", "b/7", "c/1"]);
    let last = store.get("maps", &key("c")).unwrap();
    assert_eq!(last.value()["metadata"]["resourceVersion"], (before + 2).to_string());
    assert_eq!((last.api_version.as_str(), last.labels.get("app")), ("v1", Some("c")));
    // It is an object as any other.
    store.put("maps", &key("c"), Expect::Revision(last.revision), draft(2)).unwrap();
}

#[tokio::test]
async fn whoever_watches_hears_of_each_of_them() {
    let store = store(10);
    let mut watcher = store.watch("maps", store.revision()).unwrap();
    store.put_absent(["a", "b"].map(|name| finished(name, 1))).unwrap();
    let heard = watcher.next().await.unwrap();
    let heard: Vec<_> = heard.iter().map(|it| (it.object.key.name.as_str(), it.deleted)).collect();
    assert_eq!(heard, [("a", false), ("b", false)]);
}

#[tokio::test]
async fn they_are_kept_as_any_other_object() {
    let place = Place::new(Keeping::Played { longest: u64::MAX });
    let open = || -> Store { place.open(Limits::default()).unwrap() };
    let store = open();
    store.put_absent(["a", "b"].map(|name| finished(name, 1))).unwrap();
    store.settle().await.unwrap();
    let (revision, kept) = (store.revision(), store.get("maps", &key("b")).unwrap());
    drop(store);
    let again = open();
    assert_eq!((again.revision(), again.get("maps", &key("b"))), (revision, Some(kept)));
    let made = again.put_absent([finished("b", 2)]);
    assert_eq!(made, Ok::<_, StoreError>(vec![None]));
    // Nothing was written, and what comes next is.
    again.put("maps", &key("c"), Expect::Absent, draft(3)).unwrap();
    again.settle().await.unwrap();
}
