//! PersistentVolumes: their phase, and what becomes of them when their claim is gone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Error, Key, Kind, Outcome, Result};
use k8s_openapi::api::core::v1::{
    ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeStatus,
};
use serde_json::{Map, json};

use super::{PROVISIONED_BY, PROVISIONER};
use crate::write;

const PROTECTION: &str = "kubernetes.io/pv-protection";

/// The controller; only directories under `root` are ever removed.
pub(crate) fn controller(root: PathBuf) -> Controller<PersistentVolume> {
    let root = Arc::new(root);
    Controller::new(move |volume, ctx| reconcile(volume, ctx, Arc::clone(&root)))
        .named("persistent-volume-reclaimer")
        .watches::<PersistentVolumeClaim>(|claim| {
            let bound = claim.spec.as_ref().and_then(|s| s.volume_name.clone());
            // A claim that goes before it was bound: the volume was named after it.
            let made = claim.uid().map(|uid| format!("pvc-{uid}"));
            bound.into_iter().chain(made).map(Key::cluster).collect()
        })
}

async fn reconcile(
    volume: Arc<PersistentVolume>,
    ctx: Context<PersistentVolume>,
    root: Arc<PathBuf>,
) -> Result<Outcome> {
    let Some(spec) = &volume.spec else { return Ok(Outcome::Done) };
    let is_bound = match &spec.claim_ref {
        Some(reference) => claim_is_there(&ctx, reference).await?,
        None => false,
    };
    if volume.metadata.deletion_timestamp.is_some() {
        return if is_bound { Ok(Outcome::Done) } else { unprotect(&volume, &ctx).await };
    }
    let phase = match (&spec.claim_ref, is_bound) {
        (None, _) => "Available",
        (Some(reference), false) if reference.uid.is_none() => "Available",
        (Some(_), true) => "Bound",
        (Some(_), false) => "Released",
    };
    let old = volume.status.clone().unwrap_or_default();
    if old.phase.as_deref() != Some(phase) {
        let since = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(ctx.now());
        let new = PersistentVolumeStatus {
            phase: Some(phase.into()),
            last_phase_transition_time: Some(since),
            ..old
        };
        write::status(&ctx, volume.as_ref(), volume.status.as_ref(), &new, Map::new()).await?;
    }
    let policy = spec.persistent_volume_reclaim_policy.as_deref();
    if phase == "Released" && policy == Some("Delete") {
        reclaim(&volume, &ctx, &root).await?;
    }
    Ok(Outcome::Done)
}

/// Whether the claim a volume is reserved for exists. The cache may be behind, so an absent claim
/// is absent only when the API says so.
async fn claim_is_there(
    ctx: &Context<PersistentVolume>,
    reference: &ObjectReference,
) -> Result<bool> {
    let (Some(namespace), Some(name)) = (&reference.namespace, &reference.name) else {
        return Ok(false);
    };
    let key = Key::namespaced(namespace.as_str(), name.as_str());
    let is_it = |claim: &PersistentVolumeClaim| {
        reference.uid.is_none() || claim.metadata.uid == reference.uid
    };
    if ctx.get::<PersistentVolumeClaim>(&key).await?.is_some_and(|claim| is_it(&claim)) {
        return Ok(true);
    }
    let live = ctx.get_live::<PersistentVolumeClaim>(&key).await?;
    Ok(live.is_some_and(|claim| is_it(&claim)))
}

/// Removes the data and the volume. Foreign volumes are left to whoever made them.
async fn reclaim(
    volume: &PersistentVolume,
    ctx: &Context<PersistentVolume>,
    root: &Path,
) -> Result<()> {
    let ours = volume.annotations().get(PROVISIONED_BY).is_some_and(|by| by == PROVISIONER);
    if !ours {
        return Ok(());
    }
    let path = volume.spec.as_ref().and_then(|s| s.host_path.as_ref()).map(|host| &host.path);
    let expected = root.join(volume.name_any());
    if path.is_some_and(|path| Path::new(path) == expected) {
        match tokio::fs::remove_dir_all(&expected).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::transient(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    ctx.delete(volume).await
}

async fn unprotect(volume: &PersistentVolume, ctx: &Context<PersistentVolume>) -> Result<Outcome> {
    if volume.finalizers().iter().any(|name| name == PROTECTION) {
        let rest: Vec<_> = volume.finalizers().iter().filter(|name| *name != PROTECTION).collect();
        let patch = json!({"metadata": {"uid": volume.uid(),
            "resourceVersion": volume.resource_version(), "finalizers": rest}});
        let kind = Kind::of::<PersistentVolume>();
        write::patch(ctx.client(), &kind, ctx.key(), None, &patch).await?;
    }
    Ok(Outcome::Done)
}
