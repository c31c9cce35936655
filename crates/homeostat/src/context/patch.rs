//! Writes of parts of objects: patches of every form, subresources, scale. Each one is journaled,
//! and later reads of the same key wait for it.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::api::autoscaling::v1::Scale;
use kube::api::{Patch, PatchParams};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::barrier::Part;
use super::request::Answer;
use super::{Change, Context, request};
use crate::cache::{Entry, Expect};
use crate::error::{Error, Result};
use crate::key::{Key, NameOrKey};
use crate::kind::{AnyObject, Kind, Object};

impl<K: AnyObject> Context<K> {
    /// Patches an object: JSON patch, merge patch, strategic merge patch, or apply (without force).
    /// The cache catches up before the next read. What a controller makes is better applied with
    /// [`Self::apply`]; this is for fields of objects that are somebody else's.
    ///
    /// ```
    /// use homeostat::kube::api::Patch;
    /// use homeostat::{Context, Result};
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use serde_json::json;
    ///
    /// /// Lists are merged by the keys of their elements: the other containers stay.
    /// async fn add_sidecar(context: &Context<ConfigMap>) -> Result<()> {
    ///     let sidecar = json!({ "name": "log", "image": "busybox", "command": ["sleep", "inf"] });
    ///     let spec = json!({ "template": { "spec": { "containers": [sidecar] } } });
    ///     let patch = Patch::Strategic(json!({ "spec": spec }));
    ///     context.patch::<Deployment>("web", &patch).await?; // beside the primary
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// What the API says; that there is no such object too.
    pub async fn patch<T: Object>(
        &self,
        object: impl NameOrKey,
        patch: &Patch<Value>,
    ) -> Result<Arc<T>> {
        let kind = Kind::of::<T>();
        self.patch_of(&kind, &self.key_meant(&kind, &object), patch).await
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
        object: impl NameOrKey,
        patch: &Patch<Value>,
    ) -> Result<Arc<T>> {
        let kind = Kind::of::<T>();
        self.patch_subresource_of(part, &kind, &self.key_meant(&kind, &object), patch).await
    }

    /// The same for a kind known only at run time.
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn patch_subresource_of<T: AnyObject>(
        &self,
        part: &'static str,
        kind: &Kind,
        key: &Key,
        patch: &Patch<Value>,
    ) -> Result<Arc<T>> {
        self.patch_part(Some(part), part, (kind, key), patch).await
    }

    /// JSON merge patch of an object: [`Self::patch`] with the form that is wanted most.
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn merge_patch<T: Object>(
        &self,
        object: impl NameOrKey,
        patch: &Value,
    ) -> Result<Arc<T>> {
        let kind = Kind::of::<T>();
        self.merge_patch_of(&kind, &self.key_meant(&kind, &object), patch).await
    }

    /// JSON merge patch of the primary itself.
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn merge_patch_primary(&self, patch: &Value) -> Result<Arc<K>> {
        self.patch_part(None, "patch", (self.kind(), self.key()), &Patch::Merge(patch)).await
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
    pub async fn merge_patch_status<T: Object>(
        &self,
        object: impl NameOrKey,
        patch: &Value,
    ) -> Result<Arc<T>> {
        let kind = Kind::of::<T>();
        self.merge_patch_status_of(&kind, &self.key_meant(&kind, &object), patch).await
    }

    /// The same for a kind known only at run time.
    ///
    /// # Errors
    /// As [`Self::patch`].
    pub async fn merge_patch_status_of<T: AnyObject>(
        &self,
        kind: &Kind,
        key: &Key,
        patch: &Value,
    ) -> Result<Arc<T>> {
        self.patch_part(Some("status"), "status", (kind, key), &Patch::Merge(patch)).await
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
        // The answer is no object of that kind: it is the one that was known, with so many replicas.
        let place = (kind.clone(), key.clone());
        let known = self.known(&place);
        let known = known.or_else(|| cached.as_ref().map(|it| it.json().into_owned().into()));
        let after = known.and_then(|known: Bytes| scaled(&known, &scale));
        let revision = scale.metadata.resource_version.as_deref();
        let object = (kind, key);
        let change =
            self.note_written("scale", object, cached.as_deref(), revision, after.as_ref());
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
        self.wrote(verb, (kind, key), cached.as_deref(), &answer)
    }

    /// Takes note of a write to an object that was there, which the API has answered with the object.
    pub(super) fn wrote<T: AnyObject>(
        &self,
        verb: &'static str,
        (kind, key): (&Kind, &Key),
        cached: Option<&Entry>,
        answer: &Answer,
    ) -> Result<Arc<T>> {
        let written: Arc<T> = Arc::new(answer.decode(kind, key)?);
        let meta = written.meta();
        let revision = meta.resource_version.as_deref();
        self.note_written(verb, (kind, key), cached, revision, Some(&answer.body));
        let is_held = meta.finalizers.as_ref().is_some_and(|all| !all.is_empty())
            || meta.deletion_grace_period_seconds.unwrap_or_default() != 0
            || (meta.deletion_timestamp.is_some() && is_held_by_spec(&answer.body));
        if meta.deletion_timestamp.is_some() && !is_held {
            // The last finalizer went, and the object with it.
            self.expect_end(kind, key, meta.uid.as_deref(), Expect::Deleted);
        } else {
            self.expect_version(kind, key, meta);
        }
        // The primary's next write is guarded by the version that this one made.
        if *key == self.run.key && kind == self.kind() {
            if meta.uid != self.primary().meta().uid {
                return Err(Error::Stale(format!("{kind} {key} is another of that name now")));
            }
            let same = (written.clone() as Arc<dyn Any + Send + Sync>).downcast::<K>();
            // Written as another type: whole, where the reconcile knows the metadata alone.
            let same = same.ok().or_else(|| answer.decode(kind, key).map(Arc::new).ok());
            same.into_iter().for_each(|primary| self.set_primary(primary));
        }
        Ok(written)
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
        if cached.is_none() {
            self.look_if_restless(kind, key).await;
        }
        Ok((cached, self.send(request).await?))
    }
}

/// Whether the object has finalizers in its spec, as namespaces have.
fn is_held_by_spec(object: &[u8]) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Held {
        spec: Spec,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Spec {
        finalizers: Vec<IgnoredAny>,
    }
    // What has another form there is held by nothing.
    serde_json::from_slice::<Held>(object).is_ok_and(|held| !held.spec.finalizers.is_empty())
}

/// The object after it was scaled. `None` where its kind keeps the replicas in another field, which a
/// scale does not name.
fn scaled(object: &[u8], scale: &Scale) -> Option<Bytes> {
    let mut object: Value = serde_json::from_slice(object).ok()?;
    let replicas = object.pointer_mut("/spec/replicas")?;
    *replicas = scale.spec.as_ref()?.replicas.unwrap_or_default().into();
    object["metadata"]["resourceVersion"] = scale.metadata.resource_version.as_deref()?.into();
    serde_json::to_vec(&object).ok().map(Bytes::from)
}
