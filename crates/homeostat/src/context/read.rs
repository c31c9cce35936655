//! Reads: from the cache for declared kinds, from the API for others.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kube::api::GetParams;
use kube::core::{PartialObjectMeta, Selector};

use super::barrier::Part;
use super::request::Answer;
use super::{Context, request};
use crate::cache::{Entry, Informer, KindCache, Namespaces, selector};
use crate::error::{Error, Result};
use crate::journal::ReadFrom;
use crate::key::{Key, NameOrKey};
use crate::kind::{AnyObject, Kind, Object, View};

impl<K: AnyObject> Context<K> {
    /// The object of that name in the primary's namespace, or of that key anywhere; `None` if there
    /// is none.
    ///
    /// # Errors
    /// [`crate::Error::Stale`] when the cache does not catch up with this key's writes within 5 s.
    pub async fn get<T: Object>(&self, object: impl NameOrKey) -> Result<Option<Arc<T>>> {
        let kind = Kind::of::<T>();
        self.get_part(&kind, &self.key_meant(&kind, &object), Part::of::<T>()).await
    }

    /// The same for a kind known only at run time, read as [`kube::api::DynamicObject`] or as any
    /// type that fits.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn get_of<T: View>(&self, kind: &Kind, key: &Key) -> Result<Option<Arc<T>>> {
        self.get_part(kind, key, Part::Whole).await
    }

    /// The metadata of an object of a kind that may be cached without the rest; `None` if there is
    /// none. See [`crate::controller::Related::metadata_only`].
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn metadata(&self, kind: &Kind, key: &Key) -> Result<Option<Arc<PartialObjectMeta>>> {
        self.get_part(kind, key, Part::Metadata).await
    }

    async fn get_part<T: View>(
        &self,
        kind: &Kind,
        key: &Key,
        part: Part,
    ) -> Result<Option<Arc<T>>> {
        if let Some(informer) = self.cache_of(kind, key, part) {
            self.settle(kind, key, &informer).await?;
            let found = informer.get(key)?;
            self.note_read(kind, Some(key), ReadFrom::Cache, usize::from(found.is_some()));
            return Ok(found);
        }
        self.get_live_of(kind, key).await
    }

    /// All objects of a kind in the primary's namespace (in all that the controller looks after if the
    /// primary has none), in key order.
    ///
    /// All or none: an object that does not fit the type is an error of every list it belongs to,
    /// from the cache as from the API. A reconcile that counts would make too many without it. Read
    /// as [`kube::core::PartialObjectMeta`] or [`kube::api::DynamicObject`] where that is too
    /// strict.
    ///
    /// # Errors
    /// [`Error::Decode`], which names the object; otherwise as [`Self::get`]. Terminal, and tried again
    /// every 30 s: whoever mends that object does not change the primary.
    pub async fn list<T: Object>(&self) -> Result<Vec<Arc<T>>> {
        self.list_labelled("").await
    }

    /// The objects of a kind in the primary's namespace whose labels match `selector`
    /// (`a=b,c in (d,e)`), in key order.
    ///
    /// # Errors
    /// A selector that cannot be read is terminal; otherwise as [`Self::get`].
    pub async fn list_labelled<T: Object>(&self, selector: &str) -> Result<Vec<Arc<T>>> {
        self.list_in(self.run.key.namespace(), selector).await
    }

    /// The objects of a kind in `namespace` (in all that the controller looks after for `None`) whose
    /// labels match, in key order.
    ///
    /// # Errors
    /// As [`Self::list_labelled`].
    pub async fn list_in<T: Object>(
        &self,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Arc<T>>> {
        self.list_part(&Kind::of::<T>(), namespace, selector, Part::of::<T>()).await
    }

    /// The same for a kind known only at run time.
    ///
    /// # Errors
    /// As [`Self::list_labelled`].
    pub async fn list_of<T: View>(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Arc<T>>> {
        self.list_part(kind, namespace, selector, Part::Whole).await
    }

    async fn list_part<T: View>(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &str,
        part: Part,
    ) -> Result<Vec<Arc<T>>> {
        let namespace = namespace.filter(|_| kind.is_namespaced());
        let wanted = selector::parse(selector)?;
        if let Some(caches) = self.caches(kind, namespace, &wanted, part) {
            self.settle_all(kind).await?;
            let all = caches.iter().flat_map(|cache| cache.select_entries(namespace, &wanted));
            let found: Vec<_> = all.collect();
            self.note_read(kind, None, ReadFrom::Cache, found.len());
            return found.iter().map(|entry| entry.decode_shared()).collect();
        }
        self.list_live_of(kind, namespace, selector).await
    }

    /// The objects of a kind whose controller (by uid) is the primary, in key order.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn owned<T: Object>(&self) -> Result<Vec<Arc<T>>> {
        self.owned_part(&Kind::of::<T>(), Part::of::<T>()).await
    }

    /// The same for a kind known only at run time.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn owned_of<T: View>(&self, kind: &Kind) -> Result<Vec<Arc<T>>> {
        self.owned_part(kind, Part::Whole).await
    }

    async fn owned_part<T: View>(&self, kind: &Kind, part: Part) -> Result<Vec<Arc<T>>> {
        let primary = self.primary();
        let uid = primary.meta().uid.as_deref().unwrap_or_default();
        let namespace = self.run.key.namespace().filter(|_| kind.is_namespaced());
        if let Some(caches) = self.caches(kind, namespace, &Selector::default(), part) {
            self.settle_all(kind).await?;
            let is_ours = |entry: &Arc<Entry>| {
                entry.header.controller().is_some_and(|owner| *owner.uid == *uid)
            };
            let mut found = Vec::new();
            for cache in caches {
                for entry in cache.by_owner(uid).into_iter().filter(is_ours) {
                    found.push(cache.typed(&entry)?);
                }
            }
            self.note_read(kind, None, ReadFrom::Cache, found.len());
            return Ok(found);
        }
        self.list_live_owned(kind, namespace, uid).await
    }

    /// The objects of a kind in the primary's namespace (in all that the controller looks after if the
    /// primary has none) that an index has under `value`, in key order; see
    /// [`crate::Controller::index_field`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use homeostat::kube::ResourceExt;
    /// use homeostat::{Context, Controller, Outcome, Result};
    ///
    /// /// Says of each Secret how many of all config maps beside it name it.
    /// async fn reconcile(secret: Arc<Secret>, ctx: Context<Secret>) -> Result<Outcome> {
    ///     let users = ctx.by_index::<ConfigMap>("data.secretName", &secret.name_any()).await?;
    ///     let all = ctx.list::<ConfigMap>().await?;
    ///     let note = format!("{} of {}", users.len(), all.len());
    ///     let patch = serde_json::json!({ "metadata": { "annotations": { "used-by": note } } });
    ///     ctx.merge_patch_primary(&patch).await?;
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// #     for (name, of) in [("a", "s"), ("b", "other")] {
    /// #         let data = serde_json::json!({ "secretName": of });
    /// #         let config = serde_json::json!({ "metadata": { "name": name }, "data": data });
    /// #         cluster.create::<ConfigMap>(config).await;
    /// #     }
    /// #     cluster.create::<Secret>(serde_json::json!({ "metadata": { "name": "s" } })).await;
    /// let controller = Controller::new(reconcile).index_field::<ConfigMap>("data.secretName");
    /// #     let running = cluster.start(controller).await;
    /// #     let used = |secret: &Secret| {
    /// #         secret.annotations().get("used-by").is_some_and(|note| note.starts_with("1 of "))
    /// #     };
    /// #     cluster.until_one::<Secret>("s", "a note", used).await;
    /// #     running.stop().await.unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    /// Terminal when the controller declares no such index, or does not look after that namespace; where
    /// that may change, it is tried again every 30 s.
    /// [`Error::Stale`] while it is not known what a namespace holds, because it has just joined those
    /// that the controller looks after, or cannot be read, or because the primary's own has just left
    /// them; otherwise as [`Self::get`].
    pub async fn by_index<T: Object>(&self, index: &str, value: &str) -> Result<Vec<Arc<T>>> {
        self.by_index_in(self.run.key.namespace(), index, value).await
    }

    /// The same in `namespace` (in all that the controller looks after for `None`).
    ///
    /// # Errors
    /// As [`Self::by_index`].
    pub async fn by_index_in<T: Object>(
        &self,
        namespace: Option<&str>,
        index: &str,
        value: &str,
    ) -> Result<Vec<Arc<T>>> {
        self.by_index_of(&Kind::of::<T>(), namespace, index, value).await
    }

    /// The same for a kind known only at run time.
    ///
    /// # Errors
    /// As [`Self::by_index`].
    pub async fn by_index_of<T: View>(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        index: &str,
        value: &str,
    ) -> Result<Vec<Arc<T>>> {
        let namespace = namespace.filter(|_| kind.is_namespaced());
        let name = self.run.shared.indexes.get(&(kind.clone(), index.to_owned()));
        let (Some(caches), Some(name)) = (self.indexed_caches(kind, namespace), name) else {
            let cache = self.run.shared.caches.get(kind).filter(|_| name.is_some());
            if cache.is_some_and(KindCache::is_each) {
                if self.may_be_looked_after(namespace) {
                    return Err(Error::Stale(format!("no {kind} there is looked after")));
                }
                // Nobody says when it joins.
                self.run.waits_outside.store(true, Ordering::Relaxed);
            }
            let why = format!("the controller has no index {index} of {kind} here");
            return Err(Error::terminal(why));
        };
        if !caches.iter().all(Informer::is_synced) {
            return Err(Error::Stale(format!("not every {kind} is in the cache yet")));
        }
        Box::pin(self.leave_out_what_is_not_selected(kind)).await;
        self.settle_all(kind).await?;
        let mut found = Vec::new();
        for cache in caches {
            // An object that the index cannot read, and nobody says when that is mended.
            let wait = |_: &Error| self.run.waits_outside.store(true, Ordering::Relaxed);
            for entry in cache.by_index(name, value).inspect_err(wait)? {
                if namespace.is_none() || entry.header.key.namespace() == namespace {
                    found.push(cache.typed(&entry)?);
                }
            }
        }
        self.note_read(kind, None, ReadFrom::Cache, found.len());
        Ok(found)
    }

    /// Whether a namespace without caches may have had them a moment ago, or has them soon.
    fn may_be_looked_after(&self, namespace: Option<&str>) -> bool {
        let joins = |limits: &Namespaces| namespace.is_some_and(|it| limits.get().contains(it));
        // The primary's own has left in the middle of this reconcile.
        namespace == self.run.key.namespace()
            || self.run.shared.namespaces.as_ref().is_some_and(joins)
    }

    /// The object as the API has it this moment, by its name in the primary's namespace or by its
    /// key; `None` if there is none.
    ///
    /// # Errors
    /// What the API says, except that there is no such object.
    pub async fn get_live<T: Object>(&self, object: impl NameOrKey) -> Result<Option<Arc<T>>> {
        let kind = Kind::of::<T>();
        self.get_live_of(&kind, &self.key_meant(&kind, &object)).await
    }

    /// The same for a kind known only at run time.
    ///
    /// # Errors
    /// As [`Self::get_live`].
    pub async fn get_live_of<T: View>(&self, kind: &Kind, key: &Key) -> Result<Option<Arc<T>>> {
        let answer = self.answer_live(kind, key).await?;
        answer.map(|answer| answer.decode(kind, key).map(Arc::new)).transpose()
    }

    /// The same, as it came.
    pub(super) async fn answer_live(&self, kind: &Kind, key: &Key) -> Result<Option<Answer>> {
        let path = request::to(kind, key.namespace());
        let answer = match self.send(path.get(key.name(), &GetParams::default())).await {
            Ok(answer) => Some(answer),
            Err(error) if request::is_not_found(&error) => None,
            Err(error) => return Err(error),
        };
        self.note_read(kind, Some(key), ReadFrom::Api, usize::from(answer.is_some()));
        if let Some(answer) = &answer
            && self.cache_of(kind, key, Part::Whole).is_none()
        {
            self.note_seen(kind, key, &answer.body);
        }
        Ok(answer)
    }

    /// The key that is meant: a name is one beside the primary.
    pub(super) fn key_meant(&self, kind: &Kind, object: &impl NameOrKey) -> Key {
        object.key_in(self.run.key.namespace().filter(|_| kind.is_namespaced()))
    }

    /// The key of an object beside the primary.
    pub(super) fn key_beside(&self, kind: &Kind, name: &str) -> Key {
        let namespace = self.run.key.namespace().filter(|_| kind.is_namespaced());
        Key::new(namespace, name)
    }
}
