//! Objects that cannot be read, on a scripted server: what is known of them stays, nobody is told that
//! they went, and they are there again as soon as they can be read.

use serde_json::{Value, json};

use super::script::{End, bookmark, event, object, page, refused, streamed, watch};
use super::tests::Followed;
use crate::Key;

/// An object whose labels are none.
fn broken(name: &str, revision: u64) -> Value {
    let mut object = object(name, revision);
    object["metadata"]["labels"] = json!({ "x": 1 });
    object
}

/// A server that tells of its objects in one of two ways, and forgets what it told after each.
fn forgetful(streams: bool, lists: &[(&[Value], u64, &[String])]) -> Followed {
    let mut answers = Vec::new();
    if !streams {
        answers.push(refused(422, "no streaming"));
    }
    for (items, revision, lines) in lists {
        if streams {
            answers.push(streamed(items, *revision, lines, End::Close));
        } else {
            answers.push(page(items, *revision, None));
            answers.push(watch(lines.iter().cloned(), End::Close));
        }
        answers.push(refused(410, "too old"));
    }
    Followed::new(answers)
}

fn revision(followed: &Followed, name: &str) -> Option<String> {
    let entry = followed.informer.entry(&Key::namespaced("default", name));
    entry.map(|entry| entry.header.resource_version.clone())
}

