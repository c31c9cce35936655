//! Events on their way, each namespace in a lane of its own: one after the other within it, beside
//! those of all others. A namespace that takes none, for its quota or a webhook, holds back its own.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use super::correlator::Held;
use super::delivery::{Delivery, namespace_of};

/// How many lanes there may be, and how many events may wait in all of them; of the longest one is
/// lost for each further one.
const MOST: usize = 1000;

/// Takes events in and has them delivered.
pub(super) struct Lanes {
    delivery: Arc<Delivery>,
    /// What waits, by namespace; those of which an event is under way are in it.
    waiting: BTreeMap<String, VecDeque<Held>>,
    count: usize,
    /// Each gives the namespace of which the next one may go.
    under_way: FuturesUnordered<BoxFuture<'static, String>>,
}

impl Lanes {
    pub(super) fn new(delivery: Delivery) -> Self {
        Self {
            delivery: Arc::new(delivery),
            waiting: BTreeMap::new(),
            count: 0,
            under_way: FuturesUnordered::new(),
        }
    }

    /// Has an event written once those of its namespace that came before are through.
    pub(super) fn send(&mut self, event: Held) {
        let namespace = namespace_of(&event.note);
        if let Some(lane) = self.waiting.get_mut(namespace) {
            lane.push_back(event);
            self.count += 1;
            if self.count > MOST {
                self.lose_one();
            }
        } else if self.waiting.len() < MOST {
            let namespace = namespace.to_owned();
            self.waiting.insert(namespace.clone(), VecDeque::new());
            self.start(namespace, event);
        } else {
            self.delivery.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Goes on until one event is through, or for ever if there is none.
    pub(super) async fn go_on(&mut self) {
        let Some(namespace) = self.under_way.next().await else { return pending().await };
        match self.waiting.get_mut(&namespace).and_then(VecDeque::pop_front) {
            Some(event) => {
                self.count -= 1;
                self.start(namespace, event);
            }
            None => drop(self.waiting.remove(&namespace)),
        }
    }

    /// Goes on until every event is through.
    pub(super) async fn finish(&mut self) {
        while !self.under_way.is_empty() {
            self.go_on().await;
        }
    }

    fn start(&self, namespace: String, event: Held) {
        let delivery = self.delivery.clone();
        let through = async move {
            delivery.put(&event).await;
            namespace
        };
        self.under_way.push(through.boxed());
    }

    /// Drops the last event of the longest lane, and counts it.
    fn lose_one(&mut self) {
        let longest = self.waiting.values_mut().max_by_key(|lane| lane.len());
        if longest.and_then(VecDeque::pop_back).is_some() {
            self.count -= 1;
            self.delivery.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::AtomicU64;

    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::ObjectReference;

    use super::*;
    use crate::Env;
    use crate::event::{EventType, Note};

    fn event(namespace: &str) -> Held {
        let regarding =
            ObjectReference { namespace: Some(namespace.to_owned()), ..Default::default() };
        let note = Note {
            controller: "test".to_owned(),
            regarding,
            related: None,
            kind: EventType::Normal,
            reason: "Told".to_owned(),
            action: "Told".to_owned(),
            text: "a word".to_owned(),
        };
        Held { note, name: "event".to_owned(), count: 1, last: Timestamp::UNIX_EPOCH }
    }

    #[tokio::test]
    async fn when_too_many_wait_the_longest_lane_loses() {
        let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
            pending::<Result<http::Response<kube::client::Body>, Infallible>>()
        });
        let dropped = Arc::new(AtomicU64::new(0));
        let client = kube::Client::new(silent, "default");
        let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
        let stop = pending().boxed().shared();
        let mut lanes = Lanes::new(Delivery::new(client, env, dropped.clone(), stop));
        for _ in 0..MOST {
            lanes.send(event("loud"));
        }
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        for _ in 0..3 {
            lanes.send(event("calm"));
        }
        let waiting = |namespace| lanes.waiting[namespace].len();
        // The first of each is under way.
        assert_eq!((waiting("loud"), waiting("calm"), lanes.count), (MOST - 2, 2, MOST));
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    }
}
