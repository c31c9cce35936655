//! PersistentVolumeClaims: find or make a volume, bind, and protect a claim that Pods still use.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Error, EventType, Key, Kind, Outcome, Result};
use k8s_openapi::api::core::v1::{
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus, Pod,
};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Map, json};

use super::{DEFAULT_CLASS, PROVISIONER, matching};
use crate::write;

const PROTECTION: &str = "kubernetes.io/pvc-protection";

/// The claims that wait for a class or a volume to appear.
type Waiting = Arc<Mutex<BTreeSet<Key>>>;

/// The controller; local volumes are made under `root`.
pub(crate) fn controller(root: PathBuf) -> Controller<PersistentVolumeClaim> {
    let (waiting, root) = (Waiting::default(), Arc::new(root));
    let (by_class, by_volume) = (Arc::clone(&waiting), Arc::clone(&waiting));
    let all = |waiting: &Waiting| -> Vec<Key> {
        waiting.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    };
    Controller::new(move |claim, ctx| {
        reconcile(claim, ctx, Arc::clone(&waiting), Arc::clone(&root))
    })
    .named("persistent-volume-binder")
    .watches::<StorageClass>(move |_| all(&by_class))
    .watches::<PersistentVolume>(move |volume| {
        let reference = volume.spec.as_ref().and_then(|s| s.claim_ref.as_ref());
        let claimed = reference
            .and_then(|r| Some(Key::namespaced(r.namespace.as_deref()?, r.name.as_deref()?)));
        claimed.map_or_else(|| all(&by_volume), |key| vec![key])
    })
    .watches::<Pod>(|pod| {
        let volumes = pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
        let claims = volumes.filter_map(|v| Some(&v.persistent_volume_claim.as_ref()?.claim_name));
        let namespace = pod.namespace().unwrap_or_default();
        claims.map(|name| Key::namespaced(namespace.as_str(), name.as_str())).collect()
    })
}

async fn reconcile(
    claim: Arc<PersistentVolumeClaim>,
    ctx: Context<PersistentVolumeClaim>,
    waiting: Waiting,
    root: Arc<PathBuf>,
) -> Result<Outcome> {
    let wait = |is_waiting: bool| {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if is_waiting { waiting.insert(ctx.key().clone()) } else { waiting.remove(ctx.key()) }
    };
    if claim.metadata.deletion_timestamp.is_some() {
        wait(false);
        return unprotect(&claim, &ctx).await;
    }
    let Some(spec) = &claim.spec else { return Ok(Outcome::Done) };
    // Noted before looking: what appears in between wakes this claim again.
    wait(true);
    let volumes = ctx.list_in::<PersistentVolume>(None, "").await?;
    let found = match spec.volume_name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => volumes.iter().find(|v| v.name_any() == name).map(AsRef::as_ref),
        None => matching::find(&claim, volumes.iter().map(AsRef::as_ref)),
    };
    if let Some(volume) = found {
        wait(false);
        bind(&claim, &ctx, volume).await?;
        return Ok(Outcome::Done);
    }
    if spec.volume_name.as_deref().is_some_and(|name| !name.is_empty()) {
        return Ok(Outcome::Done);
    }
    let classes = ctx.list_in::<StorageClass>(None, "").await?;
    let Some(name) = &spec.storage_class_name else {
        let default = classes.iter().find(|class| {
            class.annotations().get(DEFAULT_CLASS).is_some_and(|value| value == "true")
        });
        if let Some(class) = default {
            let patch = json!({"spec": {"storageClassName": class.name_any()}});
            ctx.merge_patch::<PersistentVolumeClaim>(ctx.key(), &patch).await?;
        }
        return Ok(Outcome::Done);
    };
    match classes.iter().find(|class| class.name_any() == *name) {
        Some(class) if class.provisioner == PROVISIONER => {
            let volume = matching::provision(&claim, class, &root);
            let made = tokio::fs::create_dir_all(root.join(volume.name_any())).await;
            made.map_err(Error::transient)?;
            // One that is there already was made, and told, before: the cache is behind.
            if write::create(ctx.client(), None, &volume).await?.is_some() {
                let note = format!("Successfully provisioned volume {}", volume.name_any());
                ctx.event(EventType::Normal, "ProvisioningSucceeded", note);
            }
        }
        None if !name.is_empty() => {
            let note = format!("storageclass.storage.k8s.io \"{name}\" not found");
            ctx.event(EventType::Warning, "ProvisioningFailed", note);
        }
        // Another provisioner's class, or a claim that wants no class: somebody else's work.
        Some(_) | None => {}
    }
    Ok(Outcome::Done)
}

