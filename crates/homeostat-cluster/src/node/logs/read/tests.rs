//! What readers of a log are promised, whatever its files do.

use futures::StreamExt;
use tempfile::TempDir;

use super::*;
use crate::node::logs::Limits;

const RAW: [&str; 4] = [
    "2026-01-01T00:00:00.000000001Z stdout F one\n",
    "2026-01-01T00:00:01.000000000Z stdout P two \n",
    "2026-01-01T00:00:01.500000000Z stdout F halves\n",
    "2026-01-01T00:00:02.000000000Z stderr F three\n",
];

async fn log(records: &[&str], limits: Limits) -> (TempDir, Log) {
    let directory = tempfile::tempdir().unwrap();
    let log = Log::create(directory.path().join("0"), limits).await.unwrap();
    for record in records {
        log.append(record.as_bytes()).await.unwrap();
    }
    (directory, log)
}

async fn shown(log: &Log, options: Options) -> String {
    String::from_utf8(read(log, &options).await.unwrap()).unwrap()
}

fn tail(lines: usize) -> Options {
    Options { tail: Some(lines), ..Options::default() }
}

/// Files of one record, of two, and of all.
const SIZES: [u64; 3] = [1, 100, 10_000];

#[tokio::test]
async fn parts_are_joined_and_lines_counted_from_the_end() {
    for bytes in SIZES {
        let (_directory, log) = log(&RAW, Limits { bytes, files: 9 }).await;
        assert_eq!(shown(&log, Options::default()).await, "one\ntwo halves\nthree\n");
        for (lines, text) in [
            (0, ""),
            (1, "three\n"),
            (2, "two halves\nthree\n"),
            (3, "one\ntwo halves\nthree\n"),
            (9, "one\ntwo halves\nthree\n"),
        ] {
            assert_eq!(shown(&log, tail(lines)).await, text, "{lines} lines, {bytes} bytes");
        }
        log.append(b"2026-01-01T00:00:03.000000000Z stdout P open\n").await.unwrap();
        assert_eq!(shown(&log, tail(1)).await, "open");
        assert_eq!(shown(&log, tail(2)).await, "three\nopen");
    }
}

#[tokio::test]
async fn a_log_that_an_earlier_process_wrote_reads_the_same_and_ends() {
    for bytes in SIZES {
        let (directory, log) = log(&RAW, Limits { bytes, files: 3 }).await;
        let stem = directory.path().join("0");
        // Those of other runs are not taken for its own.
        std::fs::write(directory.path().join("01.0.log"), RAW[0]).unwrap();
        let again = Log::reopen(stem).await.unwrap();
        let all = shown(&log, Options::default()).await;
        assert_eq!(shown(&again, Options::default()).await, all);
        assert_eq!(shown(&again, tail(1)).await, "three\n");
        let followed: Vec<_> = follow(again, Options::default()).collect().await;
        let followed: Vec<u8> = followed.into_iter().flat_map(|piece| piece.unwrap()).collect();
        assert_eq!(String::from_utf8(followed).unwrap(), all, "nobody waits for more");
    }
    assert!(Log::reopen(tempfile::tempdir().unwrap().path().join("0")).await.is_err());
}

#[tokio::test]
async fn time_and_length_limit_what_is_shown() {
    for bytes in SIZES {
        let (_directory, log) = log(&RAW, Limits { bytes, files: 9 }).await;
        let since = Some("2026-01-01T00:00:02Z".parse().unwrap());
        assert_eq!(shown(&log, Options { since, ..Options::default() }).await, "three\n");
        assert_eq!(shown(&log, Options { since, ..tail(9) }).await, "three\n");
        assert_eq!(shown(&log, Options { limit: Some(5), ..Options::default() }).await, "one\nt");
        let stamped = shown(&log, Options { timestamps: true, ..tail(2) }).await;
        let first = "2026-01-01T00:00:01.000000000Z two halves\n";
        assert_eq!(stamped, format!("{first}2026-01-01T00:00:02.000000000Z three\n"));
    }
}

fn numbered(number: usize) -> String {
    format!("2026-01-01T00:00:00.000000000Z stdout F line {number}\n")
}

#[tokio::test]
async fn a_log_keeps_so_many_files_and_its_last_lines() {
    for at_once in [1, 3, 100] {
        keeps_three_files_when_written(at_once).await;
    }
}

async fn keeps_three_files_when_written(at_once: usize) {
    let limits = Limits { bytes: 200, files: 3 };
    let (directory, log) = log(&[], limits).await;
    for records in (0..100).map(numbered).collect::<Vec<_>>().chunks(at_once) {
        log.append(records.concat().as_bytes()).await.unwrap();
    }
    let files: Vec<u64> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .collect();
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|length| *length <= 200), "{files:?}");
    let all = shown(&log, Options::default()).await;
    let kept = all.lines().count();
    assert!(kept >= 8, "{all}");
    let expected: String = (100 - kept..100).map(|number| format!("line {number}\n")).collect();
    assert_eq!(all, expected);
    assert_eq!(shown(&log, tail(5)).await, expected[expected.len() - 5 * 8..]);
}

#[tokio::test]
async fn a_follower_sees_every_line_over_rotations_and_goes_on_when_it_fell_behind() {
    let limits = Limits { bytes: 200, files: 2 };
    let (_directory, log) = log(&[], limits).await;
    let mut lines = std::pin::pin!(follow(log.clone(), Options::default()));
    for number in 0..50 {
        log.append(numbered(number).as_bytes()).await.unwrap();
        let seen = lines.next().await.unwrap().unwrap();
        assert_eq!(seen, format!("line {number}\n"));
    }
    for number in 50..100 {
        log.append(numbered(number).as_bytes()).await.unwrap();
    }
    log.close();
    let rest: String = lines
        .map(|piece| String::from_utf8(piece.unwrap().to_vec()).unwrap())
        .collect::<Vec<_>>()
        .await
        .concat();
    assert!(rest.ends_with("line 98\nline 99\n") && !rest.contains("line 50\n"), "{rest}");
}

#[tokio::test]
async fn a_record_that_is_longer_than_a_file_may_be_is_kept_whole() {
    let long = numbered(0).replace("line", &"x".repeat(300));
    let (_directory, log) = log(&[], Limits { bytes: 200, files: 9 }).await;
    log.append([numbered(1), long, numbered(2)].concat().as_bytes()).await.unwrap();
    let all = shown(&log, Options::default()).await;
    assert_eq!(all, format!("line 1\n{} 0\nline 2\n", "x".repeat(300)));
}

#[tokio::test]
async fn a_tail_reads_no_more_than_the_tail() {
    let long = "x".repeat(1000);
    let (directory, log) = log(&[], Limits { bytes: 200_000, files: 5 }).await;
    for number in 0..500 {
        log.append(numbered(number).replace("line", &long).as_bytes()).await.unwrap();
    }
    // The oldest file is not there: whoever reads it fails.
    std::fs::remove_file(directory.path().join("0.0.log")).unwrap();
    assert!(read(&log, &Options::default()).await.is_err());
    assert_eq!(shown(&log, tail(150)).await.lines().count(), 150);
}