fn unreadable(followed: &Followed) -> Vec<String> {
    followed.informer.unreadable().iter().map(|key| key.name().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_cached_stays_known_to_be_old_through_a_list_until_it_can_be_read_again() {
    let (a, b) = (object("a", 1), object("b", 2));
    for streams in [true, false] {
        let followed = forgetful(
            streams,
            &[
                (&[a.clone(), b.clone()], 10, &[event("MODIFIED", &broken("a", 11))]),
                (&[broken("a", 11), b.clone()], 20, &[bookmark(20)]),
                (&[object("a", 30), b.clone()], 30, &[bookmark(30)]),
            ],
        );
        for at in [11, 20] {
            followed.reaches(at).await;
            assert_eq!(unreadable(&followed), ["a"], "its newest version is not there");
            assert_eq!(revision(&followed, "a").as_deref(), Some("1"), "an older one is");
            assert_eq!(followed.told(), ["added a 1", "added b 2"], "nobody hears that it is gone");
        }
        followed.reaches(30).await;
        assert!(unreadable(&followed).is_empty());
        assert_eq!(followed.told(), ["added a 1", "added b 2", "updated a 30"]);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_was_never_read_is_there_once_it_can_be_although_it_did_not_change() {
    for streams in [true, false] {
        let (ill, well) = ([broken("a", 5)], [object("a", 5)]);
        let lists: [(&[Value], u64, &[String]); 2] =
            [(&ill, 10, &[bookmark(10)]), (&well, 20, &[bookmark(20)])];
        let followed = forgetful(streams, &lists);
        followed.reaches(10).await;
        assert_eq!((unreadable(&followed), followed.names()), (names(["a"]), names([])));
        followed.reaches(20).await;
        assert!(unreadable(&followed).is_empty());
        assert_eq!(followed.told(), ["added a 5"]);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_goes_is_gone_readable_or_not_in_a_watch_and_in_a_list() {
    let lines = [
        event("MODIFIED", &broken("a", 11)),
        event("MODIFIED", &broken("b", 12)),
        event("DELETED", &broken("a", 13)),
        event("DELETED", &object("b", 14)),
        event("ADDED", &broken("c", 15)),
    ];
    let known = [object("a", 1), object("b", 2)];
    let followed = forgetful(true, &[(&known, 10, &lines), (&[], 20, &[bookmark(20)])]);
    followed.reaches(15).await;
    assert_eq!(unreadable(&followed), ["c"]);
    assert_eq!(followed.told(), ["added a 1", "added b 2", "deleted a 1", "deleted b 14"]);
    followed.reaches(20).await;
    assert!(unreadable(&followed).is_empty(), "what is not in a list is not unreadable either");
    assert_eq!(followed.told().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_namesake_that_cannot_be_read_does_not_keep_its_forerunner_alive() {
    let mut other = broken("a", 15);
    other["metadata"]["uid"] = "another".into();
    let known = [object("a", 1)];
    let followed =
        forgetful(true, &[(&known, 10, &[bookmark(10)]), (&[other], 20, &[bookmark(20)])]);
    followed.reaches(20).await;
    assert_eq!(followed.told(), ["added a 1", "deleted a 1"]);
    assert_eq!(unreadable(&followed), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_with_something_that_has_no_name_proves_nothing_gone() {
    let nameless = json!({ "metadata": { "name": 5, "resourceVersion": "15" } });
    let (a, b) = (object("a", 1), object("b", 2));
    let followed = forgetful(
        false,
        &[
            (&[a.clone(), b.clone()], 10, &[bookmark(10)]),
            (&[b.clone(), nameless.clone()], 20, &[bookmark(20)]),
            (std::slice::from_ref(&b), 30, &[bookmark(30)]),
        ],
    );
    followed.reaches(20).await;
    assert_eq!((followed.names(), unreadable(&followed)), (names(["a", "b"]), names(["a"])));
    followed.reaches(30).await;
    assert_eq!(followed.told(), ["added a 1", "added b 2", "deleted a 1"]);
    assert!(unreadable(&followed).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_had_no_name_in_one_list_is_there_once_it_has_although_it_did_not_change() {
    let nameless = json!({ "metadata": { "name": 5, "resourceVersion": "15" } });
    let (a, b) = (object("a", 15), object("b", 2));
    let followed = forgetful(
        false,
        &[
            (&[b.clone(), nameless], 20, &[bookmark(20)]),
            (&[a, b.clone()], 30, &[bookmark(30)]),
            // A server that lags is believed as little as ever once there is no doubt any more.
            (&[b, object("c", 25)], 40, &[bookmark(40)]),
        ],
    );
    followed.reaches(40).await;
    let asked = followed.script.asked();
    let lists = asked.iter().filter(|asked| !asked.is_watch());
    let since: Vec<Option<&str>> = lists.map(|list| list.get("resourceVersion")).collect();
    assert_eq!(since, [None, None, Some("30")], "of this moment after the doubtful one");
    assert_eq!(followed.told(), ["added b 2", "added a 15", "deleted a 15"]);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_with_something_that_has_no_name_comes_again_in_pages() {
    let garbled = json!({ "metadata": { "name": 5 } });
    let all = [object("a", 1), object("b", 2)];
    let followed = Followed::new([
        streamed(&[all[0].clone(), garbled], 10, &[], End::Open),
        page(&all, 11, None),
        watch([bookmark(12)], End::Open),
    ]);
    followed.reaches(12).await;
    assert_eq!(followed.told(), ["added a 1", "added b 2"]);
    assert!(unreadable(&followed).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_line_that_may_be_of_any_object_leads_to_a_list_of_this_moment() {
    let a = object("a", 1);
    // The addition of `b` is garbled, and what follows it can be read.
    let lines = ["garbled\n".to_owned(), event("ADDED", &object("c", 20))];
    let all = [a.clone(), object("b", 15), object("c", 20)];
    let followed =
        Followed::new([streamed(&[a], 10, &lines, End::Open), streamed(&all, 21, &[], End::Open)]);
    followed.reaches(21).await;
    assert_eq!(followed.told(), ["added a 1", "added b 15", "added c 20"]);
    let asked = followed.script.asked();
    assert_eq!((asked.len(), asked[1].get("sendInitialEvents")), (2, Some("true")));
    assert_eq!(asked[1].get("resourceVersion"), None, "a server that lags must not answer");
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_that_cannot_be_read_costs_the_watch_and_no_list() {
    let broken = r#"{"type":"BOOKMARK","object":{"metadata":{}}}"#.to_owned() + "\n";
    let followed = Followed::new([
        streamed(&[object("a", 1)], 10, &[broken], End::Open),
        watch([event("MODIFIED", &object("a", 11))], End::Open),
    ]);
    followed.reaches(11).await;
    assert_eq!(followed.told(), ["added a 1", "updated a 11"]);
}

#[tokio::test(start_paused = true)]
async fn an_end_of_the_initial_events_that_cannot_be_read_costs_the_stream_and_no_object() {
    let end = json!({ "annotations": { "k8s.io/initial-events-end": "true" } });
    let lines = [event("ADDED", &object("a", 1)), event("BOOKMARK", &json!({ "metadata": end }))];
    let followed = Followed::new([
        watch(lines, End::Open),
        page(&[object("a", 1), object("b", 2)], 11, None),
        watch([bookmark(12)], End::Open),
    ]);
    followed.reaches(12).await;
    assert_eq!(followed.told(), ["added a 1", "added b 2"]);
    let pages = &followed.script.asked()[1];
    assert!(!pages.is_watch() && pages.at < 10_000, "without waiting for another end: {pages:?}");
}

fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_write_that_cannot_be_read_is_not_taken_for_one_that_is_gone() {
    let lines = [event("ADDED", &broken("a", 11)), bookmark(12)];
    let followed = Followed::new([streamed(&[], 10, &lines, End::Open)]);
    followed.reaches(12).await;
    let (key, version) =
        (Key::namespaced("default", "a"), crate::cache::Expect::Version("11".to_owned()));
    let limit = std::time::Duration::from_secs(5);
    let waited = followed.informer.wait_for_object(&key, "uid-a", &version, limit).await;
    assert!(waited.unwrap_err().is_conflict());
}
