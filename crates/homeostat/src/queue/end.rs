//! How a queue ends, on virtual time: what is still handed out, and that nobody is left asleep.

use std::pin::pin;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;

use super::{Item, Queue, Rate, Rules};
use crate::Env;
use crate::trigger::Trigger;

fn env() -> Env {
    Env::simulated(1, Timestamp::UNIX_EPOCH)
}

async fn get(queue: &Queue<&'static str>) -> Item<&'static str> {
    queue.get().await.expect("something is still handed out")
}

#[tokio::test(start_paused = true)]
async fn shutting_down_drains_what_is_ready_and_drops_timers() {
    let queue = Queue::<&str>::new(env());
    queue.add("a", Trigger::Initial);
    queue.add("b", Trigger::Initial);
    queue.add_after("c", Duration::from_secs(1));
    let idle = tokio::spawn({
        let queue = queue.clone();
        async move { queue.drained().await }
    });
    get(&queue).await;
    queue.shut_down();
    queue.add("d", Trigger::Initial);
    assert_eq!(get(&queue).await.key, "b");
    assert_eq!(queue.get().await, None);
    queue.done(&"a");
    tokio::task::yield_now().await;
    assert!(!idle.is_finished());
    queue.done(&"b");
    idle.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutting_down_wakes_every_idle_worker() {
    let queue = Queue::<&str>::new(env());
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.get().await })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    for worker in workers {
        assert_eq!(worker.await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_queue_that_is_shut_down_is_drained_by_its_last_worker() {
    let queue = Queue::<&str>::new(env());
    queue.add("a", Trigger::Initial);
    let item = get(&queue).await;
    queue.add("b", Trigger::Initial);
    queue.shut_down();
    let mut drained = pin!(queue.drained());
    assert_eq!(drained.as_mut().now_or_never(), None);
    queue.pause();
    assert_eq!(drained.as_mut().now_or_never(), None, "one is still at work");
    queue.done(&item.key);
    assert_eq!(drained.as_mut().now_or_never(), Some(()), "what is ready is never handed out");
}

#[tokio::test(start_paused = true)]
async fn workers_that_wait_for_their_turn_end_with_the_last_key() {
    let env = env();
    let rate = Rate { every: Duration::from_secs(10), burst: 1 };
    let queue = Queue::with_rules(env.clone(), Rules { rate: Some(rate), ..Rules::default() });
    for key in ["a", "b"] {
        queue.add(key, Trigger::Initial);
    }
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut taken = 0;
                while let Some(item) = queue.get().await {
                    taken += 1;
                    queue.done(&item.key);
                }
                taken
            })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    let mut taken = 0;
    for worker in workers {
        let ended = env.timeout(Duration::from_secs(60), worker).await;
        taken += ended.expect("nobody sleeps for ever").unwrap();
    }
    assert_eq!(taken, 2);
}
