//! What the log promises, kept on real files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use std::sync::Arc;

use homeostat_env::Env;
use jiff::Timestamp;

use super::super::{Draft, Expect, Key, Limits, Pairs, Range, StorageError, Store, Write};
use super::{Log, LogOptions, Storage as _, checkpoint};
use crate::directory::DataDirectory;
use crate::disk::lossy::{LossyDisk, Trouble};

fn draft(value: usize) -> Draft {
    let value = json!({
        "kind": "Map",
        "apiVersion": "v1",
        "metadata": {"labels": {"n": value.to_string()}},
        "value": value,
    });
    Draft { value, fields: [("spec.value", "x")].into_iter().collect::<Pairs>() }
}

fn open(path: &Path, longest: u64) -> Result<Store, StorageError> {
    let directory = DataDirectory::open(path)?;
    Store::open(Limits::default(), Log::open(&directory, LogOptions { longest })?)
}

/// Everything that readers see.
fn contents(store: &Store) -> (u64, Vec<(String, String)>) {
    let snapshot = store.snapshot();
    let mut all = Vec::new();
    for (resource, _) in snapshot.resources() {
        for object in snapshot.objects(resource) {
            assert_eq!(object.fields.get("spec.value"), Some("x"));
            assert!(object.labels.get("n").is_some());
            all.push((format!("{resource}/{}", object.key.name), object.value().to_string()));
        }
    }
    (snapshot.revision(), all)
}

/// Creates, replaces and deletes; each one durable before the next.
async fn work(store: &Store, rounds: usize) {
    for round in 0..rounds {
        let key = Key::new("default", format!("object-{}", round % 7));
        match store.get("maps", &key) {
            None => drop(store.put("maps", &key, Expect::Absent, draft(round)).unwrap()),
            Some(object) if round % 5 == 0 => {
                store.delete("maps", &key, object.revision).unwrap();
            }
            Some(object) => {
                let expect = Expect::Revision(object.revision);
                let write =
                    Write { resource: "maps".into(), key, expect, draft: Some(draft(round)) };
                let key = Key::new("", format!("pair-{}", store.newest().revision()));
                let draft = Some(draft(round));
                let twin = Write { resource: "pairs".into(), key, expect: Expect::Absent, draft };
                store.commit(vec![write, twin]).unwrap();
            }
        }
        store.settle().await.unwrap();
    }
}

fn logs(place: &Path, prefix: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(place.join("store")).unwrap();
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix));
    paths.sort();
    paths
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_opening_again_and_revisions_go_on() {
    let place = TempDir::new().unwrap();
    for longest in [u64::MAX, 4096, 0] {
        let path = place.path().join(longest.to_string());
        let mut before = None;
        for _ in 0..4 {
            let store = open(&path, longest).unwrap();
            if let Some(before) = &before {
                assert_eq!(contents(&store), *before, "longest {longest}");
            }
            work(&store, 40).await;
            let after = contents(&store);
            assert!(before.is_none_or(|before| before.0 < after.0));
            before = Some(after);
        }
        // A log that may not grow is replaced by snapshots, and what they cover is gone.
        assert_eq!(logs(&path, "snapshot-").len(), usize::from(longest < u64::MAX));
        assert!(logs(&path, "log-").len() <= 2);
    }
}

#[tokio::test]
async fn the_past_since_the_last_snapshot_can_be_watched_after_opening_again() {
    let place = TempDir::new().unwrap();
    let store = open(place.path(), u64::MAX).unwrap();
    work(&store, 10).await;
    let middle = store.revision();
    work(&store, 10).await;
    let mut watcher = store.watch("maps", middle).unwrap();
    let before = watcher.next().await.unwrap();
    drop((store, watcher));
    let store = open(place.path(), u64::MAX).unwrap();
    let after = store.watch("maps", middle).unwrap().next().await.unwrap();
    let shown = |changes: &[std::sync::Arc<super::super::Change>]| -> Vec<_> {
        changes.iter().map(|it| (it.deleted, it.object.clone(), it.previous.clone())).collect()
    };
    assert_eq!(shown(&before), shown(&after));
}

