//! Definitions of custom resources: installed, served, used.

use std::sync::Arc;

use homeostat::kube::CustomResource;
use homeostat::kube::api::{Api, DeleteParams};
use homeostat::{Context, Controller, Outcome, Result, condition, crd};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::{endings, on_cluster};

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "runtime.homeostat.dev", version = "v1", kind = "Gadget", namespaced)]
#[kube(status = "GadgetStatus")]
struct GadgetSpec {
    size: i64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct GadgetStatus {
    #[serde(default)]
    conditions: Vec<condition::Condition>,
}

async fn measure(gadget: Arc<Gadget>, context: Context<Gadget>) -> Result<Outcome> {
    let ready = condition::ready("Measured", format!("size {}", gadget.spec.size));
    context.status(GadgetStatus { conditions: vec![ready] }).await?;
    Ok(Outcome::Done)
}

#[test]
fn a_definition_is_installed_before_its_controller_starts_and_installing_it_again_is_fine() {
    on_cluster(async |cluster| {
        let controller = Controller::new(measure).namespace(&cluster.namespace);
        let manager = cluster.manager().with_crd::<Gadget>().with(controller);
        let running = manager.start().await.unwrap();
        assert!(running.pending().is_empty(), "{:?}", running.pending());
        crd::install::<Gadget>(&cluster.client).await.unwrap();
        cluster.create(&Gadget::new("a", GadgetSpec { size: 3 })).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records)[0], "done");
        let status = cluster.api::<Gadget>().get("a").await.unwrap().status.unwrap();
        assert_eq!(status.conditions[0].message, "size 3");
        running.stop().await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        let name = "gadgets.runtime.homeostat.dev";
        definitions.delete(name, &DeleteParams::default()).await.unwrap();
    });
}
