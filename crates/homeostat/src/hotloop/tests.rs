//! What is a hot loop and what only looks busy.

use std::time::Duration;

use super::{Detector, Finding, HotLoop};
use crate::context::Change;
use crate::difference::FieldChange;
use crate::journal::Write;
use crate::key::Key;
use crate::kind::Kind;

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

/// The first finding of `count` reconciles, one every `every`.
fn first(count: u64, every: Duration, write: impl Fn(u64) -> Vec<Write>) -> Option<(u64, Finding)> {
    let mut detector = Detector::new(HotLoop::default());
    let key = Key::namespaced("default", "a");
    (0..count).find_map(|run| {
        let now = every * u32::try_from(run).unwrap();
        detector.observe(&key, &write(run), now).map(|finding| (run, finding))
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
fn reconciling_without_end_is_a_loop_without_a_field() {
    let (run, finding) = first(1000, Duration::from_millis(1), |_| Vec::new()).unwrap();
    assert_eq!((run, finding.object, finding.fields.len()), (599, None, 0));
    assert_eq!(first(1000, Duration::from_secs(1), |_| Vec::new()), None);
}

#[test]
fn a_loop_that_goes_on_is_told_again_only_after_a_while() {
    let mut detector = Detector::new(HotLoop::default());
    let key = Key::namespaced("default", "a");
    let told = (0..3600_u64).filter(|second| {
        let writes = [write("data.value", second % 2, (second + 1) % 2)];
        detector.observe(&key, &writes, Duration::from_secs(*second)).is_some()
    });
    assert_eq!(told.count(), 6);
}

#[test]
fn only_so_many_keys_are_watched() {
    let mut detector = Detector::new(HotLoop::default());
    for number in 0..5000_u32 {
        let key = Key::namespaced("default", number.to_string());
        detector.observe(&key, &[], Duration::from_millis(number.into()));
    }
    assert_eq!(detector.watched(), 1024);
    detector.forget(&Key::namespaced("default", "4999"));
    assert_eq!(detector.watched(), 1023);
}
