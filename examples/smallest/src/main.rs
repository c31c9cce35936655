//! The smallest controller: a ConfigMap `welcome` in every Namespace, put back when it is removed.

use std::sync::Arc;

use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use homeostat::kube::ResourceExt;
use homeostat::{Change, Context, Controller, Manager, Outcome, Result};

/// One pass of the loop for one Namespace.
pub(crate) async fn reconcile(space: Arc<Namespace>, ctx: Context<Namespace>) -> Result<Outcome> {
    if space.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::Done); // nothing can be made in it any more
    }
    let mut welcome = ConfigMap::default();
    welcome.metadata.name = Some("welcome".to_owned());
    welcome.metadata.namespace = Some(space.name_any());
    welcome.data = Some([("to".to_owned(), space.name_any())].into());
    let welcome = ctx.apply(welcome).await?; // owned by the Namespace; no write when it is so already
    if welcome.change != Change::Unchanged {
        tracing::info!("{} the ConfigMap welcome in {}", welcome.change, space.name_any());
    }
    Ok(Outcome::Done) // the ConfigMap's events wake us
}

#[tokio::main]
async fn main() -> Result<()> {
    homeostat::take_no_arguments!();
    homeostat::log::to_stderr();
    tracing::info!("every Namespace gets a ConfigMap: `kubectl get configmap welcome` shows one,");
    tracing::info!("`kubectl delete configmap welcome` has it made anew");
    Manager::from_env().await?.with(Controller::new(reconcile).owns::<ConfigMap>()).run().await
}
