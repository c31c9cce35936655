//! The claims of a StatefulSet's Pods: made before the Pod is, and kept with the right owner.

use homeostat::kube::ResourceExt;
use homeostat::{Context, Error, EventType, Key, Result};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::json;

use super::plan::Observed;
use super::{ordinal, retention};
use crate::{pod, write};

/// Makes the claims that this Pod lacks. `false` if it has to wait for one that is on its way out;
/// its end wakes the set.
pub(super) async fn make(
    set: &StatefulSet,
    ctx: &Context<StatefulSet>,
    pod: &Pod,
    number: i32,
) -> Result<bool> {
    for claim in ordinal::claims(set, number) {
        match ctx.get::<PersistentVolumeClaim>(&claim.name_any()).await? {
            Some(known) if retention::is_going(pod, &known) => return Ok(false),
            Some(_) => {}
            None => create(set, ctx, pod, &claim).await?,
        }
    }
    Ok(true)
}

async fn create(
    set: &StatefulSet,
    ctx: &Context<StatefulSet>,
    pod: &Pod,
    claim: &PersistentVolumeClaim,
) -> Result<()> {
    let (owner, pod, name) = (set.name_any(), pod.name_any(), claim.name_any());
    let created = write::create(ctx.client(), set.namespace().as_deref(), claim).await;
    let created = created.inspect_err(|error| {
        let note = format!(
            "Create Claim {name} for Pod {pod} in StatefulSet {owner} failed error: {error}"
        );
        ctx.event(EventType::Warning, "FailedCreate", note);
    })?;
    if created.is_some() {
        let note = format!("Create Claim {name} Pod {pod} in StatefulSet {owner} success");
        ctx.event(EventType::Normal, "SuccessfulCreate", note);
    }
    Ok(())
}

/// Gives the claims of all Pods the owners that the retention policy asks for, and makes again what a
/// Pod that has not started waits for.
pub(super) async fn keep(observed: &Observed<'_>, ctx: &Context<StatefulSet>) -> Result<()> {
    let set = observed.set;
    for pod in observed.pods {
        let Some(number) = ordinal::of(set, pod) else { continue };
        let is_wanted = observed.wanted().contains(&number);
        if is_wanted && pod::is_active(pod) && pod::phase(pod) == "Pending" {
            make(set, ctx, pod, number).await?;
        }
        for claim in ordinal::claims(set, number) {
            let Some(claim) = ctx.get::<PersistentVolumeClaim>(&claim.name_any()).await? else {
                continue;
            };
            if let Some(owners) = retention::owners(set, pod, is_wanted, &claim) {
                own(ctx, &claim, &json!(owners)).await?;
            }
        }
    }
    Ok(())
}

/// Replaces the owners of exactly this version of the claim; one that is gone needs none.
async fn own(
    ctx: &Context<StatefulSet>,
    claim: &PersistentVolumeClaim,
    owners: &serde_json::Value,
) -> Result<()> {
    let patch = json!({"metadata": {"uid": claim.uid(),
        "resourceVersion": claim.resource_version(), "ownerReferences": owners}});
    match ctx.merge_patch::<PersistentVolumeClaim>(&Key::of(claim), &patch).await {
        Err(Error::Api(homeostat::kube::Error::Api(status))) if status.code == 404 => Ok(()),
        written => written.map(drop),
    }
}
