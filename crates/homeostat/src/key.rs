//! The name of an object among its kind: what the queue holds and a reconcile is about.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use kube::Resource;

/// Namespace and name; cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<Arc<str>>,
    /// The name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of an object in a namespace.
    pub fn namespaced(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: impl Into<Arc<str>>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// The key of `object`; an object without a name has the empty one.
    pub fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.as_deref().map(Arc::from),
            name: Arc::from(meta.name.as_deref().unwrap_or_default()),
        }
    }
}

/// By namespace, then by name.
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let namespaces = match (&self.namespace, &other.namespace) {
            // Caches keep the name of a namespace once, so most neighbours share it.
            (Some(own), Some(others)) if Arc::ptr_eq(own, others) => Ordering::Equal,
            (own, others) => own.cmp(others),
        };
        namespaces.then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `namespace/name`, or `name` alone.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}
