//! One controller: a reconcile function, what wakes it, and how it is run.
//!
//! ```text
//! primary, owned, watched ──source──▶ queue ──worker──▶ reconcile ──▶ outcome ──▶ queue
//! ```

mod ahead;
mod contract;
mod crew;
mod declare;
mod everything;
mod launch;
mod lookup;
mod mapper;
mod mark;
mod outside;
mod predicate;
mod reach;
mod reconcile;
mod related;
mod source;
mod worker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::cache::{Namespaces, Scope};
use crate::error::{Error, Result};
use crate::hotloop::HotLoop;
use crate::key::Key;
use crate::kind::{AnyObject, Kind, Object};
use crate::queue::{Backoff, Debounce, Rate, Rules};

pub(crate) use launch::{Follower, Launch, Launched, World, is_decided};
pub use lookup::Lookup;
pub use outside::Source;
pub(crate) use outside::SourceHealth;
pub use predicate::Predicate;
use reach::Reach;
use reconcile::Boxed;
pub use reconcile::{ByFunction, ByReconciler, IntoReconcile, Reconciler};
use related::Indexed;
pub use related::Related;
pub(crate) use source::trigger;

/// Told of a key that is given up, and of its last error.
type Tell = dyn Fn(&Key, &Error) + Send + Sync;

/// When a failing key is given up, and who is told.
#[derive(Clone)]
struct GiveUp {
    attempts: u32,
    tell: Arc<Tell>,
}

/// A controller, built step by step and run by a [`crate::Manager`].
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use homeostat::k8s_openapi::api::apps::v1::Deployment;
/// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use homeostat::kube::ResourceExt;
/// use homeostat::{Context, Controller, Key, Outcome, Predicate, Result};
///
/// async fn reconcile(deployment: Arc<Deployment>, ctx: Context<Deployment>) -> Result<Outcome> {
///     Ok(Outcome::RequeueAfter(Duration::from_secs(600)))
/// }
///
/// let controller = Controller::new(reconcile)
///     .named("auditor")
///     .filter(Predicate::generation_changed().or(Predicate::labels_changed()))
///     .owns::<Pod>()
///     .watches(|config: &ConfigMap| {
///         let named = config.annotations().get("audits");
///         let namespace = config.namespace().unwrap_or_default();
///         named.map(|name| Key::namespaced(namespace, name.as_str())).into_iter().collect()
///     })
///     .concurrency(8)
///     .timeout(Duration::from_secs(30));
/// ```
pub struct Controller<K> {
    name: String,
    kind: Kind,
    reconcile: Boxed<K>,
    related: Vec<Related>,
    /// Of the primary and of declared kinds.
    indexes: Vec<(Kind, Indexed)>,
    sources: Vec<Source>,
    filter: Option<Predicate>,
    background: Option<Predicate>,
    reach: Reach,
    /// Which primaries, and how much of them; never a namespace.
    scope: Scope,
    concurrency: usize,
    timeout: Duration,
    request_timeout: Duration,
    rules: Rules<Key>,
    hot_loop: Option<HotLoop>,
    give_up: Option<GiveUp>,
    heeds_warnings: bool,
    /// Whether the runtime speaks in the conditions of the primaries.
    marks_status: bool,
    /// Whether it rests while another process leads.
    follows_lease: bool,
}

impl<K: Object> Controller<K> {
    /// A controller named after its kind, with one watch on the kind itself.
    ///
    /// The type of the primaries says how much of them is watched and cached. With
    /// [`kube::core::PartialObjectMeta`] it is their metadata alone, a small part of the memory:
    /// enough to label, to finalize, to make children. [`Context::get`](crate::Context::get) of the
    /// whole type then asks the API (unless the whole is cached too, for an index or by
    /// [`Self::reads`]: then it waits for the version that woke the key), and the status is written by
    /// [`Context::merge_patch_status`](crate::Context::merge_patch_status); a terminal error is an
    /// event and no condition, since nobody knows the others.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use homeostat::kube::ResourceExt;
    /// use homeostat::kube::core::PartialObjectMeta;
    /// use homeostat::{Context, Controller, Outcome, Result};
    ///
    /// type Meta = PartialObjectMeta<Secret>;
    ///
    /// /// Says of each Secret since when it is there, and never sees what is in it.
    /// async fn reconcile(secret: Arc<Meta>, ctx: Context<Meta>) -> Result<Outcome> {
    ///     let since = secret.creation_timestamp().map(|time| time.0.to_string());
    ///     let mut note = ConfigMap::default();
    ///     note.metadata.name = Some(format!("{}-note", secret.name_any()));
    ///     note.data = Some([("since".to_owned(), since.unwrap_or_default())].into());
    ///     ctx.apply(note).await?;
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// let controller = Controller::new(reconcile).owns::<PartialObjectMeta<ConfigMap>>();
    /// #     let running = cluster.start(controller).await;
    /// #     let secret = serde_json::json!({ "metadata": { "name": "web" } });
    /// #     cluster.create::<Secret>(secret).await;
    /// #     cluster.until_one::<ConfigMap>("web-note", "a note", |note| note.data.is_some()).await;
    /// #     running.stop().await.unwrap();
    /// # });
    /// ```
    pub fn new<How>(reconcile: impl IntoReconcile<K, How>) -> Self {
        Self::of(Kind::of::<K>(), reconcile)
    }
}

