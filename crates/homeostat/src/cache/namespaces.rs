//! Which namespaces somebody looks after, while that may change.

use std::collections::BTreeSet;
use std::fmt;

use tokio::sync::watch;

/// A set of namespaces; clones are handles on the same set. Whoever was given one follows every
/// change of it.
///
/// ```
/// use homeostat::Namespaces;
///
/// let namespaces = Namespaces::new(["blue"]);
/// let elsewhere = namespaces.clone();
/// elsewhere.set(["blue", "green"]);
/// assert_eq!(namespaces.get().into_iter().collect::<Vec<_>>(), ["blue", "green"]);
/// ```
#[derive(Clone)]
pub struct Namespaces(watch::Sender<BTreeSet<String>>);

impl Namespaces {
    /// These to begin with; none is a set like any other.
    pub fn new<N: Into<String>>(namespaces: impl IntoIterator<Item = N>) -> Self {
        let (sender, _) = watch::channel(collect(namespaces));
        Self(sender)
    }

    /// These from now on. Those that were there before stay as they are.
    pub fn set<N: Into<String>>(&self, namespaces: impl IntoIterator<Item = N>) {
        let new = collect(namespaces);
        self.0.send_if_modified(|old| {
            let changed = *old != new;
            *old = new;
            changed
        });
    }

    /// Those of this moment.
    #[must_use]
    pub fn get(&self) -> BTreeSet<String> {
        self.0.borrow().clone()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<BTreeSet<String>> {
        self.0.subscribe()
    }
}

fn collect<N: Into<String>>(namespaces: impl IntoIterator<Item = N>) -> BTreeSet<String> {
    namespaces.into_iter().map(Into::into).collect()
}

impl fmt::Debug for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&*self.0.borrow()).finish()
    }
}
