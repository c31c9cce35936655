//! What is known from outside: every acknowledged write, and the one per key that may or may not
//! have happened.

use std::collections::{BTreeMap, BTreeSet};

use homeostat_apiserver::store::{Key, Store};

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// What each key holds: the uid, or `nothing`; with the revision if that was acknowledged.
    known: BTreeMap<String, (String, Option<u64>)>,
    /// What was begun and not acknowledged, per key.
    begun: BTreeMap<String, String>,
    /// Every revision that somebody was told, with what it stands for.
    revisions: BTreeMap<u64, String>,
    uids: BTreeSet<String>,
    newest: u64,
}

impl Ledger {
    /// Notes what the victim said; `true` for an acknowledgement.
    pub(crate) fn note(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["begin", name, what, "."] => {
                let fresh = *what == "nothing" || self.uids.insert((*what).to_owned());
                assert!(fresh, "uid {what} was given twice");
                self.begun.insert((*name).to_owned(), (*what).to_owned());
                false
            }
            ["done", name, what, revision, "."] => {
                let revision: u64 = revision.parse().unwrap();
                assert_eq!(self.begun.remove(*name).as_deref(), Some(*what));
                self.tell(revision, &format!("{name} {what}"));
                self.known.insert((*name).to_owned(), ((*what).to_owned(), Some(revision)));
                true
            }
            _ => false,
        }
    }

    /// A revision means one thing for ever.
    fn tell(&mut self, revision: u64, what: &str) {
        let before = self.revisions.insert(revision, what.to_owned());
        assert!(before.is_none_or(|before| before == what), "revision {revision} was used twice");
    }

    /// What was found after the kill must be what is known; where a write was under way, either.
    pub(crate) fn compare(&mut self, store: &Store, run: u64) {
        let snapshot = store.snapshot();
        assert!(snapshot.revision() >= self.newest, "run {run}: revisions went back");
        let told = self.revisions.last_key_value().map_or(0, |(revision, _)| *revision);
        assert!(snapshot.revision() >= told, "run {run}: acknowledged revision {told} is gone");
        self.newest = snapshot.revision();
        let begun = std::mem::take(&mut self.begun);
        let names: BTreeSet<String> = self.known.keys().chain(begun.keys()).cloned().collect();
        for name in names {
            let key = Key::new("default", name.clone());
            let (left, right) = (snapshot.get("left", &key), snapshot.get("right", &key));
            let uid = |object: &homeostat_apiserver::store::Stored| {
                object.value()["metadata"]["uid"].as_str().unwrap().to_owned()
            };
            let found = left.as_deref().map_or_else(|| "nothing".to_owned(), uid);
            let twin = right.as_deref().map_or_else(|| "nothing".to_owned(), uid);
            assert_eq!(found, twin, "run {run}: half of a commit of {name}");
            let revision = left.map(|object| object.revision);
            assert_eq!(revision, right.map(|object| object.revision), "run {run}: {name}");
            let nothing = ("nothing".to_owned(), None);
            let (known, acknowledged) = self.known.get(&name).unwrap_or(&nothing);
            if found == *known {
                let same =
                    acknowledged.is_none() || revision.is_none() || revision == *acknowledged;
                assert!(same, "run {run}: {name} is at {revision:?}, not {acknowledged:?}");
            } else {
                assert_eq!(Some(&found), begun.get(&name), "run {run}: {name} was {known}");
            }
            if let Some(revision) = revision {
                self.tell(revision, &format!("{name} {found}"));
            }
            self.known.insert(name, (found, revision));
        }
    }
}
