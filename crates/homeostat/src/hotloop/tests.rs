//! What is a hot loop and what only looks busy.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Detector, Finding, HotLoop, Run};
use crate::cache::Entry;
use crate::context::Change;
use crate::difference::FieldChange;
use crate::journal::Write;
use crate::key::Key;
use crate::kind::Kind;
use crate::trigger::Trigger;

fn write(path: &str, from: u64, to: u64) -> Write {
    let change = FieldChange {
        path: path.into(),
        from: String::new(),
        to: String::new(),
        digests: (from, to),
    };
    Write {
        verb: "apply",
        kind: Kind::new("", "v1", "ConfigMap", "configmaps", true),
        key: Key::namespaced("default", "child"),
        change: Change::Changed,
        fields: vec![change],
    }
}

fn observe(detector: &mut Detector, key: &Key, writes: &[Write], now: Duration) -> Option<Finding> {
    let kind = Kind::new("", "v1", "Pod", "pods", true);
    detector.observe(key, Run { triggers: &[], writes, seen: None, kind: &kind }, now)
}

/// The first finding of `count` reconciles, one every `every`.
fn first(count: u64, every: Duration, write: impl Fn(u64) -> Vec<Write>) -> Option<(u64, Finding)> {
    let mut detector = Detector::new(HotLoop::default());
    let key = Key::namespaced("default", "a");
    (0..count).find_map(|run| {
        let now = every * u32::try_from(run).unwrap();
        observe(&mut detector, &key, &write(run), now).map(|finding| (run, finding))
    })
}

#[test]
fn a_field_that_goes_back_and_forth_is_named() {
    let flip = |run: u64| vec![write("data.value", run % 2, (run + 1) % 2)];
    let (run, finding) = first(100, Duration::from_secs(1), flip).unwrap();
    assert_eq!((run, &*finding.fields), (10, &["data.value".to_owned()][..]));
    assert_eq!(
        finding.to_string(),
        "hot loop: reconciled 11 times in 60s, ConfigMap default/child changed 11 times, again and \
         again in data.value"
    );
}

#[test]
fn a_status_that_goes_up_and_down_with_what_it_tells_of_is_no_loop_unless_it_never_rests() {
    let count = |run: u64| vec![write("status.ready", run % 3, (run + 1) % 3)];
    assert_eq!(first(60, Duration::from_secs(1), count), None);
    let (_, finding) = first(600, Duration::from_millis(100), count).unwrap();
    assert_eq!(finding.fields, ["status.ready"]);
}

#[test]
fn progress_is_no_loop_however_often_it_is_told() {
    let progress = |run: u64| vec![write("status.ready", run, run + 1)];
    assert_eq!(first(180, Duration::from_millis(1), progress), None);
    assert_eq!(first(5000, Duration::from_secs(1), progress), None);
}

#[test]
fn something_new_every_time_is_a_loop_when_it_is_fast() {
    let clock = |run: u64| vec![write("status.checked", run, run + 1)];
    let (run, finding) = first(1000, Duration::from_millis(10), clock).unwrap();
    assert_eq!((run, &*finding.fields), (199, &["status.checked".to_owned()][..]));
}

#[test]
fn a_child_that_is_made_and_deleted_without_end_is_named() {
    let child = |change: Change, name: &str| Write {
        change,
        key: Key::namespaced("default", name),
        fields: Vec::new(),
        ..write("", 0, 0)
    };
    let pace = Duration::from_millis(200); // 300 times a minute
    let (run, finding) = first(600, pace, |_| vec![child(Change::Created, "child")]).unwrap();
    assert_eq!((run, &*finding.fields), (199, &[][..]));
    assert_eq!(
        finding.to_string(),
        "hot loop: reconciled 200 times in 60s, ConfigMap default/child changed 200 times"
    );
    let deleted = first(600, pace, |_| vec![child(Change::Deleted, "child")]).unwrap();
    assert_eq!(deleted.0, 199, "and so is the other one's part");
    // Children of other names, and writes that change nothing, are no loop.
    let other = |run: u64| vec![child(Change::Created, &format!("child-{run}"))];
    assert_eq!(first(600, pace, other), None);
    assert_eq!(first(600, pace, |_| vec![child(Change::Unchanged, "child")]), None);
}

#[test]
fn reconciling_without_end_is_a_loop_without_a_field() {
    let (run, finding) = first(1000, Duration::from_millis(1), |_| Vec::new()).unwrap();
    assert_eq!((run, finding.object, finding.fields.len()), (599, None, 0));
    assert_eq!(first(1000, Duration::from_secs(1), |_| Vec::new()), None);
}

