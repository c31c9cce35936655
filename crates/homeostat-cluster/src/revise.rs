//! Carries out the step that a workload's history of templates has to take.

use homeostat::{Context, Error, Key, Object, Result};
use k8s_openapi::api::apps::v1::ControllerRevision;
use serde_json::json;

use crate::history::{Revisions, Step, Versioned};

/// What became of the history.
pub(crate) enum Revised {
    /// The revision of the current template is its head.
    Current(Revisions),
    /// Another template has the same hash; the workload must count that and start over.
    Collided,
}

/// Makes the revision of the current template, or moves it to the head of the history.
pub(crate) async fn revise<W: Versioned + Object>(
    workload: &W,
    ctx: &Context<W>,
    mut revisions: Revisions,
) -> Result<Revised> {
    match revisions.step(workload) {
        Step::Keep => {}
        Step::Move { name, number } => {
            let key = Key { name: name.into(), ..ctx.key().clone() };
            revisions.set_update(ctx.merge_patch(&key, &json!({ "revision": number })).await?);
        }
        Step::Create(desired) => {
            let data = desired.data.clone();
            match ctx.create(*desired).await {
                Ok(created) if created.data == data => revisions.set_update(created),
                Ok(_) | Err(Error::NotOurs { .. }) => return Ok(Revised::Collided),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(Revised::Current(revisions))
}

/// The revisions that the workload owns.
pub(crate) async fn history<W: Versioned + Object>(
    workload: &W,
    ctx: &Context<W>,
) -> Result<Revisions> {
    Ok(Revisions::sort(ctx.owned::<ControllerRevision>().await?, workload))
}
