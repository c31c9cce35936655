//! VolumeAttributesClasses: one that a volume or a claim still names stays until none does.

use std::sync::Arc;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Key, Kind, Outcome, Result};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use serde_json::json;

use crate::write;

const PROTECTION: &str = "kubernetes.io/vac-protection";

/// The controller.
pub(crate) fn controller() -> Controller<VolumeAttributesClass> {
    Controller::new(reconcile)
        .named("volume-attributes-class-protection")
        .watches::<PersistentVolumeClaim>(|claim| keys(&named_by_claim(claim)))
        .watches::<PersistentVolume>(|volume| keys(&named_by_volume(volume)))
}

fn keys(names: &[String]) -> Vec<Key> {
    names.iter().map(|name| Key::cluster(name.as_str())).collect()
}

async fn reconcile(
    class: Arc<VolumeAttributesClass>,
    ctx: Context<VolumeAttributesClass>,
) -> Result<Outcome> {
    let is_protected = class.finalizers().iter().any(|name| name == PROTECTION);
    if class.metadata.deletion_timestamp.is_none() || !is_protected {
        return Ok(Outcome::Done);
    }
    let name = class.name_any();
    let claims = ctx.list_in::<PersistentVolumeClaim>(None, "").await?;
    let volumes = ctx.list_in::<PersistentVolume>(None, "").await?;
    let in_use = claims.iter().any(|claim| named_by_claim(claim).contains(&name))
        || volumes.iter().any(|volume| named_by_volume(volume).contains(&name));
    if !in_use {
        let rest: Vec<_> = class.finalizers().iter().filter(|name| *name != PROTECTION).collect();
        let patch = json!({"metadata": {"uid": class.uid(),
            "resourceVersion": class.resource_version(), "finalizers": rest}});
        let kind = Kind::of::<VolumeAttributesClass>();
        write::patch(ctx.client(), &kind, ctx.key(), None, &patch).await?;
    }
    Ok(Outcome::Done)
}

/// The classes a claim asks for, has, or is on its way to.
fn named_by_claim(claim: &PersistentVolumeClaim) -> Vec<String> {
    let wanted = claim.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.clone());
    let status = claim.status.as_ref();
    let current = status.and_then(|status| status.current_volume_attributes_class_name.clone());
    let target = status
        .and_then(|status| status.modify_volume_status.as_ref())
        .and_then(|modify| modify.target_volume_attributes_class_name.clone());
    [wanted, current, target].into_iter().flatten().collect()
}

fn named_by_volume(volume: &PersistentVolume) -> Vec<String> {
    let spec = volume.spec.as_ref();
    spec.and_then(|spec| spec.volume_attributes_class_name.clone()).into_iter().collect()
}
