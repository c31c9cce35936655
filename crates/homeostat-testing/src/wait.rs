//! Waiting on conditions: look again after every change, and say what was there instead when the
//! condition never holds.

use std::sync::Arc;
use std::time::Duration;

use homeostat::cache::{Caches, Scope};
use homeostat::journal::{Journal, Record};
use homeostat::{Kind, Object};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use tokio::sync::Notify;

use crate::TestCluster;

impl TestCluster {
    /// How long something may take before a test gives up: a virtual day, or a real minute.
    fn patience(&self) -> Duration {
        Duration::from_secs(if self.is_virtual { 24 * 3600 } else { 60 })
    }

    /// Waits until `done` holds for the objects of a kind in the test's namespace; looks again
    /// after every change.
    ///
    /// # Panics
    /// When it never holds.
    pub async fn until<T>(&self, what: &str, done: impl Fn(&[T]) -> bool) -> Vec<T>
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let caches = Caches::new(self.client.clone(), self.env.clone());
        let informer = caches.informer(Kind::of::<T>(), Scope::namespace(&self.namespace));
        let changed = Arc::new(Notify::new());
        let notify = Arc::clone(&changed);
        informer.on_event(move |_| notify.notify_one());
        informer.start();
        let wait = async {
            // Before the first look: what changes between a look and the informer's own list would
            // be nobody's event.
            informer.wait_for_sync().await;
            loop {
                let items = self.list::<T>("").await;
                if done(&items) {
                    return items;
                }
                changed.notified().await;
            }
        };
        let found = self.env.timeout(self.patience(), wait).await;
        caches.stop();
        let Ok(items) = found else {
            let items = serde_json::to_string_pretty(&self.list::<T>("").await).unwrap();
            panic!("{what} did not happen; there is {items}\n{}", self.shown_journal());
        };
        items
    }

    /// Waits until one object is as wanted.
    ///
    /// # Panics
    /// When it never is.
    pub async fn until_one<T>(&self, name: &str, what: &str, done: impl Fn(&T) -> bool) -> T
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let is_it = |object: &T| object.meta().name.as_deref() == Some(name) && done(object);
        let found = self.until::<T>(what, |all| all.iter().any(is_it)).await;
        found.into_iter().find(is_it).unwrap()
    }

    /// Waits until nothing of a kind with this name is left.
    ///
    /// # Panics
    /// When it stays.
    pub async fn until_gone<T>(&self, name: &str)
    where
        T: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let gone = |all: &[T]| all.iter().all(|object| object.name_any() != name);
        self.until::<T>(&format!("the end of {name}"), gone).await;
    }

    /// Waits until `done` accepts the journal's records, and returns them.
    ///
    /// # Panics
    /// When it never does.
    pub async fn until_recorded(
        &self,
        journal: &Journal,
        done: impl Fn(&[Arc<Record>]) -> bool,
    ) -> Vec<Arc<Record>> {
        let mut feed = journal.subscribe();
        let wait = async {
            loop {
                let records = journal.records();
                if done(&records) {
                    return records;
                }
                let _ = feed.recv().await;
            }
        };
        let Ok(records) = self.env.timeout(self.patience(), wait).await else {
            panic!("it did not happen; the journal:\n{journal}");
        };
        records
    }

    /// Waits for so many records.
    ///
    /// # Panics
    /// When fewer come.
    pub async fn runs(&self, journal: &Journal, count: usize) -> Vec<Arc<Record>> {
        self.until_recorded(journal, |records| records.len() >= count).await
    }

    /// Waits until nobody has written anything for two seconds.
    ///
    /// # Panics
    /// When they never stop.
    pub async fn quiet(&self) {
        let wait = async {
            let mut before = None;
            while before != Some(self.writes.count()) {
                before = Some(self.writes.count());
                self.env.sleep(Duration::from_secs(2)).await;
            }
        };
        if self.env.timeout(self.patience(), wait).await.is_err() {
            panic!("it never comes to rest: {:?}\n{}", self.writes.take(), self.shown_journal());
        }
    }

    /// Gives everything time to happen that should not happen: two virtual hours, three real seconds.
    pub async fn nothing_more(&self) {
        let long = if self.is_virtual { 7200 } else { 3 };
        self.env.sleep(Duration::from_secs(long)).await;
    }

    /// Asserts that two times are so far apart; on the wall clock, roughly.
    ///
    /// # Panics
    /// When they are not.
    pub fn assert_apart(&self, earlier: Timestamp, later: Timestamp, expected: Duration) {
        let actual = Duration::try_from(later.duration_since(earlier)).unwrap();
        let slack = Duration::from_millis(if self.is_virtual { 2 } else { 1500 });
        let fits = actual + Duration::from_millis(2) >= expected && actual <= expected + slack;
        assert!(fits, "{actual:?} instead of {expected:?}");
    }

    fn shown_journal(&self) -> String {
        self.journal.lock().unwrap().as_ref().map(ToString::to_string).unwrap_or_default()
    }
}
