//! The Pods that run here, by namespace and name, for logs, exec and port-forward.
//!
//! A name is not an identity: a Pod may begin while another of its name is still ending.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::logs::Log;
use super::process::Container;

/// A Pod that the agent runs.
#[derive(Debug, Clone)]
pub(crate) struct Present {
    pub(crate) uid: String,
    /// `None` for one that ended with an earlier agent.
    pub(crate) ip: Option<Ipv4Addr>,
    pub(crate) containers: BTreeMap<String, Runs>,
}

/// The runs of one container that can still be looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs {
    /// `None` for a run that ended with an earlier agent.
    pub(crate) process: Option<Container>,
    /// What the last run wrote, be it that it still runs or not.
    pub(crate) newest: Option<Log>,
    pub(crate) older: Option<Log>,
    /// Why it does not run although it is to run, or to run again.
    pub(crate) waits: Option<String>,
}

impl Runs {
    /// What the last run wrote that ended before the one that is, or is waited for.
    pub(crate) fn previous(&self) -> Option<&Log> {
        if self.waits.is_some() { self.newest.as_ref() } else { self.older.as_ref() }
    }
}

/// Everything that can be asked for by name.
#[derive(Debug, Default)]
pub(crate) struct Directory(Mutex<BTreeMap<(String, String), Present>>);

impl Directory {
    fn pods(&self) -> MutexGuard<'_, BTreeMap<(String, String), Present>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a Pod that begins; one of the same name that is still ending gives way.
    pub(crate) fn show(&self, namespace: &str, name: &str, present: Present) {
        self.pods().insert((namespace.to_owned(), name.to_owned()), present);
    }

    /// Changes what is shown of a Pod, unless another of the same name has taken its place.
    pub(crate) fn change(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
        change: impl FnOnce(&mut Present),
    ) {
        let mut pods = self.pods();
        let present = pods.get_mut(&(namespace.to_owned(), name.to_owned()));
        if let Some(present) = present.filter(|present| present.uid == uid) {
            change(present);
        }
    }

    /// Forgets a Pod, unless another of the same name has taken its place.
    pub(crate) fn hide(&self, namespace: &str, name: &str, uid: &str) {
        let mut pods = self.pods();
        let key = (namespace.to_owned(), name.to_owned());
        if pods.get(&key).is_some_and(|present| present.uid == uid) {
            pods.remove(&key);
        }
    }

    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<Present> {
        self.pods().get(&(namespace.to_owned(), name.to_owned())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present(uid: &str) -> Present {
        Present { uid: uid.into(), ip: Some(Ipv4Addr::LOCALHOST), containers: BTreeMap::new() }
    }

    #[test]
    fn a_pod_is_found_although_its_namesake_ends_after_it_began() {
        let directory = Directory::default();
        directory.show("default", "db-0", present("old"));
        directory.show("default", "db-0", present("new"));
        directory.change("default", "db-0", "old", |old| old.ip = None);
        directory.hide("default", "db-0", "old");
        let found = directory.find("default", "db-0").unwrap();
        assert_eq!((found.uid.as_str(), found.ip), ("new", Some(Ipv4Addr::LOCALHOST)));
        directory.hide("default", "db-0", "new");
        assert!(directory.find("default", "db-0").is_none());
    }
}
