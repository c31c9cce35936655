//! What a map that waits may look at: the primaries of its controller, and the API.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::Env;
use crate::cache::{Entry, KindCache};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::Kind;

/// Handed to the maps of [`crate::Controller::watches_async`]; cheap to clone.
#[derive(Clone)]
pub struct Lookup {
    pub(super) env: Env,
    pub(super) client: kube::Client,
    pub(super) kind: Kind,
    pub(super) primaries: KindCache,
    /// The cache of their kind that knows most of them.
    pub(super) indexed: KindCache,
    /// What the caches call the declared indexes.
    pub(super) indexes: Arc<BTreeMap<(Kind, String), String>>,
}

impl Lookup {
    /// The keys of all primaries that are known, or of those in one namespace, in order.
    #[must_use]
    pub fn primaries(&self, namespace: Option<&str>) -> Vec<Key> {
        let entries = match namespace {
            None => self.primaries.entries(),
            Some(_) => {
                let informer = self.primaries.informer(namespace);
                informer.map(|informer| informer.entries()).unwrap_or_default()
            }
        };
        let here = |key: &Key| namespace.is_none() || key.namespace() == namespace;
        entries.iter().map(key).filter(here).collect()
    }

    /// The keys of the primaries that an index of theirs has under `value`; see
    /// [`crate::Controller::index_field`].
    ///
    /// # Errors
    /// Terminal when the controller declares no such index of its own kind.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Key>> {
        let name = self.indexes.get(&(self.kind.clone(), index.to_owned())).ok_or_else(|| {
            Error::terminal(format!("the controller has no index {index} of {}", self.kind))
        })?;
        let found = self.indexed.by_index(name, value)?;
        Ok(found.iter().map(key).filter(|key| self.primaries.entry(key).is_some()).collect())
    }

    /// The client, for whatever else there is to know. Its writes pass only while this process leads.
    #[must_use]
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// The environment.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.env
    }
}

fn key(entry: &Arc<Entry>) -> Key {
    entry.header.key.clone()
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup").field("primaries", &self.primaries).finish_non_exhaustive()
    }
}
