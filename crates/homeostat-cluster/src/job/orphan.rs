//! Frees Pods that still carry the tracking finalizer of a Job that is gone.

use std::sync::Arc;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Error, Kind, Outcome, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use super::{TRACKING, remove_tracking};
use crate::{claim, write};

/// The controller.
pub(crate) fn controller() -> Controller<Pod> {
    Controller::new(reconcile).named("job-pod-tracking").reads::<Job>()
}

async fn reconcile(pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Outcome> {
    if !pod.finalizers().iter().any(|name| name == TRACKING) {
        return Ok(Outcome::Done);
    }
    // While the Job is there it does its own counting; a Pod that nobody counts is only freed when
    // it is on its way out.
    let controller = claim::controller_of(&pod.metadata);
    if pod.metadata.deletion_timestamp.is_none() && controller.is_some() {
        return Ok(Outcome::Done);
    }
    if let Some(owner) = controller {
        let key = ctx.key().beside(&owner.name);
        let cached = ctx.get::<Job>(&key).await?;
        if cached.is_some_and(|job| job.uid().as_ref() == Some(&owner.uid)) {
            return Ok(Outcome::Done);
        }
        // The cache may be behind: only the API knows that the Job is gone.
        let live = write::read(ctx.client(), &Kind::of::<Job>(), &key).await?;
        let uid = live.as_ref().and_then(|job| job.pointer("/metadata/uid")?.as_str());
        if uid == Some(owner.uid.as_str()) {
            return Err(Error::Stale(format!("Job {key} is there but not in the cache")));
        }
    }
    remove_tracking(ctx.client(), &pod).await?;
    Ok(Outcome::Done)
}
