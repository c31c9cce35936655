//! The queue on virtual time: what a worker sees and when.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;

use super::{Backoff, Debounce, Item, Queue, Rate, Rules};
use crate::Env;
use crate::trigger::Trigger;

fn env() -> Env {
    Env::simulated(1, Timestamp::UNIX_EPOCH)
}

fn queue(env: &Env) -> Queue<&'static str> {
    Queue::with_backoff(env.clone(), Backoff::default().exact())
}

fn source(name: &str) -> Trigger {
    Trigger::Source(name.to_owned())
}

async fn get(queue: &Queue<&'static str>) -> Item<&'static str> {
    queue.get().await.expect("the queue is open")
}

#[tokio::test(start_paused = true)]
async fn a_failing_key_waits_one_two_four_up_to_three_hundred_seconds() {
    let env = env();
    let queue = queue(&env);
    queue.add("a", Trigger::Initial);
    let mut waits = Vec::new();
    for attempt in 0..11 {
        let item = get(&queue).await;
        assert_eq!(item.failures, attempt);
        let failed = env.instant();
        queue.add_rate_limited("a");
        queue.done(&"a");
        let item = get(&queue).await;
        assert_eq!(item.triggers, [Trigger::Retry { attempt: attempt + 1 }]);
        waits.push((env.instant() - failed).as_secs());
        // The same failure again: the item is still with us, so give it back and take it at once.
        queue.add("a", source("again"));
        queue.done(&"a");
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    let item = get(&queue).await;
    queue.forget(&item.key);
    assert_eq!(queue.failures(&"a"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_event_consumes_a_pending_requeue() {
    let env = env();
    let queue = queue(&env);
    queue.add_after("a", Duration::from_secs(60));
    queue.add("a", source("event"));
    let item = get(&queue).await;
    assert_eq!(item.triggers, [source("event")]);
    queue.done(&"a");
    assert!(env.timeout(Duration::from_secs(3600), queue.get()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_event_that_consumes_a_backoff_does_not_inflate_it() {
    let env = env();
    let queue = queue(&env);
    for _ in 0..6 {
        queue.add("a", source("event"));
        let item = get(&queue).await;
        assert_eq!(queue.add_rate_limited(item.key), Duration::from_secs(1));
        queue.done(&item.key);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_and_is_chatty_still_backs_off() {
    let env = env();
    let queue = queue(&env);
    let (start, mut runs) = (env.instant(), 0);
    while env.instant() - start < Duration::from_secs(3600) {
        // An event before every run and one during it, as fast as they are taken.
        queue.add("a", source("before"));
        let item = get(&queue).await;
        queue.add("a", source("during"));
        queue.add_rate_limited(item.key);
        queue.done(&item.key);
        runs += 1;
    }
    // 1 + 2 + 4 + ... + 256 s, then every 300 s; six runs for each backoff that was served.
    assert!((100..150).contains(&runs), "{runs}");
}

#[tokio::test(start_paused = true)]
async fn of_two_timers_the_earlier_wins() {
    let env = env();
    let queue = queue(&env);
    let start = env.instant();
    queue.add_after("a", Duration::from_secs(60));
    queue.add_after("a", Duration::from_secs(5));
    queue.add_after("a", Duration::from_secs(30));
    get(&queue).await;
    assert_eq!((env.instant() - start).as_secs(), 5);
    queue.done(&"a");
    assert!(env.timeout(Duration::from_secs(3600), queue.get()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_key_is_never_with_two_workers_and_runs_once_more_when_added_meanwhile() {
    let env = env();
    let queue = queue(&env);
    queue.add("a", source("first"));
    get(&queue).await;
    queue.add("a", source("second"));
    queue.add("a", source("third"));
    queue.add("a", source("second"));
    assert!(env.timeout(Duration::from_secs(60), queue.get()).await.is_err());
    queue.done(&"a");
    assert_eq!(get(&queue).await.triggers, [source("second"), source("third")]);
}

#[tokio::test(start_paused = true)]
async fn a_requeued_key_goes_behind_those_already_waiting_and_before_those_that_come_later() {
    let env = env();
    let queue = queue(&env);
    for key in ["a", "b", "c"] {
        queue.add(key, Trigger::Initial);
    }
    let item = get(&queue).await;
    queue.add_last(item.key, Trigger::Requeued);
    queue.done(&item.key);
    queue.add("d", source("event"));
    for expected in ["b", "c", "a", "d"] {
        assert_eq!(get(&queue).await.key, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_requeued_key_goes_behind_the_first_list_and_is_not_starved_there() {
    let env = env();
    let queue = Queue::new(env);
    for key in 0..3 {
        queue.add_low(key, Trigger::Initial);
    }
    let item = queue.get().await.unwrap();
    queue.add_last(item.key, Trigger::Requeued);
    queue.done(&item.key);
    for key in 100..130 {
        queue.add(key, source("event"));
    }
    let mut order = Vec::new();
    while !queue.is_empty() {
        order.extend(queue.get().await.map(|item| item.key));
    }
    let low: Vec<_> = (0..).zip(&order).filter(|(_, key)| **key < 100).collect();
    assert_eq!(low, [(8, &1), (17, &2), (26, &0)], "one turn in nine is theirs");
}

#[tokio::test(start_paused = true)]
async fn events_go_before_the_first_list_but_never_starve_it() {
    let env = env();
    let queue = Queue::new(env);
    for key in 0..3 {
        queue.add_low(key, Trigger::Initial);
    }
    for key in 100..120 {
        queue.add(key, source("event"));
    }
    queue.add(2, source("event"));
    let mut order = Vec::new();
    while !queue.is_empty() {
        order.extend(queue.get().await.map(|item| item.key));
    }
    assert_eq!(order[..9], [100, 101, 102, 103, 104, 105, 106, 107, 0]);
    assert_eq!(order[17], 1);
    assert_eq!(order[22], 2, "an event lifts a low key into the normal line");
}

#[tokio::test(start_paused = true)]
async fn a_timer_is_kept_while_another_worker_is_busy() {
    let env = env();
    let queue = queue(&env);
    let start = env.instant();
    let (first, second) = (queue.clone(), queue.clone());
    let first = tokio::spawn(async move { first.get().await });
    let second = tokio::spawn(async move { second.get().await });
    tokio::task::yield_now().await;
    queue.add_after("later", Duration::from_secs(10));
    tokio::task::yield_now().await;
    queue.add("now", Trigger::Initial);
    let mut keys = [first.await.unwrap(), second.await.unwrap()].map(|item| item.unwrap().key);
    keys.sort_unstable();
    assert_eq!(keys, ["later", "now"]);
    assert_eq!((env.instant() - start).as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_for_ever_harms_no_other() {
    let env = env();
    let queue = queue(&env);
    queue.add_after("never", Duration::MAX);
    queue.add_after("soon", Duration::from_secs(1));
    assert_eq!(get(&queue).await.key, "soon");
    let waiting = env.timeout(Duration::from_secs(3600), queue.get()).await;
    assert!(waiting.is_err(), "{waiting:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_sleeps_takes_what_another_gives_back() {
    let env = env();
    let queue = queue(&env);
    queue.add("a", source("first"));
    get(&queue).await;
    let sleeper = || {
        let queue = queue.clone();
        tokio::spawn(async move { queue.get().await })
    };

    let other = sleeper();
    tokio::task::yield_now().await;
    queue.add("a", source("again"));
    // It is woken, finds nothing, and sleeps again.
    tokio::task::yield_now().await;
    queue.done(&"a");
    let taken = env.timeout(seconds(60), other).await.unwrap().unwrap().unwrap();
    assert_eq!(taken.triggers, [source("again")]);

    let other = sleeper();
    tokio::task::yield_now().await;
    queue.add_after("a", seconds(5));
    tokio::task::yield_now().await;
    queue.done(&"a");
    let taken = env.timeout(seconds(60), other).await.unwrap().unwrap().unwrap();
    assert_eq!(taken.triggers, [Trigger::Timer]);
}

/// Counts how often a worker is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn workers_sleep_until_one_of_them_is_needed() {
    let env = env();
    let queue = queue(&env);
    let wakes = Arc::<Wakes>::default();
    let woken = || wakes.0.load(Ordering::Relaxed);
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let (mut first, mut second) = (pin!(queue.get()), pin!(queue.get()));
    queue.add_after("later", seconds(10));
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());

    queue.add("a", source("first"));
    assert_eq!(woken(), 1, "there is a key to take");
    assert_eq!(queue.get().now_or_never().flatten().unwrap().key, "a", "somebody else is quicker");
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    queue.add("a", source("again"));
    queue.add_after("much later", seconds(60));
    queue.forget(&"a");
    assert_eq!(woken(), 1, "nobody is needed: the key is taken, the timer is watched");
    queue.done(&"a");
    assert_eq!(woken(), 2);
    assert_eq!(queue.get().now_or_never().flatten().unwrap().key, "a");
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());

    env.sleep(seconds(11)).await;
    assert_eq!(woken(), 3, "one timer, one worker");
}

#[tokio::test(start_paused = true)]
async fn a_timer_outlives_the_worker_that_slept_until_it() {
    let env = env();
    let queue = queue(&env);
    queue.add_after("a", seconds(10));
    let mut first = Box::pin(queue.get());
    assert!(first.as_mut().now_or_never().is_none());
    let second = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await }
    });
    tokio::task::yield_now().await;
    drop(first);
    assert!(env.timeout(seconds(60), second).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_failing_key_is_forgotten_while_others_are_well() {
    let env = env();
    let queue = queue(&env);
    for key in ["bad", "good"] {
        queue.add(key, Trigger::Initial);
    }
    get(&queue).await;
    queue.add_rate_limited("bad");
    queue.done(&"bad");
    env.sleep(seconds(2)).await;
    assert_eq!((get(&queue).await.key, get(&queue).await.failures), ("good", 1));
    queue.forget(&"good");
    assert_eq!(queue.failures(&"bad"), 1);
    queue.forget(&"bad");
    assert_eq!(queue.failures(&"bad"), 0);
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn by_first_letter<'a>(key: &'a &'static str) -> super::Lane<'a> {
    Some(&key[..1])
}

#[tokio::test(start_paused = true)]
async fn lanes_take_turns_however_many_keys_they_have() {
    let rules = Rules { lane: by_first_letter, ..Rules::default() };
    let queue = Queue::with_rules(env(), rules);
    for key in ["a1", "a2", "a3", "a4", "b1", "b2", "c1"] {
        queue.add(key, source("event"));
    }
    let mut order = Vec::new();
    while !queue.is_empty() {
        order.push(get(&queue).await.key);
    }
    assert_eq!(order, ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]);
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_events_is_one_run_when_it_is_quiet() {
    let env = env();
    let debounce = Debounce { quiet: seconds(2), at_most: seconds(10) };
    let queue =
        Queue::with_rules(env.clone(), Rules { debounce: Some(debounce), ..Rules::default() });
    let start = env.instant();
    for second in 0..4 {
        queue.add("a", source(&second.to_string()));
        env.sleep(seconds(1)).await;
    }
    let item = get(&queue).await;
    assert_eq!((item.triggers.len(), (env.instant() - start).as_secs()), (4, 5));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_never_quiet_runs_all_the_same() {
    let env = env();
    let debounce = Debounce { quiet: seconds(2), at_most: seconds(10) };
    let queue =
        Queue::with_rules(env.clone(), Rules { debounce: Some(debounce), ..Rules::default() });
    let start = env.instant();
    let mut runs = Vec::new();
    while runs.len() < 3 {
        queue.add("a", source("event"));
        if let Ok(Some(item)) = env.timeout(seconds(1), queue.get()).await {
            runs.push((env.instant() - start).as_secs());
            queue.done(&item.key);
        }
    }
    assert!(runs.windows(2).all(|pair| (10..=11).contains(&(pair[1] - pair[0]))), "{runs:?}");
}

#[tokio::test(start_paused = true)]
async fn a_debounce_holds_back_neither_timers_nor_requeues_nor_the_end() {
    let env = env();
    let debounce = Debounce { quiet: seconds(60), at_most: seconds(600) };
    let queue =
        Queue::with_rules(env.clone(), Rules { debounce: Some(debounce), ..Rules::default() });
    let start = env.instant();
    queue.add_after("a", seconds(5));
    queue.add("a", source("event"));
    assert_eq!(get(&queue).await.triggers, [source("event")], "not later than its timer");
    assert_eq!(env.instant() - start, seconds(5));
    queue.add("a", source("during"));
    queue.add("a", Trigger::Requeued);
    queue.done(&"a");
    assert_eq!(get(&queue).await.triggers, [source("during"), Trigger::Requeued]);
    assert_eq!(env.instant() - start, seconds(5));
    queue.done(&"a");
    queue.add("a", source("last"));
    queue.shut_down();
    assert_eq!(get(&queue).await.triggers, [source("last")]);
    assert_eq!(queue.get().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_rate_spreads_keys_out_after_a_burst() {
    let env = env();
    let rate = Rate { every: seconds(10), burst: 3 };
    let queue = Queue::with_rules(env.clone(), Rules { rate: Some(rate), ..Rules::default() });
    let start = env.instant();
    for key in ["a", "b", "c", "d", "e"] {
        queue.add(key, Trigger::Initial);
    }
    queue.shut_down();
    let mut times = Vec::new();
    while let Some(item) = queue.get().await {
        times.push((env.instant() - start).as_secs());
        queue.done(&item.key);
    }
    assert_eq!(times, [0, 0, 0, 10, 20]);
}

#[tokio::test(start_paused = true)]
async fn an_item_says_how_long_it_was_ready() {
    let env = env();
    let queue = queue(&env);
    queue.add_after("a", seconds(3));
    env.sleep(seconds(7)).await;
    let item = get(&queue).await;
    assert_eq!(queue.waited(&item, env.instant()), seconds(4));
}

#[test]
fn a_key_that_is_well_costs_no_memory() {
    let mut machine = super::Machine::new(Rules::<u32>::default());
    let now = seconds(0);
    for key in 0..10_000 {
        machine.add(key, Trigger::Initial, super::Priority::Low, now);
    }
    while let Some(item) = machine.take(now) {
        machine.add_failed(item.key, seconds(1), now);
        machine.done(&item.key, || now);
    }
    while let Some(item) = machine.take(seconds(2)) {
        machine.forget(&item.key);
        machine.done(&item.key, || seconds(2));
    }
    assert_eq!(machine.known(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_key_of_the_first_list_that_polls_is_not_low_for_ever() {
    let env = env();
    let queue = queue(&env);
    queue.add_low("a", Trigger::Initial);
    let item = get(&queue).await;
    queue.add_after(item.key, seconds(1));
    queue.done(&item.key);
    queue.add_low("low", Trigger::Initial);
    env.sleep(seconds(2)).await;
    assert_eq!(get(&queue).await.key, "a", "its timer is as good as an event");
}
