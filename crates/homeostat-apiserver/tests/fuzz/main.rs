//! Random requests, most of them nearly right: every one gets an answer, every refusal is a
//! `Status`, and none is the server's own fault.
//!
//! A *round* is a fresh server and a story of requests, all from one seed; one round in four goes
//! over TLS, in HTTP/1.1 or HTTP/2, among connections that break every rule of these. A finding is printed
//! with its seed and with the shortest story that still leads to it. `cargo xtask fuzz` goes on for
//! as long as it is told to.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and this one says what it found"
)]

mod ask;
mod bodies;
mod definitions;
#[path = "../dice/mod.rs"]
mod dice;
mod frames;
mod judge;
mod lines;
mod messages;
mod options;
mod outside;
mod patches;
mod request;
#[path = "../secured/mod.rs"]
mod secured;
mod selectors;
mod shrink;
mod trail;
mod values;
mod wire;
mod words;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ask::{Asker, Seen};
use dice::Dice;
use homeostat_env::Env;
use request::Request;
use trail::Trail;
use world::{Way, World};

/// The first seed. By default it is the same for everybody, so that a run says something about the
/// code and not about luck.
const SEED: &str = "HOMEOSTAT_FUZZ_SEED";
/// How many rounds are run.
const ROUNDS: &str = "HOMEOSTAT_FUZZ_ROUNDS";
/// For how long rounds are run instead.
const MINUTES: &str = "HOMEOSTAT_FUZZ_MINUTES";
const DEFAULT_ROUNDS: u64 = 50;
/// How many rounds from a fresh seed follow; none by default.
const FRESH_ROUNDS: &str = "HOMEOSTAT_FUZZ_FRESH";
/// Fresh seeds have so many digits that nobody meets one twice, and few enough to be read out.
const FRESH_SEEDS: u64 = 1_000_000_000_000;
/// How many requests a story has.
const REQUESTS: usize = 80;

/// A story that ends badly, and how.
struct Finding {
    seed: u64,
    words: String,
    story: Vec<Request>,
}

#[test]
fn every_request_is_answered_and_none_is_the_servers_fault() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (trail, env) = (Trail::new(), Env::system());
    let (first, rounds) = (number(SEED), number(ROUNDS));
    let time = number(MINUTES).map(|minutes| Duration::from_secs(60 * minutes));
    let begin = first.unwrap_or(1);
    let fresh = env.random_below(FRESH_SEEDS) + DEFAULT_ROUNDS;
    let corpus = match time {
        Some(_) => begin..u64::MAX,
        None => begin..begin + rounds.unwrap_or(DEFAULT_ROUNDS),
    };
    let fresh = fresh..fresh + number(FRESH_ROUNDS).unwrap_or_default();
    eprintln!(
        "from {SEED}={begin}, and {} rounds from {SEED}={}",
        fresh.end - fresh.start,
        fresh.start
    );
    let (begun, mut findings, mut done) = (env.instant(), BTreeMap::new(), 0_u64);
    let mut tally = Tally::default();
    for seed in corpus.chain(fresh) {
        if time.is_some_and(|time| begun.elapsed() >= time) {
            break;
        }
        if let Some(finding) = round(seed, &trail, &mut tally) {
            let sort = shrink::sort(&finding.words);
            findings.entry(sort).or_insert_with(|| report(&finding, &trail));
        }
        done += 1;
        if done.is_multiple_of(100) {
            eprintln!("{done} rounds, {} findings", findings.len());
        }
    }
    eprintln!("{done} rounds, {tally:?}");
    let (took, request) = trail.slowest();
    eprintln!("the slowest took {took:?}: {request}");
    assert!(findings.is_empty(), "{} findings:\n{:#?}", findings.len(), findings.keys());
}

/// What was done in all.
#[derive(Debug, Default)]
struct Tally {
    answers: BTreeMap<u16, u64>,
    /// Answers by the way they came.
    ways: BTreeMap<Way, u64>,
    /// Connections with bytes that are no request.
    disturbances: u64,
}

/// One round on its own clock.
fn round(seed: u64, trail: &Trail, tally: &mut Tally) -> Option<Finding> {
    on_virtual_time(async {
        let (world, dice) = (World::new(seed, trail), Dice::new(seed));
        let (mut story, mut seen, mut written) = (Vec::new(), Seen::default(), BTreeSet::new());
        for _ in 0..REQUESTS {
            let kinds = world.kinds();
            if Way::of(seed) != Way::InProcess && dice.chance(20) {
                tally.disturbances += 1;
                if let Err(words) = world.disturb(&dice).await {
                    return Some(Finding { seed, words, story });
                }
            }
            let request = Asker { dice: &dice, kinds: &kinds, seen: &seen }.request();
            story.push(request.clone());
            let answer = match world.ask(&request).await {
                Ok(Some(answer)) => answer,
                Ok(None) => continue,
                Err(words) => return Some(Finding { seed, words, story }),
            };
            *tally.answers.entry(answer.code).or_default() += 1;
            *tally.ways.entry(Way::of(seed)).or_default() += 1;
            let path = request.target.split('?').next().unwrap_or_default().to_owned();
            if answer.code < 300
                && matches!(request.method.as_str(), "POST" | "PUT" | "PATCH")
                && let Some(object) = answer.json()
            {
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let made = request.method == "POST";
                let path = if made { format!("{path}/{name}") } else { path };
                seen.add(&path, object);
                written.insert(path.rsplit_once('/').map(|(at, _)| at.to_owned()));
            }
        }
        // Nothing that was taken may be in anybody's way afterwards.
        for request in written.into_iter().flatten().flat_map(|path| readers(&path)) {
            story.push(request.clone());
            if let Err(words) = world.ask(&request).await {
                return Some(Finding { seed, words, story });
            }
        }
        None
    })
}

/// Reads everything at a path in every form.
fn readers(path: &str) -> Vec<Request> {
    let form = |name: &str| format!("application/json;as={name};v=v1;g=meta.k8s.io");
    let watch = "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    vec![
        Request::get(path, "application/json"),
        Request::get(path, "application/yaml"),
        Request::get(path, &form("Table")),
        Request::get(path, &form("PartialObjectMetadataList")),
        Request::get(format!("{path}{watch}"), "application/json"),
        Request::get(format!("{path}{watch}"), &form("Table")),
    ]
}

/// Prints a finding with the shortest story that leads to it.
fn report(finding: &Finding, trail: &Trail) {
    eprintln!("\n{SEED}={}: {}", finding.seed, finding.words);
    let again = |story: &[Request]| {
        on_virtual_time(async {
            let world = World::new(finding.seed, trail);
            for request in story {
                if let Err(words) = world.ask(request).await {
                    return Some(words);
                }
            }
            None
        })
    };
    for request in shrink::shortest(finding.story.clone(), &finding.words, again) {
        eprintln!("---\n{request}");
    }
}

fn on_virtual_time<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(work)
}
