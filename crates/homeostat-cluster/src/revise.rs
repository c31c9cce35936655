//! Carries out the step that a workload's history of templates has to take.

use homeostat::{Context, Error, Object, Result};
use k8s_openapi::api::apps::v1::ControllerRevision;
use serde_json::{Map, Value, json};

use crate::history::{Revisions, Step, Versioned};
use crate::write;

/// The history, with the revision of the current template made or moved to its head; `None` when
/// another template has the same hash: that was counted, and the reconcile has to start over.
pub(crate) async fn revise<W: Versioned + Object>(
    workload: &W,
    ctx: &Context<W>,
    mut revisions: Revisions,
) -> Result<Option<Revisions>> {
    match revisions.step(workload) {
        Step::Keep => {}
        Step::Move { name, number } => {
            let key = ctx.key().beside(name);
            revisions.set_update(ctx.merge_patch(&key, &json!({ "revision": number })).await?);
        }
        Step::Create(desired) => {
            let data = desired.data.clone();
            match ctx.create(*desired).await {
                Ok(created) if created.data == data => revisions.set_update(created),
                Ok(_) | Err(Error::NotOurs { .. }) => {
                    let collisions = workload.collisions().unwrap_or(0) + 1;
                    let status = json!({ "collisionCount": collisions });
                    write::status(ctx, workload, None::<&Value>, &status, Map::new()).await?;
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(Some(revisions))
}

/// The revisions that the workload owns.
pub(crate) async fn history<W: Versioned + Object>(
    workload: &W,
    ctx: &Context<W>,
) -> Result<Revisions> {
    Ok(Revisions::sort(ctx.owned::<ControllerRevision>().await?, workload))
}
