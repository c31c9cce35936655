//! Informers on a scripted server: every way in which a watch can go wrong, on virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::script::{
    Answer, End, Script, bookmark, event, initial_end, object, page, refused, streamed, watch,
};
use super::{Input, Machine, Next, Refusal, Request};
use crate::cache::{Caches, Informer, Scope, SourceState};
use crate::{Env, Kind};

pub(super) struct Followed {
    pub(super) env: Env,
    pub(super) script: Script,
    pub(super) informer: Informer,
    /// `added a 1`, in order.
    told: Arc<Mutex<Vec<String>>>,
}

impl Followed {
    pub(super) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let env = Env::simulated(7, Timestamp::UNIX_EPOCH);
        let script = Script::new(&env, answers);
        let caches = Caches::new(script.client(), env.clone());
        let informer = caches.informer(Kind::of::<ConfigMap>(), Scope::default());
        let told = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&told);
        informer.on_event(move |delta| {
            let header = &delta.object().header;
            let line =
                format!("{} {} {}", delta.change, header.key.name(), header.resource_version);
            log.lock().unwrap().push(line);
        });
        informer.start();
        Self { env, script, informer, told }
    }

    pub(super) async fn reaches(&self, revision: u64) {
        let limit = Duration::from_secs(600);
        self.informer.wait_for_revision(&revision.to_string(), limit).await.unwrap();
    }

    async fn is(&self, wanted: impl FnMut(&SourceState) -> bool) -> SourceState {
        let limit = Duration::from_secs(600);
        self.env.timeout(limit, self.informer.wait_for_state(wanted)).await.unwrap()
    }

    async fn is_pending(&self) -> String {
        let state = self.is(|state| matches!(state, SourceState::Pending(_))).await;
        let SourceState::Pending(why) = state else { panic!("{state:?}") };
        why
    }

    async fn is_well_for(&self, time: Duration) {
        let failed = self.informer.wait_for_state(|state| matches!(state, SourceState::Pending(_)));
        if let Ok(state) = self.env.timeout(time, failed).await {
            panic!("{state:?}");
        }
    }

    pub(super) fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.informer.entries().iter().map(|e| e.header.key.name().to_owned()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_becomes_the_watch() {
    let lines = [event("MODIFIED", &object("a", 12)), event("DELETED", &object("b", 13))];
    let followed =
        Followed::new([streamed(&[object("a", 1), object("b", 2)], 10, &lines, End::Open)]);
    followed.reaches(13).await;
    assert_eq!(followed.told(), ["added a 1", "added b 2", "updated a 12", "deleted b 13"]);
    let asked = followed.script.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].get("sendInitialEvents"), Some("true"));
    assert_eq!(asked[0].get("resourceVersionMatch"), Some("NotOlderThan"));
    assert_eq!(asked[0].get("allowWatchBookmarks"), Some("true"));
    let limit: u64 = asked[0].get("timeoutSeconds").unwrap().parse().unwrap();
    assert!((300..=600).contains(&limit));
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_read_in_pages() {
    let followed = Followed::new([
        refused(422, "sendInitialEvents is forbidden"),
        page(&[object("a", 1)], 10, Some("next")),
        page(&[object("b", 2)], 10, None),
        watch([event("ADDED", &object("c", 11))], End::Open),
    ]);
    followed.reaches(11).await;
    assert_eq!(followed.names(), ["a", "b", "c"]);
    let asked = followed.script.asked();
    assert_eq!(asked[2].get("continue"), Some("next"));
    assert_eq!(asked[3].get("resourceVersion"), Some("10"));
    assert_eq!(asked[3].at, 0, "nothing of this is a failure");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_wish_for_initial_events_is_read_in_pages() {
    let followed = Followed::new([watch([], End::Open), page(&[object("a", 1)], 10, None)]);
    followed.reaches(10).await;
    assert_eq!(followed.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_ends_the_initial_events_is_read_in_pages() {
    let lines = (11..200).map(|revision| event("ADDED", &object("busy", revision))).collect();
    let followed = Followed::new([
        Answer::Slow(lines, Duration::from_secs(5)),
        page(&[object("a", 1)], 300, None),
    ]);
    followed.reaches(300).await;
    assert_eq!(followed.names(), ["a"]);
    let asked = followed.script.asked();
    assert!((60_000..=65_000).contains(&asked[1].at), "{}", asked[1].at);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_was_cut_off_once_streams_again_the_next_time() {
    let cut = || watch([event("ADDED", &object("a", 1))], End::Close);
    let gone = || event("ERROR", &json!({ "code": 410, "message": "too old" }));
    let round = |revision| {
        let listed = page(&[object("a", 1)], revision, None);
        [cut(), listed, watch([gone()], End::Open)]
    };
    let rounds = (1..=4).flat_map(|round_no| round(10 * round_no)).collect::<Vec<_>>();
    let followed = Followed::new(rounds);
    followed.reaches(30).await;
    let streamed = |asked: &super::script::Asked| asked.get("sendInitialEvents").is_some();
    let asked = followed.script.asked();
    let tried = asked.iter().filter(|asked| streamed(asked)).count();
    assert_eq!(tried, 3, "and not for ever: {asked:?}");
}

/// Which of the lists that were asked for were to stream.
fn streamed_lists(followed: &Followed) -> Vec<bool> {
    let asked = followed.script.asked();
    let lists = asked
        .iter()
        .filter(|asked| asked.get("sendInitialEvents").is_some() || asked.get("watch").is_none());
    lists.map(|asked| asked.get("sendInitialEvents").is_some()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_again_and_again_while_it_streams_is_read_in_pages() {
    let broken = || watch([event("ADDED", &object("a", 1))], End::Break);
    let gone = || event("ERROR", &json!({ "code": 410, "message": "too old" }));
    let round = |revision| {
        let listed = page(&[object("a", 1)], revision, None);
        [broken(), listed, watch([gone()], End::Open)]
    };
    let rounds = (1..=3).flat_map(|number| round(10 * number));
    let rest = [page(&[object("a", 1)], 40, None), watch([], End::Open)];
    let followed = Followed::new(rounds.chain(rest));
    followed.reaches(40).await;
    let streamed = streamed_lists(&followed);
    assert_eq!(streamed, [true, false, true, false, true, false, false], "and then for good");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_away_is_streamed_from_again() {
    let away = || watch([], End::Break);
    let back = streamed(&[object("a", 1)], 10, &[], End::Open);
    // Stream and pages take turns for as long as neither works.
    let followed = Followed::new((0..20).map(|_| away()).chain([back]));
    followed.reaches(10).await;
    let streamed = streamed_lists(&followed);
    assert_eq!(streamed.len(), 21);
    assert!(streamed.iter().enumerate().all(|(number, streams)| *streams == (number % 2 == 0)));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_that_ends_in_its_time_is_no_failure() {
    let life = Duration::from_secs(300);
    let quiet = |_| watch([], End::CloseAfter(life));
    let first = streamed(&[object("a", 1)], 10, &[], End::CloseAfter(life));
    let followed = Followed::new([first].into_iter().chain((0..9).map(quiet)));
    followed.reaches(10).await;
    followed.is_well_for(9 * life - Duration::from_secs(1)).await;
    let at: Vec<u64> = followed.script.asked().iter().map(|asked| asked.at).collect();
    assert_eq!(at, (0..9).map(|n| n * 300_000).collect::<Vec<_>>(), "at once, without a pause");
    let heard = followed.informer.heard().unwrap();
    assert!(followed.env.instant() - heard <= life, "its ends are signs of life");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_forgets_after_every_word_is_not_listed_at_network_speed() {
    let gone = event("ERROR", &json!({ "code": 410, "message": "too old" }));
    let answers = (1..=100_u64).map(|round| {
        let (revision, change) = (round * 10, event("MODIFIED", &object("a", round * 10 + 1)));
        streamed(&[object("a", revision)], revision, &[change, gone.clone()], End::Open)
    });
    let followed = Followed::new(answers);
    followed.env.sleep(Duration::from_secs(60)).await;
    let asked = followed.script.asked().len();
    assert!((3..12).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_says_one_thing_and_ends_is_well_and_not_hammered() {
    let answers = (11..200).map(|revision| watch([bookmark(revision)], End::Close));
    let first = streamed(&[object("a", 1)], 10, &[bookmark(10)], End::Close);
    let followed = Followed::new([first].into_iter().chain(answers));
    followed.reaches(10).await;
    followed.is_well_for(Duration::from_secs(60)).await;
    let asked = followed.script.asked().len();
    assert!((3..12).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn gone_at_the_start_of_a_watch_lists_again() {
    let followed = Followed::new([
        streamed(&[object("a", 1)], 10, &[], End::Close),
        refused(410, "too old resource version"),
        streamed(&[object("a", 1), object("b", 20)], 20, &[], End::Open),
    ]);
    followed.reaches(20).await;
    assert_eq!(followed.names(), ["a", "b"]);
    let asked = followed.script.asked();
    assert_eq!(asked[1].get("resourceVersion"), Some("10"));
    assert_eq!(asked[2].get("sendInitialEvents"), Some("true"));
}

#[tokio::test(start_paused = true)]
async fn gone_within_a_watch_lists_again() {
    let gone = event("ERROR", &json!({ "code": 410, "reason": "Expired", "message": "too old" }));
    let followed = Followed::new([
        streamed(&[object("a", 1)], 10, &[bookmark(11), gone], End::Open),
        streamed(&[object("b", 20)], 20, &[], End::Open),
    ]);
    followed.reaches(20).await;
    assert_eq!(followed.told(), ["added a 1", "added b 20", "deleted a 1"]);
    assert_eq!(followed.script.asked()[1].at, 0);
}

#[tokio::test(start_paused = true)]
async fn whatever_vanished_during_a_gap_is_told_as_deleted() {
    let followed = Followed::new([
        streamed(&[object("a", 1), object("b", 2), object("c", 3)], 10, &[], End::Close),
        refused(500, "no"),
        streamed(&[object("a", 1), object("b", 12)], 20, &[], End::Open),
    ]);
    followed.reaches(20).await;
    let expected = ["added a 1", "added b 2", "added c 3", "updated b 12", "deleted c 3"];
    assert_eq!(followed.told(), expected);
}

#[tokio::test(start_paused = true)]
async fn one_unreadable_object_never_stops_the_others() {
    let broken = json!({ "metadata": { "name": "bad", "labels": { "x": 1 } } });
    let followed = Followed::new([
        refused(422, "no streaming"),
        page(&[object("a", 1), broken.clone(), object("b", 2)], 10, None),
        watch([event("ADDED", &broken), event("ADDED", &object("c", 11))], End::Open),
    ]);
    followed.reaches(11).await;
    assert_eq!(followed.names(), ["a", "b", "c"]);
    assert_eq!(followed.informer.state(), SourceState::Synced);
}

#[tokio::test(start_paused = true)]
async fn an_expired_page_token_leads_to_a_list_in_one_piece() {
    let followed = Followed::new([
        refused(400, "no streaming"),
        page(&[object("a", 1)], 10, Some("next")),
        refused(410, "the provided continue parameter is too old"),
        page(&[object("a", 1), object("b", 2)], 12, None),
    ]);
    followed.reaches(12).await;
    assert_eq!(followed.names(), ["a", "b"]);
    let asked = followed.script.asked();
    assert_eq!(asked[3].get("limit"), None);
    assert_eq!(asked[3].get("continue"), None);
}

#[test]
fn a_list_that_cannot_come_in_one_piece_is_asked_for_in_pages_again() {
    let broken = || Input::Broken("cut off after a gigabyte".to_owned());
    let refused = |code| Input::Refused(Refusal { code, ..Refusal::default() });
    let token = Some("next".to_owned());
    let page = Input::Page { items: vec![1], skipped: vec![], revision: "10".to_owned(), token };
    let mut machine = Machine::default();
    let mut limit_after = |input: Input<i32>| match machine.step(input, Duration::ZERO, 0.5).next {
        Next::Request(Request::Page { limit, .. }) => Some(limit.is_some()),
        _ => None,
    };
    assert_eq!(limit_after(Input::Go), None, "streaming");
    assert_eq!(limit_after(refused(400)), Some(true));
    assert_eq!(limit_after(page), Some(true));
    assert_eq!(limit_after(refused(410)), Some(false), "in one piece");
    assert_eq!(limit_after(broken()), None);
    assert_eq!(limit_after(Input::Go), Some(true));
}

#[tokio::test(start_paused = true)]
async fn a_lagging_server_never_takes_the_cache_back_in_time() {
    let followed = Followed::new([
        streamed(&[object("a", 1)], 10, &[event("DELETED", &object("a", 15))], End::Break),
        refused(410, "too old"),
        streamed(&[object("a", 1)], 12, &[], End::Open),
        streamed(&[object("b", 18)], 20, &[], End::Open),
    ]);
    followed.reaches(20).await;
    assert_eq!(followed.told(), ["added a 1", "deleted a 15", "added b 18"]);
    let asked = followed.script.asked();
    assert_eq!(asked[2].get("resourceVersion"), Some("15"), "not older than what is known");
    assert_eq!(asked[3].get("resourceVersion"), None, "a consistent read decides");
}

#[tokio::test(start_paused = true)]
async fn a_restored_server_is_believed_after_three_consistent_answers() {
    let restored = || streamed(&[object("a", 3)], 5, &[], End::Open);
    let followed = Followed::new([
        streamed(&[object("a", 9), object("b", 8)], 10, &[], End::Close),
        refused(504, "Too large resource version: 10, current: 5"),
        restored(),
        restored(),
        restored(),
        restored(),
        restored(),
    ]);
    followed.reaches(10).await;
    followed.is_pending().await;
    followed.is(|state| *state == SourceState::Synced).await;
    assert_eq!(followed.informer.revision().as_deref(), Some("5"));
    assert_eq!(followed.told(), ["added a 9", "added b 8", "updated a 3", "deleted b 8"]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_goes_on_where_it_was() {
    let followed = Followed::new([
        streamed(&[object("a", 1)], 10, &[event("ADDED", &object("b", 11))], End::Break),
        watch([event("ADDED", &object("c", 12))], End::Close),
        watch([event("ADDED", &object("d", 13))], End::Open),
    ]);
    followed.reaches(13).await;
    let from: Vec<_> = followed
        .script
        .asked()
        .iter()
        .map(|a| a.get("resourceVersion").map(str::to_owned))
        .collect();
    assert_eq!(from, [None, Some("11".to_owned()), Some("12".to_owned())]);
    assert_eq!(followed.told().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_given_up_and_asked_anew() {
    let followed = Followed::new([
        streamed(&[object("a", 1)], 10, &[], End::Open),
        watch([event("ADDED", &object("b", 11))], End::Open),
    ]);
    let limit = Duration::from_secs(3600);
    followed.informer.wait_for_revision("11", limit).await.unwrap();
    let asked = followed.script.asked();
    assert!(asked[1].is_watch() && asked[1].get("sendInitialEvents").is_none());
    assert!((300_000..640_000).contains(&asked[1].at), "{}", asked[1].at);
}

#[tokio::test(start_paused = true)]
async fn failures_wait_from_under_a_second_to_half_a_minute() {
    let followed = Followed::new((0..9).map(|_| refused(500, "no")));
    followed.env.sleep(Duration::from_secs(600)).await;
    let at: Vec<u64> = followed.script.asked().iter().map(|asked| asked.at).collect();
    let waits: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (wait, most) in waits.iter().zip([800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]) {
        assert!((most / 2..=most + 1).contains(wait), "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_lived_and_ends_by_a_garbled_line_is_no_failure_after_failures() {
    let lines = vec![initial_end(10), "garbled\n".to_owned()];
    let lives = Answer::Slow(lines, Duration::from_secs(8));
    let failures = (0..6).map(|_| refused(500, "no"));
    let followed =
        Followed::new(failures.chain([lives, streamed(&[object("a", 1)], 20, &[], End::Open)]));
    followed.reaches(20).await;
    let asked = followed.script.asked();
    let waited = asked[7].at - asked[6].at - 16_000;
    assert!((400..=800).contains(&waited), "the first wait, not the seventh: {waited}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_left_alone_for_as_long_as_it_says() {
    let busy = json!({ "code": 429, "message": "later", "details": { "retryAfterSeconds": 90 } });
    let followed =
        Followed::new([Answer::Json(429, busy), streamed(&[object("a", 1)], 10, &[], End::Open)]);
    assert!(followed.informer.wait_for_sync().await);
    assert_eq!(followed.script.asked()[1].at, 90_000);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_left_alone_also_when_it_says_so_in_a_header() {
    let listed = || streamed(&[object("a", 1)], 10, &[], End::Close);
    let followed = Followed::new([
        Answer::Busy("90"),
        listed(),
        Answer::Busy("40"),
        watch([bookmark(11)], End::Open),
    ]);
    assert!(followed.informer.wait_for_sync().await);
    let asked = |n: usize| followed.script.asked()[n].at;
    assert_eq!(asked(1), 90_000);
    followed.reaches(11).await;
    assert_eq!(asked(3) - asked(2), 40_000, "a watch that is refused waits, too");
}

#[tokio::test(start_paused = true)]
async fn watches_that_begin_together_do_not_end_together() {
    let limit = async |seed| {
        let env = Env::simulated(seed, Timestamp::UNIX_EPOCH);
        let script = Script::new(&env, [streamed(&[], 10, &[], End::Open)]);
        let caches = Caches::new(script.client(), env);
        let informer = caches.informer(Kind::of::<ConfigMap>(), Scope::default());
        informer.start();
        assert!(informer.wait_for_sync().await);
        script.asked()[0].get("timeoutSeconds").unwrap().parse::<u64>().unwrap()
    };
    let limits = std::collections::BTreeSet::from([limit(1).await, limit(2).await, limit(3).await]);
    assert_eq!(limits.len(), 3, "{limits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_or_kind_is_a_pending_source_that_says_so() {
    for (code, hint) in [(403, "the verbs list and watch"), (404, "CustomResourceDefinition")] {
        let followed = Followed::new([
            refused(code, "configmaps"),
            streamed(&[object("a", 1)], 10, &[], End::Open),
        ]);
        let why = followed.is_pending().await;
        assert!(why.contains("ConfigMap") && why.contains(hint), "{why}");
        assert!(!followed.informer.is_synced());
        assert!(followed.informer.wait_for_sync().await, "it heals by itself");
        assert_eq!(followed.informer.state(), SourceState::Synced);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_dies_at_once_again_and_again_is_not_hammered() {
    let mut answers = vec![streamed(&[], 10, &[], End::Close)];
    answers.extend((0..100).map(|_| watch([], End::Close)));
    let followed = Followed::new(answers);
    followed.env.sleep(Duration::from_secs(60)).await;
    assert!(followed.script.asked().len() < 12, "{}", followed.script.asked().len());
}

#[tokio::test(start_paused = true)]
async fn events_split_across_frames_are_put_together() {
    let whole = event("ADDED", &object("b", 11));
    let (left, right) = whole.split_at(17);
    let lines = [left.to_owned(), format!("{right}\n{}", bookmark(12))];
    let followed = Followed::new([streamed(&[], 10, &lines, End::Open)]);
    followed.reaches(12).await;
    assert_eq!(followed.names(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn deletions_among_the_initial_events_count() {
    let lines = [
        event("ADDED", &object("a", 1)),
        event("ADDED", &object("b", 2)),
        event("DELETED", &object("a", 11)),
        initial_end(12),
    ];
    let followed = Followed::new([watch(lines, End::Open)]);
    followed.reaches(12).await;
    assert_eq!(followed.names(), ["b"]);
}