/// Ties claim and volume to each other; each step is repeated until both sides show it.
async fn bind(
    claim: &PersistentVolumeClaim,
    ctx: &Context<PersistentVolumeClaim>,
    volume: &PersistentVolume,
) -> Result<()> {
    let reference = volume.spec.as_ref().and_then(|s| s.claim_ref.as_ref());
    if reference.is_some() && !matching::is_reserved_for(volume, claim) {
        let text = format!("volume {} is already bound to another claim", volume.name_any());
        return Err(Error::terminal(text));
    }
    if reference.and_then(|r| r.uid.as_ref()) != claim.metadata.uid.as_ref() {
        let patch = json!({"metadata": {"uid": volume.uid(), "resourceVersion": volume.resource_version()},
            "spec": {"claimRef": matching::reference(claim)}});
        ctx.merge_patch::<PersistentVolume>(&Key::of(volume), &patch).await?;
    }
    let name = volume.name_any();
    if claim.spec.as_ref().and_then(|s| s.volume_name.as_ref()) != Some(&name) {
        let patch = json!({
            "metadata": {"uid": claim.uid(), "annotations": {
                "pv.kubernetes.io/bind-completed": "yes",
                "pv.kubernetes.io/bound-by-controller": "yes",
            }},
            "spec": {"volumeName": name},
        });
        ctx.merge_patch::<PersistentVolumeClaim>(ctx.key(), &patch).await?;
    }
    let offer = volume.spec.clone().unwrap_or_default();
    let status = PersistentVolumeClaimStatus {
        phase: Some("Bound".into()),
        access_modes: offer.access_modes,
        capacity: offer.capacity,
        ..claim.status.clone().unwrap_or_default()
    };
    write::status(ctx, claim, claim.status.as_ref(), &status, Map::new()).await?;
    Ok(())
}

/// Lets a deleted claim go once no Pod uses it.
async fn unprotect(
    claim: &PersistentVolumeClaim,
    ctx: &Context<PersistentVolumeClaim>,
) -> Result<Outcome> {
    if !claim.finalizers().iter().any(|name| name == PROTECTION) {
        return Ok(Outcome::Done);
    }
    let name = claim.name_any();
    // A Pod that is on no node yet will not start with a claim that goes; one that is counts until
    // it is deleted, whether it has ended or not.
    let uses = |pod: &Pod| {
        let spec = pod.spec.iter().filter(|spec| spec.node_name.is_some());
        let volumes = spec.flat_map(|spec| spec.volumes.iter().flatten());
        let mut claims = volumes.filter_map(|v| v.persistent_volume_claim.as_ref());
        claims.any(|c| c.claim_name == name)
    };
    if ctx.list::<Pod>().await?.iter().any(|pod| uses(pod)) {
        return Ok(Outcome::Done);
    }
    let rest: Vec<_> = claim.finalizers().iter().filter(|name| *name != PROTECTION).collect();
    let patch = json!({"metadata": {"uid": claim.uid(),
        "resourceVersion": claim.resource_version(), "finalizers": rest}});
    let kind = Kind::of::<PersistentVolumeClaim>();
    write::patch(ctx.client(), &kind, ctx.key(), None, &patch).await?;
    Ok(Outcome::Done)
}