#[tokio::test]
async fn a_watch_from_before_the_snapshot_is_told_that_the_past_is_gone() {
    let place = TempDir::new().unwrap();
    let store = open(place.path(), 0).unwrap();
    // Snapshots are taken in the background, when there is something to take.
    let covers = |path: &PathBuf| {
        path.extension().is_none() && *path > checkpoint::path(&place.path().join("store"), 2)
    };
    while !logs(place.path(), "snapshot-").iter().any(covers) {
        work(&store, 10).await;
    }
    drop(store);
    let store = open(place.path(), 0).unwrap();
    assert!(store.watch("maps", 2).is_err());
    assert!(store.watch("never-written", 2).is_err());
    let past = Range { at: Some(2), ..Range::default() };
    assert!(store.snapshot().list("never-written", &past).is_err());
    assert!(store.watch("maps", store.revision()).is_ok());
}

/// A small log of acknowledged commits: the file's bytes and where they end, and the last revision.
async fn small_log() -> (TempDir, Vec<u8>, usize, (u64, Vec<(String, String)>)) {
    let place = TempDir::new().unwrap();
    let store = open(place.path(), u64::MAX).unwrap();
    work(&store, 6).await;
    let expected = contents(&store);
    drop(store);
    let path = logs(place.path(), "log-").remove(0);
    let bytes = fs::read(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    (place, bytes, end, expected)
}

#[tokio::test]
async fn every_flipped_byte_of_what_was_acknowledged_is_found() {
    let (place, bytes, end, expected) = small_log().await;
    let path = logs(place.path(), "log-").remove(0);
    for at in 0..end {
        let mut flipped = bytes.clone();
        flipped[at] ^= [0x01, 0x80, 0xff][at % 3];
        fs::write(&path, &flipped[..end + 64]).unwrap();
        assert!(open(place.path(), u64::MAX).is_err(), "byte {at} was flipped, and nobody noticed");
    }
    fs::write(&path, &bytes).unwrap();
    assert_eq!(contents(&open(place.path(), u64::MAX).unwrap()), expected);
}

#[tokio::test]
async fn a_log_that_is_shorter_than_what_was_acknowledged_is_refused() {
    let (place, bytes, end, _) = small_log().await;
    let path = logs(place.path(), "log-").remove(0);
    for length in 0..end {
        fs::write(&path, &bytes[..length]).unwrap();
        let refused = open(place.path(), u64::MAX);
        assert!(
            matches!(refused, Err(StorageError::Damaged { .. })),
            "{length} bytes: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_torn_end_that_was_never_acknowledged_is_cut_off() {
    let (place, bytes, end, expected) = small_log().await;
    let path = logs(place.path(), "log-").remove(0);
    let mark = fs::read(place.path().join("store/synced")).unwrap();
    let store = open(place.path(), u64::MAX).unwrap();
    let key = Key::new("default", "late");
    store.put("maps", &key, Expect::Absent, draft(1)).unwrap();
    store.settle().await.unwrap();
    let late = contents(&store);
    drop(store);
    let longer = fs::read(&path).unwrap();
    let late_end = longer.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for length in end..=late_end {
        for zeros in [0, 100] {
            let mut torn = longer[..length].to_vec();
            torn.resize(length + zeros, 0);
            fs::write(&path, &torn).unwrap();
            fs::write(place.path().join("store/synced"), &mark).unwrap();
            let opened = contents(&open(place.path(), u64::MAX).unwrap());
            let whole = length == late_end || longer[length..late_end].iter().all(|it| *it == 0);
            let wanted = if whole { &late } else { &expected };
            assert_eq!(opened, *wanted, "{length} of {late_end} bytes, {zeros} zeros");
        }
    }
    assert_eq!(bytes[..end], longer[..end]);
}

#[tokio::test]
async fn a_log_that_was_begun_and_never_marked_is_no_damage_ever_after() {
    let place = TempDir::new().unwrap();
    let store = open(place.path(), u64::MAX).unwrap();
    work(&store, 6).await;
    let next = store.revision() + 1;
    drop(store);
    // Killed between the two: a log with nothing in it, of which the mark does not know.
    let begun = super::recover::log_path(&place.path().join("store"), next);
    fs::write(&begun, super::frame::header(super::MAGIC, next)).unwrap();
    let store = open(place.path(), u64::MAX).unwrap();
    work(&store, 6).await;
    let (expected, next) = (contents(&store), store.revision() + 1);
    drop(store);
    // And killed again, when this log had been ended and the next one had its mark, but the snapshot
    // was not written.
    let ended = logs(place.path(), "log-").remove(0);
    let mut bytes = fs::read(&ended).unwrap();
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1);
    fs::write(&ended, &bytes).unwrap();
    let directory = DataDirectory::open(place.path()).unwrap();
    let mut log = Log::open(&directory, LogOptions { longest: u64::MAX }).unwrap();
    log.begin(next).unwrap();
    drop((log, directory));
    assert_eq!(contents(&open(place.path(), u64::MAX).unwrap()), expected);
}

#[tokio::test]
async fn a_gap_is_damage_even_if_the_mark_is_older() {
    let (place, bytes, end, _) = small_log().await;
    let path = logs(place.path(), "log-").remove(0);
    // As after the machine's end: the mark is the one of the beginning.
    let beginning = TempDir::new().unwrap();
    drop(open(beginning.path(), u64::MAX).unwrap());
    let mark = fs::read(beginning.path().join("store/synced")).unwrap();
    let mut flipped = bytes.clone();
    flipped[60] ^= 1;
    fs::write(&path, &flipped).unwrap();
    fs::write(place.path().join("store/synced"), &mark).unwrap();
    assert!(matches!(open(place.path(), u64::MAX), Err(StorageError::Damaged { .. })));
    // And with the end alone in doubt it is cut off.
    fs::write(&path, &bytes[..end - 1]).unwrap();
    assert!(open(place.path(), u64::MAX).is_ok());
}

#[tokio::test]
async fn every_flipped_or_missing_byte_of_a_snapshot_and_of_the_mark_is_found() {
    let place = TempDir::new().unwrap();
    let store = open(place.path(), 0).unwrap();
    work(&store, 6).await;
    drop(store);
    let expected = contents(&open(place.path(), u64::MAX).unwrap());
    for name in ["snapshot-", "synced"] {
        let path = logs(place.path(), name).remove(0);
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            for damaged in [&flipped[..], &bytes[..at]] {
                fs::write(&path, damaged).unwrap();
                assert!(open(place.path(), u64::MAX).is_err(), "{name} byte {at}");
            }
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(contents(&open(place.path(), u64::MAX).unwrap()), expected);
}

#[tokio::test]
async fn a_missing_file_is_found() {
    let place = TempDir::new().unwrap();
    let store = open(place.path(), 0).unwrap();
    work(&store, 6).await;
    drop(store);
    drop(open(place.path(), u64::MAX).unwrap());
    for path in logs(place.path(), "") {
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let opened = open(place.path(), u64::MAX);
        assert!(matches!(opened, Err(StorageError::Damaged { .. })), "{path:?}: {opened:?}");
        fs::write(&path, &bytes).unwrap();
    }
    open(place.path(), u64::MAX).unwrap();
}

#[tokio::test]
async fn a_file_of_a_later_format_is_refused_by_name() {
    let (place, mut bytes, ..) = small_log().await;
    let path = logs(place.path(), "log-").remove(0);
    bytes[8] = 9;
    let crc = crc32fast::hash(&bytes[..20]).to_le_bytes();
    bytes[20..24].copy_from_slice(&crc);
    fs::write(&path, &bytes).unwrap();
    let refused = open(place.path(), u64::MAX);
    assert!(matches!(refused, Err(StorageError::TooNew { found: 9, .. })), "{refused:?}");
}

#[tokio::test]
async fn nothing_goes_for_a_snapshot_whose_name_is_not_durable() {
    for seed in 0..400 {
        let disk = LossyDisk::new();
        let options = LogOptions { longest: u64::MAX };
        let log = || Log::on(Arc::new(disk.clone()), "/".into(), options);
        let open = || Store::open(Limits::default(), log()?);
        let store = open().unwrap();
        work(&store, 3).await;
        let (expected, snapshot) = (contents(&store), store.newest());
        drop(store);
        let mut log = log().unwrap();
        log.load(&mut |_| {}).unwrap();
        log.begin(snapshot.revision() + 1).unwrap();
        drop(log);
        // Killed when it had its name, before the directory was synced.
        disk.expect(4, Trouble::Kill);
        checkpoint::write(&disk, Path::new("/"), &snapshot).unwrap_err();
        let env = Env::simulated(seed, Timestamp::UNIX_EPOCH);
        disk.restart(&env);
        disk.expect(seed % 16, Trouble::PowerLoss);
        drop(open());
        disk.restart(&env);
        assert_eq!(contents(&open().unwrap()), expected, "seed {seed}");
    }
}
