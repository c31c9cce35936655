//! Writes of parts of objects: patches of every form, subresources, scale. Each one is journaled,
//! and later reads of the same key wait for it.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::autoscaling::v1::Scale;
use kube::api::{Patch, PatchParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::barrier::Part;
use super::request::Answer;
use super::{Change, Context, request};
use crate::cache::Entry;
use crate::error::Result;
use crate::key::Key;
use crate::kind::{AnyObject, Kind, Object};

impl<K: AnyObject> Context<K> {
    /// Patches an object: JSON patch, merge patch, strategic merge patch, or apply (without force).
    /// The cache catches up before the next read. What a controller makes is better applied with
    /// [`Self::apply`]; this is for fields of objects that are somebody else's.
    ///
    /// ```
    /// use homeostat::kube::api::Patch;
    /// use homeostat::{Context, Key, Result};
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use serde_json::json;
    ///
    /// /// Lists are merged by the keys of their elements: the other containers stay.
    /// async fn add_sidecar(context: &Context<Deployment>, key: &Key) -> Result<()> {
    ///     let sidecar = json!({ "name": "log", "image": "busybox", "command": ["sleep", "inf"] });
    ///     let spec = json!({ "template": { "spec": { "containers": [sidecar] } } });
    ///     let patch = Patch::Strategic(json!({ "spec": spec }));
    ///     context.patch::<Deployment>(key, &patch).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// What the API says; that there is no such object too.
    pub async fn patch<T: Object>(&self, key: &Key, patch: &Patch<Value>) -> Result<Arc<T>> {
        self.patch_of(&Kind::of::<T>(), key, patch).await
    }

    /// The same for a kind known only at run time.
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn patch_of<T: AnyObject>(
        &self,
        kind: &Kind,
        key: &Key,
        patch: &Patch<Value>,
    ) -> Result<Arc<T>> {
        self.patch_part(None, "patch", (kind, key), patch).await
    }

    /// Patches a part of an object that is answered with the object: `status`, `resize`,
    /// `ephemeralcontainers`.
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn patch_subresource<T: Object>(
        &self,
        part: &'static str,
        key: &Key,
        patch: &Patch<Value>,
    ) -> Result<Arc<T>> {
        self.patch_part(Some(part), part, (&Kind::of::<T>(), key), patch).await
    }

    /// JSON merge patch of an object: [`Self::patch`] with the form that is wanted most.
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn merge_patch<T: Object>(&self, key: &Key, patch: &Value) -> Result<Arc<T>> {
        self.merge_patch_of(&Kind::of::<T>(), key, patch).await
    }

    /// The same for a kind known only at run time.
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn merge_patch_of<T: AnyObject>(
        &self,
        kind: &Kind,
        key: &Key,
        patch: &Value,
    ) -> Result<Arc<T>> {
        self.patch_part(None, "patch", (kind, key), &Patch::Merge(patch)).await
    }

    /// JSON merge patch of the status of any object.
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn merge_patch_status<T: Object>(&self, key: &Key, patch: &Value) -> Result<Arc<T>> {
        let patch = Patch::Merge(patch);
        self.patch_part(Some("status"), "status", (&Kind::of::<T>(), key), &patch).await
    }

    /// Wants so many replicas of an object that can be scaled, of whatever kind it is, as
    /// `kubectl scale` and autoscalers do; says whether that changed anything.
    ///
    /// # Errors
    /// What the API says; that there is no such object, or that its kind has no scale, too.
    pub async fn scale(&self, kind: &Kind, key: &Key, replicas: i32) -> Result<Change> {
        let patch = json!({ "spec": { "replicas": replicas } });
        let (cached, answer) =
            self.send_patch(Some("scale"), (kind, key), &Patch::Merge(patch)).await?;
        let scale: Scale = answer.decode(kind, key)?;
        let change = change(cached.as_deref(), scale.metadata.resource_version.as_deref());
        // The answer is no object of that kind: there is nothing to compare the old one with.
        self.note_write("scale", kind, key, change);
        self.expect_version(kind, key, &scale.metadata);
        Ok(change)
    }

    pub(super) async fn patch_part<T: AnyObject>(
        &self,
        part: Option<&str>,
        verb: &'static str,
        (kind, key): (&Kind, &Key),
        patch: &Patch<impl Serialize + Debug>,
    ) -> Result<Arc<T>> {
        let (cached, answer) = self.send_patch(part, (kind, key), patch).await?;
        let patched: Arc<T> = Arc::new(answer.decode(kind, key)?);
        let change = change(cached.as_deref(), patched.meta().resource_version.as_deref());
        let before = cached.as_ref().map(|entry| entry.json());
        let before = before.as_deref().map(str::as_bytes);
        self.note_change(verb, (kind, key), change, before, &answer.body);
        self.expect_version(kind, key, patched.meta());
        // The primary's next write is guarded by the version that this one made.
        if *key == self.run.key && kind == self.kind() {
            let same = (patched.clone() as Arc<dyn Any + Send + Sync>).downcast::<K>();
            // Written as another type: whole, where the reconcile knows the metadata alone.
            let same = same.ok().or_else(|| answer.decode(kind, key).map(Arc::new).ok());
            same.into_iter().for_each(|primary| self.set_primary(primary));
        }
        Ok(patched)
    }

    /// The object as the cache had it before, and what the API answered.
    async fn send_patch(
        &self,
        part: Option<&str>,
        (kind, key): (&Kind, &Key),
        patch: &Patch<impl Serialize + Debug>,
    ) -> Result<(Option<Arc<Entry>>, Answer)> {
        let path = request::to(kind, key.namespace());
        let params =
            PatchParams { field_manager: Some(self.controller().to_owned()), ..Default::default() };
        let request = match part {
            Some(part) => path.patch_subresource(part, key.name(), &params, patch),
            None => path.patch(key.name(), &params, patch),
        };
        // Looked at before the write: its event may come before its answer.
        let cached = self.cache_of(kind, key, Part::Whole).and_then(|all| all.entry(key));
        Ok((cached, self.send(request).await?))
    }
}

/// A write that changes nothing makes no new version.
fn change(cached: Option<&Entry>, written: Option<&str>) -> Change {
    let before = cached.map(|entry| &*entry.header.resource_version);
    if before.is_some() && before == written { Change::Unchanged } else { Change::Changed }
}
