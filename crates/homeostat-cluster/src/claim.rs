//! Which objects a controller counts as its own: by controller reference and by selector.
//!
//! Adopts orphans that match, releases what no longer matches, leaves others' objects alone.

use std::sync::Arc;

use homeostat::kube::Resource;
use homeostat::{Context, Error, Key, Object, Result};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use serde_json::json;

use crate::selector;

/// What is to be done with one object. Pure result of [`decide`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Ours, and it matches.
    Keep,
    /// Nobody's, and it matches.
    Adopt,
    /// Ours, but it does not match any more.
    Release,
    /// None of our business.
    Ignore,
}

/// Whose the object is: the one owner that manages it.
pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Decides about `object` for the owner of that uid.
pub(crate) fn decide(
    object: &impl Resource,
    owner_uid: &str,
    owner_is_deleting: bool,
    selector: &LabelSelector,
) -> Claim {
    let meta = object.meta();
    let controller = controller_of(meta);
    let matches =
        !selector::is_empty(selector) && selector::matches(selector, meta.labels.as_ref());
    match controller {
        Some(reference) if reference.uid == owner_uid && matches => Claim::Keep,
        Some(reference) if reference.uid == owner_uid => Claim::Release,
        None if matches && !owner_is_deleting && meta.deletion_timestamp.is_none() => Claim::Adopt,
        _ => Claim::Ignore,
    }
}

/// As [`claim`], of Pods that get a finalizer with their owner: it must not be said of any of them
/// that it is ours and not tracked.
pub(crate) async fn claim_tracked<K: Object>(
    owner: &K,
    ctx: &Context<K>,
    selector: &LabelSelector,
    finalizer: &str,
) -> Result<Vec<Arc<Pod>>> {
    claim_with(owner, ctx, selector, |_: &Pod| true, Some(finalizer)).await
}

/// Everything of kind `T` in the namespace that belongs to the primary after adoption and release.
/// Adoption skips objects for which `adoptable` says no.
pub(crate) async fn claim<K: Object, T: Object>(
    owner: &K,
    ctx: &Context<K>,
    selector: &LabelSelector,
    adoptable: impl Fn(&T) -> bool,
) -> Result<Vec<Arc<T>>> {
    claim_with(owner, ctx, selector, adoptable, None).await
}

async fn claim_with<K: Object, T: Object>(
    owner: &K,
    ctx: &Context<K>,
    selector: &LabelSelector,
    adoptable: impl Fn(&T) -> bool,
    finalizer: Option<&str>,
) -> Result<Vec<Arc<T>>> {
    let meta = owner.meta();
    let uid = meta.uid.as_deref().unwrap_or_default();
    let mut mine = Vec::new();
    for object in ctx.list::<T>().await? {
        match decide(object.as_ref(), uid, meta.deletion_timestamp.is_some(), selector) {
            Claim::Keep => mine.push(object),
            Claim::Adopt if adoptable(&object) => {
                if let Some(adopted) = adopt(owner, ctx, object.as_ref(), finalizer).await? {
                    mine.push(adopted);
                }
            }
            Claim::Release => release(ctx, object.as_ref(), uid).await?,
            Claim::Adopt | Claim::Ignore => {}
        }
    }
    Ok(mine)
}

async fn adopt<K: Object, T: Object>(
    owner: &K,
    ctx: &Context<K>,
    object: &T,
    finalizer: Option<&str>,
) -> Result<Option<Arc<T>>> {
    let Some(mut reference) = owner.controller_owner_ref(&()) else { return Ok(None) };
    reference.block_owner_deletion = Some(true);
    let mut references = object.meta().owner_references.clone().unwrap_or_default();
    references.push(reference);
    let mut finalizers = object.meta().finalizers.clone().unwrap_or_default();
    let is_new = |name: &&str| finalizers.iter().all(|known| known != name);
    finalizers.extend(finalizer.filter(is_new).map(str::to_owned));
    set_references(ctx, object, references, finalizers).await
}

async fn release<K: Object, T: Object>(ctx: &Context<K>, object: &T, uid: &str) -> Result<()> {
    let mut references = object.meta().owner_references.clone().unwrap_or_default();
    references.retain(|reference| reference.uid != uid);
    let finalizers = object.meta().finalizers.clone().unwrap_or_default();
    set_references(ctx, object, references, finalizers).await.map(drop)
}

/// Replaces the owner references and finalizers of exactly this version of the object.
async fn set_references<K: Object, T: Object>(
    ctx: &Context<K>,
    object: &T,
    references: Vec<OwnerReference>,
    finalizers: Vec<String>,
) -> Result<Option<Arc<T>>> {
    let meta = object.meta();
    let patch = json!({"metadata": {
        "uid": meta.uid, "resourceVersion": meta.resource_version,
        "ownerReferences": references, "finalizers": finalizers,
    }});
    match ctx.merge_patch::<T>(&Key::of(object), &patch).await {
        Ok(object) => Ok(Some(object)),
        Err(Error::Api(homeostat::kube::Error::Api(status))) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(meta: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({ "metadata": meta })).unwrap()
    }

    #[test]
    fn ownership_is_decided_by_uid_and_selector() {
        let selector: LabelSelector =
            serde_json::from_value(json!({"matchLabels": {"app": "web"}})).unwrap();
        let owned_by = |uid: &str| {
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid,
                "controller": true}])
        };
        let say = |meta: serde_json::Value| decide(&pod(&meta), "me", false, &selector);
        assert_eq!(
            say(json!({"labels": {"app": "web"}, "ownerReferences": owned_by("me")})),
            Claim::Keep
        );
        assert_eq!(
            say(json!({"labels": {"app": "x"}, "ownerReferences": owned_by("me")})),
            Claim::Release
        );
        assert_eq!(
            say(json!({"labels": {"app": "web"}, "ownerReferences": owned_by("other")})),
            Claim::Ignore
        );
        assert_eq!(say(json!({"labels": {"app": "web"}})), Claim::Adopt);
        assert_eq!(say(json!({"labels": {"app": "x"}})), Claim::Ignore);
        assert_eq!(
            decide(&pod(&json!({"labels": {"app": "web"}})), "me", true, &selector),
            Claim::Ignore
        );
    }
}
