//! The smallest controller: a ConfigMap `welcome` in every Namespace, put back when it is removed.

use std::sync::Arc;

use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Manager, Outcome, Result};

/// One pass of the loop for one Namespace.
pub(crate) async fn reconcile(space: Arc<Namespace>, ctx: Context<Namespace>) -> Result<Outcome> {
    if space.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::Done); // nothing can be made in it any more
    }
    let mut welcome = ConfigMap::default();
    welcome.metadata.name = Some("welcome".to_owned());
    welcome.metadata.namespace = Some(space.name_any());
    welcome.data = Some([("to".to_owned(), space.name_any())].into());
    ctx.apply(welcome).await?; // owned by the Namespace, and left alone when nothing would change
    Ok(Outcome::Done) // the ConfigMap's events wake us
}

#[tokio::main]
async fn main() -> Result<()> {
    Manager::from_env().await?.with(Controller::new(reconcile).owns::<ConfigMap>()).run().await
}