impl<K: AnyObject> Controller<K> {
    /// A controller of a kind known only at run time, whose objects the reconcile function reads as
    /// [`kube::api::DynamicObject`] or as a type of its own.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::kube::api::DynamicObject;
    /// use homeostat::{Context, Controller, Kind, Outcome, Result};
    ///
    /// async fn reconcile(widget: Arc<DynamicObject>, ctx: Context<DynamicObject>) -> Result<Outcome> {
    ///     let size = widget.data["spec"]["size"].as_u64();
    ///     Ok(Outcome::Done)
    /// }
    ///
    /// let kind = Kind::new("example.com", "v1", "Widget", "widgets", true);
    /// let controller = Controller::of(kind, reconcile);
    /// ```
    pub fn of<How>(kind: Kind, reconcile: impl IntoReconcile<K, How>) -> Self {
        Self {
            name: kind.kind().to_lowercase(),
            marks_status: !kind.is_of_kubernetes(),
            kind,
            reconcile: reconcile.into_reconcile(),
            related: Vec::new(),
            indexes: Vec::new(),
            sources: Vec::new(),
            filter: None,
            background: None,
            reach: Reach::Everywhere,
            scope: Scope { metadata_only: K::metadata_api(), ..Scope::default() },
            concurrency: 4,
            timeout: Duration::from_secs(5 * 60),
            request_timeout: Duration::from_secs(30),
            rules: Rules::by_namespace(),
            hot_loop: Some(HotLoop::default()),
            give_up: None,
            heeds_warnings: true,
            follows_lease: true,
        }
    }

    /// Another name, for logs, events and the field manager; the lower-case kind by default.
    /// One that events cannot carry is an error at the start: up to 63 letters, digits, `-`, `_` and
    /// `.`, with a letter or digit at either end, perhaps after a domain and `/`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Wakes the owner when an object of kind `C` that it controls (by uid) changes. Of
    /// [`kube::core::PartialObjectMeta`] only the metadata is cached, here and in all its like.
    #[must_use]
    pub fn owns<C: Object>(self) -> Self {
        self.relates(Related::owned(Kind::of::<C>()).seen_as::<C>())
    }

    /// The same for changes that pass the filter only.
    #[must_use]
    pub fn owns_when<C: Object>(self, filter: Predicate) -> Self {
        self.relates(Related::owned(Kind::of::<C>()).seen_as::<C>().when(filter))
    }

    /// Wakes the keys that `map` names when an object of kind `X` changes (old and new are
    /// mapped). An object that cannot be decoded wakes nobody and is logged.
    #[must_use]
    pub fn watches<X: Object>(self, map: impl Fn(&X) -> Vec<Key> + Send + Sync + 'static) -> Self {
        self.try_watches(move |object: &X| Ok(map(object)))
    }

    /// The same for changes that pass the filter only.
    #[must_use]
    pub fn watches_when<X: Object>(
        self,
        filter: Predicate,
        map: impl Fn(&X) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.relates(Related::watched(Kind::of::<X>(), map).seen_as::<X>().when(filter))
    }

    /// Wakes the keys that `map` names, as [`Self::watches`]. A map that fails (or panics) is asked
    /// again with backoff about the same object, so that nobody it concerns is forgotten.
    #[must_use]
    pub fn try_watches<X: Object>(
        self,
        map: impl Fn(&X) -> Result<Vec<Key>> + Send + Sync + 'static,
    ) -> Self {
        self.relates(Related::try_watched(Kind::of::<X>(), map).seen_as::<X>())
    }

