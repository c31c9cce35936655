//! The kinds besides the primary: what their changes mean, and how they are cached.

use std::fmt;
use std::sync::Arc;

use super::Predicate;
use super::lookup::Lookup;
use super::mapper::Map;
use crate::cache::{self, Entry, Extract, Scope};
use crate::error::Result;
use crate::key::Key;
use crate::kind::{Kind, Object, View};

/// Another kind and what it means to a controller, for [`crate::Controller::relates`]: the long form
/// of `owns`, `watches` and `reads`, for kinds known only at run time and for everything else that
/// can be said about a kind.
///
/// ```
/// use homeostat::controller::Related;
/// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use homeostat::{Context, Controller, Kind, Outcome, Result};
/// # async fn reconcile(_: std::sync::Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Outcome> { Ok(Outcome::Done) }
///
/// let widgets = Kind::new("example.com", "v1", "Widget", "widgets", true);
/// let controller = Controller::new(reconcile)
///     .relates(Related::owned(widgets))
///     .relates(Related::owned(Kind::of::<Pod>()).metadata_only());
/// ```
pub struct Related {
    pub(super) kind: Kind,
    pub(super) role: Role,
    /// Which of its changes matter; all without one.
    pub(super) filter: Option<Predicate>,
    /// Which of its objects, and how much of them; never a namespace.
    pub(super) scope: Scope,
    pub(super) indexes: Vec<Indexed>,
}

/// What a change of a kind wakes.
pub(super) enum Role {
    /// Its controller, or every owner.
    Owned { every: bool },
    /// The keys a function names.
    Watched(Map),
    /// Nothing.
    Read,
    /// Nothing, and it is not cached.
    Known,
}

/// An index that a controller declares.
pub(super) struct Indexed {
    pub(super) name: String,
    /// Whether the name says all about it, so that controllers may share it.
    pub(super) is_field: bool,
    pub(super) extract: Extract,
}

impl Related {
    /// Wakes the owner when an object of that kind that it controls (by uid) changes.
    #[must_use]
    pub fn owned(kind: Kind) -> Self {
        Self::new(kind, Role::Owned { every: false })
    }

    /// Wakes every object of the primary's kind that an object of that kind names as an owner (by
    /// uid), whether it is its controller or not.
    #[must_use]
    pub fn owned_by_any(kind: Kind) -> Self {
        Self::new(kind, Role::Owned { every: true })
    }

    /// Wakes the keys that `map` names when an object of that kind changes (old and new are mapped).
    /// An object that does not fit `X` wakes nobody and is logged.
    pub fn watched<X: View>(
        kind: Kind,
        map: impl Fn(&X) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        Self::try_watched(kind, move |object: &X| Ok(map(object)))
    }

    /// The same for a map that may fail: it is asked again with backoff about the same object, so
    /// that nobody it concerns is forgotten.
    pub fn try_watched<X: View>(
        kind: Kind,
        map: impl Fn(&X) -> Result<Vec<Key>> + Send + Sync + 'static,
    ) -> Self {
        Self::new(kind, Role::Watched(Map::now(map)))
    }

    /// The same for a map that waits; see [`crate::Controller::watches_async`].
    pub fn watched_async<X: View, Fut>(
        kind: Kind,
        map: impl Fn(Arc<X>, Lookup) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = Result<Vec<Key>>> + Send + 'static,
    {
        Self::new(kind, Role::Watched(Map::soon(map)))
    }

    /// Caches the kind for reads and wakes nobody.
    #[must_use]
    pub fn read(kind: Kind) -> Self {
        Self::new(kind, Role::Read)
    }

    /// Neither caches nor watches the kind: it is enough to write objects that say their kind only
    /// at run time, such as [`kube::api::DynamicObject`].
    #[must_use]
    pub fn known(kind: Kind) -> Self {
        Self::new(kind, Role::Known)
    }

    /// Only changes that pass the filter wake somebody. A second filter narrows the first.
    #[must_use]
    pub fn when(mut self, filter: Predicate) -> Self {
        self.filter = Some(match self.filter.take() {
            Some(first) => first.and(filter),
            None => filter,
        });
        self
    }

    /// Caches only the metadata: enough to wake owners, at a small part of the memory. It is read
    /// with [`crate::Context::metadata`]; reads of whole objects go to the API.
    ///
    /// [`crate::Controller::owns`] and its like do so where the type is
    /// [`kube::core::PartialObjectMeta`].
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.scope.metadata_only = true;
        self
    }

    /// Only objects whose labels match (`a=b,c in (d,e)`): others are not even cached. One that
    /// leaves the selection counts as deleted, one that enters it as added. A second selector narrows
    /// the first. Controllers that say the same selector of a kind share one informer.
    ///
    /// Reads are still right: what the selection does not hold is asked of the API. Lists come from
    /// the cache when they ask for the same labels or for more; an index knows the selection alone.
    ///
    /// ```
    /// use homeostat::controller::Related;
    /// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use homeostat::{Context, Controller, Kind, Outcome, Result};
    /// # async fn reconcile(_: std::sync::Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Outcome> { Ok(Outcome::Done) }
    ///
    /// // Of all the Secrets of a cluster, those that this operator makes.
    /// let ours = Related::owned(Kind::of::<Secret>()).labels("app.kubernetes.io/managed-by=me");
    /// let controller = Controller::new(reconcile).relates(ours);
    /// ```
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.scope = self.scope.labels(selector);
        self
    }

    /// Only objects whose fields match (`spec.nodeName=a,status.phase!=Failed`), as
    /// [`Self::labels`]; servers know few fields of each kind. Lists are asked of the API.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.scope = self.scope.fields(selector);
        self
    }

    /// Keeps an index by the field at `path` (`spec.nodeName`), for [`crate::Context::by_index`];
    /// lists on the way are followed into every element. The path is its name.
    #[must_use]
    pub fn index_field(mut self, path: &str) -> Self {
        self.indexes.push(Indexed::field(path));
        self
    }

    /// Keeps an index by whatever values `extract` finds, which must depend on the object alone.
    #[must_use]
    pub fn index(
        mut self,
        name: &str,
        extract: impl Fn(&Entry) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let extract: Extract = Arc::new(extract);
        self.indexes.push(Indexed { name: name.to_owned(), is_field: false, extract });
        self
    }

    pub(super) fn new(kind: Kind, role: Role) -> Self {
        Self { kind, role, filter: None, scope: Scope::default(), indexes: Vec::new() }
    }

    /// Caches as much as type `X` can show.
    pub(super) fn seen_as<X: Object>(mut self) -> Self {
        self.scope.metadata_only = X::metadata_api();
        self
    }
}

impl Indexed {
    pub(super) fn field(path: &str) -> Self {
        Self { name: path.to_owned(), is_field: true, extract: cache::field(path) }
    }
}

impl fmt::Debug for Related {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Owned { .. } => "owned",
            Role::Watched(_) => "watched",
            Role::Read => "read",
            Role::Known => "known",
        };
        write!(f, "{} ({role})", self.kind)
    }
}
