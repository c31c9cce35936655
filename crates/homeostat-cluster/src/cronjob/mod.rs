//! CronJobs: make a Job whenever one is due, and forget old ones.
//!
//! [`schedule`] knows the times, [`plan`] decides; both are pure. A Job's name says when it was due,
//! so a reconcile that ended before it wrote the status makes the same Job again, not a second one.

mod plan;
mod schedule;

use std::sync::Arc;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, EventType, Key, Kind, Outcome, Result};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use serde_json::Map;

use crate::write;

/// The controller.
pub(crate) fn controller() -> Controller<CronJob> {
    Controller::new(reconcile).named("cronjob-controller").owns::<Job>()
}

async fn reconcile(cron: Arc<CronJob>, ctx: Context<CronJob>) -> Result<Outcome> {
    if cron.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::Done);
    }
    let jobs = ctx.owned::<Job>().await?;
    let refs: Vec<&Job> = jobs.iter().map(AsRef::as_ref).collect();
    let plan = plan::plan(&cron, &refs, ctx.now());
    for (kind, reason, note) in &plan.events {
        ctx.event(*kind, reason, note.clone());
    }
    for job in plan.forget.iter().chain(&plan.replace) {
        let uid = job.uid().unwrap_or_default();
        let key = Key::of(*job);
        write::delete(ctx.client(), &Kind::of::<Job>(), &key, &uid, "Background").await?;
        ctx.event(EventType::Normal, "SuccessfulDelete", format!("Deleted job {}", job.name_any()));
    }
    let mut status = plan.status;
    if let Some(due) = plan.start {
        let job = ctx.create(plan::job(&cron, due)).await.inspect_err(|error| {
            ctx.event(EventType::Warning, "FailedCreate", format!("Error creating job: {error}"));
        })?;
        ctx.event(EventType::Normal, "SuccessfulCreate", format!("Created job {}", job.name_any()));
        status = plan::started(status, &job, due);
    }
    write::status(&ctx, cron.as_ref(), cron.status.as_ref(), &status, Map::new()).await?;
    Ok(plan.wake.map_or(Outcome::Done, Outcome::RequeueAt))
}