#[test]
fn a_field_that_others_flip_is_named_with_whoever_wakes_the_key() {
    let mut detector = Detector::new(HotLoop::default());
    let (kind, key) = (Kind::new("", "v1", "Pod", "pods", true), Key::namespaced("default", "a"));
    let (change, by) = (crate::trigger::EventKind::Updated, key.clone());
    let triggers = [crate::Trigger::Event { change, kind: kind.clone(), key: by }];
    let found = (0..1000_u32).find_map(|number| {
        let metadata = json!({ "name": "a", "uid": "1", "resourceVersion": number.to_string() });
        let body = json!({ "metadata": metadata, "status": { "phase": number % 2 } });
        let seen = Arc::new(Entry::parse(&kind, &body.to_string(), false).unwrap());
        let run = Run { triggers: &triggers, writes: &[], seen: Some(&seen), kind: &kind };
        detector.observe(&key, run, Duration::from_millis(number.into()))
    });
    assert_eq!(
        found.unwrap().to_string(),
        "hot loop: reconciled 600 times in 60s, woken by Pod default/a 600 times, again and again in \
         status.phase"
    );
}

#[test]
fn a_loop_that_goes_on_is_told_again_only_after_a_while() {
    let mut detector = Detector::new(HotLoop::default());
    let key = Key::namespaced("default", "a");
    let told = (0..3600_u64).filter(|second| {
        let writes = [write("data.value", second % 2, (second + 1) % 2)];
        observe(&mut detector, &key, &writes, Duration::from_secs(*second)).is_some()
    });
    assert_eq!(told.count(), 6);
}

#[test]
fn only_so_many_keys_are_watched() {
    let mut detector = Detector::new(HotLoop::default());
    for number in 0..5000_u32 {
        let key = Key::namespaced("default", number.to_string());
        observe(&mut detector, &key, &[], Duration::from_millis(number.into()));
    }
    assert_eq!(detector.watched(), 1024);
    detector.forget(&Key::namespaced("default", "4999"));
    assert_eq!(detector.watched(), 1023);
    // Windows that end and begin again take no more room either.
    for hour in 1..5000_u64 {
        let key = Key::namespaced("default", (4000 + hour % 10).to_string());
        observe(&mut detector, &key, &[], Duration::from_secs(3600 * hour));
    }
    assert_eq!(detector.watched(), 1023);
}

#[test]
fn a_loop_is_found_among_thousands_of_keys_that_come_by_once_a_minute_and_told_once() {
    let mut detector = Detector::new(HotLoop::default());
    let key = Key::namespaced("default", "loop");
    let mut found = Vec::new();
    for tick in 0..18_000_u32 {
        // A hundred keys a second, six thousand in turn, and one that is set back every three.
        let now = Duration::from_millis(u64::from(tick) * 10);
        let passing = Key::namespaced("default", (tick % 6000).to_string());
        assert_eq!(observe(&mut detector, &passing, &[], now), None);
        if tick % 300 == 0 {
            let side = u64::from(tick / 300 % 2);
            let writes = [write("data.value", side, 1 - side)];
            found.extend(observe(&mut detector, &key, &writes, now).map(|found| (now, found)));
        }
    }
    let [(when, finding)] = &*found else { panic!("{found:?}") };
    assert_eq!((when.as_secs(), &*finding.fields), (30, &["data.value".to_owned()][..]));
    assert_eq!(detector.watched(), 1024);
}

#[test]
fn where_every_key_is_busy_the_oldest_windows_go_all_the_same() {
    let mut detector = Detector::new(HotLoop::default());
    for number in 0..5000_u32 {
        let key = Key::namespaced("default", number.to_string());
        for _ in 0..5 {
            observe(&mut detector, &key, &[], Duration::from_millis(number.into()));
        }
    }
    assert_eq!(detector.watched(), 1024);
}

#[test]
fn the_first_look_at_everything_is_no_loop_and_pushes_nothing_out() {
    let mut detector = Detector::new(HotLoop::default());
    let kind = Kind::new("", "v1", "Pod", "pods", true);
    observe(&mut detector, &Key::namespaced("default", "busy"), &[], Duration::ZERO);
    for number in 0..5000 {
        let run = Run { triggers: &[Trigger::Initial], writes: &[], seen: None, kind: &kind };
        detector.observe(&Key::namespaced("default", number.to_string()), run, Duration::ZERO);
    }
    assert_eq!(detector.watched(), 1);
    let run = Run {
        triggers: &[Trigger::Initial],
        writes: &[write("data.a", 1, 2)],
        seen: None,
        kind: &kind,
    };
    detector.observe(&Key::namespaced("default", "writes"), run, Duration::ZERO);
    assert_eq!(detector.watched(), 2);
}