    /// Wakes the keys that `map` names, as [`Self::watches`], where finding them takes a look at the
    /// primaries ([`Lookup`]) or a question to somebody. A map that fails, panics or takes longer
    /// than 30 s is asked again with backoff about the same object. Several objects are mapped at
    /// once; what one object's changes name is found in their order.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::controller::Lookup;
    /// use homeostat::kube::ResourceExt;
    /// use homeostat::k8s_openapi::api::core::v1::{Pod, Secret};
    /// use homeostat::{Context, Controller, Outcome, Result};
    /// # async fn reconcile(_: Arc<Pod>, _: Context<Pod>) -> Result<Outcome> { Ok(Outcome::Done) }
    ///
    /// // A Secret wakes the Pods that mount it.
    /// let mounted = "spec.volumes.secret.secretName";
    /// let controller = Controller::new(reconcile)
    ///     .index_field::<Pod>(mounted)
    ///     .watches_async(async |secret: Arc<Secret>, pods: Lookup| {
    ///         let mut keys = pods.by_index("spec.volumes.secret.secretName", &secret.name_any())?;
    ///         keys.retain(|key| key.namespace() == secret.metadata.namespace.as_deref());
    ///         Ok(keys)
    ///     });
    /// ```
    #[must_use]
    pub fn watches_async<X: Object, Fut>(
        self,
        map: impl Fn(Arc<X>, Lookup) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = Result<Vec<Key>>> + Send + 'static,
    {
        self.relates(Related::watched_async(Kind::of::<X>(), map).seen_as::<X>())
    }

    /// Wakes the keys that something outside the API names: a channel, a stream, a clock.
    #[must_use]
    pub fn watches_source(mut self, source: Source) -> Self {
        self.sources.push(source);
        self
    }

    /// Caches kind `X` for reads without waking anything.
    #[must_use]
    pub fn reads<X: Object>(self) -> Self {
        self.relates(Related::read(Kind::of::<X>()).seen_as::<X>())
    }

    /// Says what another kind means, at length: for kinds known only at run time, for caches of
    /// metadata alone, with selectors, filters and indexes.
    #[must_use]
    pub fn relates(mut self, mut related: Related) -> Self {
        let kind = related.kind.clone();
        let indexes = std::mem::take(&mut related.indexes);
        self.indexes.extend(indexes.into_iter().map(|index| (kind.clone(), index)));
        self.related.push(related);
        self
    }

    /// Keeps an index of kind `X` (the primary's own or any other) by the field at `path`, such as
    /// `spec.secretName`, for [`crate::Context::by_index`]. A kind that nothing else declares is
    /// cached for it. See [`Related::index_field`].
    #[must_use]
    pub fn index_field<X: Object>(mut self, path: &str) -> Self {
        self.indexes.push((Kind::of::<X>(), Indexed::field(path)));
        self
    }

    /// Which changes of the primary wake it; all by default. A second filter narrows the first.
    #[must_use]
    pub fn filter(mut self, filter: Predicate) -> Self {
        self.filter = Some(match self.filter.take() {
            Some(first) => first.and(filter),
            None => filter,
        });
        self
    }

    /// Which changes of the primary nobody waits for: they go behind all others, as the first list
    /// does, and are never starved. None by default; a second one widens the first.
    #[must_use]
    pub fn background(mut self, changes: Predicate) -> Self {
        self.background = Some(match self.background.take() {
            Some(first) => first.or(changes),
            None => changes,
        });
        self
    }

    /// Only that namespace, for the primary and for every other kind; all by default.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.reach = Reach::One(namespace.to_owned());
        self
    }

    /// Only these namespaces, for the primary and for every other kind that lives in namespaces. The
    /// set may change at any time: the objects of one that joins are reconciled as at a start, those
    /// of one that leaves are let alone. Objects without a namespace are shown what all of them hold,
    /// and are reconciled once more after a change of the set. A namespace that cannot be read holds up
    /// no other; but what it holds they cannot be shown.
    #[must_use]
    pub fn namespaces(mut self, namespaces: &Namespaces) -> Self {
        self.reach = Reach::Several(namespaces.clone());
        self
    }

    /// Only primaries whose labels match (`a=b,c in (d,e)`); others are not even cached. A second
    /// selector narrows the first.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.scope = self.scope.labels(selector);
        self
    }

    /// Only primaries whose fields match (`metadata.name=a`, `spec.nodeName=b`); others are not even
    /// cached. A second selector narrows the first. Servers know few fields of each kind: of a custom
    /// resource its name, its namespace and what its definition calls selectable.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.scope = self.scope.fields(selector);
        self
    }

    /// How many keys may be reconciled at once; 4 by default, at least 1.
    #[must_use]
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.concurrency = limit.max(1);
        self
    }

    /// How long one reconcile may take; 5 minutes by default. A longer one is dropped at its next
    /// await and counts as a transient error.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// How long one request of a reconcile may take; 30 s by default. A longer one is given up
    /// ([`crate::Error::NoAnswer`]), which is a transient error. For requests through
    /// [`crate::Context::client`] the limit ends with the header of the answer.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// Works whoever holds the lease of the manager, in every process at once; without this (the
    /// default) it rests while another one leads. For what each process has to do for itself, such
    /// as following its own configuration, and for writes that several may make alike.
    #[must_use]
    pub fn without_lease(mut self) -> Self {
        self.follows_lease = false;
        self
    }

    /// How long a failing key waits; 1 s doubling to 5 min by default.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.rules.backoff = backoff;
        self
    }

    /// Lets a key wait until no event has come for it for `quiet`, but no longer than `at_most`
    /// after the first: a burst becomes one reconcile. Without it (the default) a key runs at once.
    #[must_use]
    pub fn debounce(mut self, quiet: Duration, at_most: Duration) -> Self {
        self.rules.debounce = Some(Debounce { quiet, at_most });
        self
    }

    /// Begins no more reconciles than that, all keys together; no limit by default. For reconciles
    /// that call something with a limit of its own.
    #[must_use]
    pub fn rate(mut self, rate: Rate) -> Self {
        self.rules.rate = Some(rate);
        self
    }

    /// What counts as a hot loop, or `None` to look for none; [`HotLoop::default`] by default. One
    /// that is found is a warning in the log and a `HotLoop` event on the object, both of which name the
    /// fields that change again and again, and one more in `homeostat_hot_loops_total`.
    ///
    /// An object of a kind that is not declared, and that changes with every write of a key, is read
    /// before the next write for that; with `None` it is not.
    #[must_use]
    pub fn hot_loop(mut self, limits: impl Into<Option<HotLoop>>) -> Self {
        self.hot_loop = limits.into();
        self
    }

    /// Leaves what the API warns of out of the log, but for the level `debug`: for a controller that
    /// uses what is deprecated, and knows it. By default each warning is logged once.
    #[must_use]
    pub fn without_warnings(mut self) -> Self {
        self.heeds_warnings = false;
        self
    }

    /// Whether a terminal error is told in the primary's conditions, `Degraded` and not `Ready`, until
    /// a reconcile goes well. By default it is, but for the kinds of Kubernetes' own groups (`apps`,
    /// `networking.k8s.io`, …): the status of a Pod is its kubelet's. Events tell it in any case.
    ///
    /// The message names the controller (`no such zone (controller dns)`): each takes back its own
    /// words alone, and leaves those of another controller of the kind where they are while they are
    /// about the object as it is. Whoever runs two on one kind and wants to hear only one says `false`
    /// for the other. After a controller got another name, what it said under the former one goes when
    /// the object is edited, if its conditions say of which generation they are.
    #[must_use]
    pub fn marks_status(mut self, marks: bool) -> Self {
        self.marks_status = marks;
        self
    }

    /// Gives a key up after so many failures in a row (at least 1): it waits for a change of its
    /// object like one with a terminal error, with a Warning event and, if it [marks the
    /// status](Self::marks_status), a `Degraded` condition, and `tell` is called. By default a failing key is retried for ever.
    #[must_use]
    pub fn give_up_after(
        mut self,
        attempts: u32,
        tell: impl Fn(&Key, &Error) + Send + Sync + 'static,
    ) -> Self {
        self.give_up = Some(GiveUp { attempts: attempts.max(1), tell: Arc::new(tell) });
        self
    }
}

impl<K> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.name)
            .field("related", &self.related)
            .field("sources", &self.sources)
            .field("reach", &self.reach)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}
