//! Definitions of custom resources: installed, served, used.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use homeostat::kube::CustomResource;
use homeostat::kube::api::{Api, DeleteParams};
use homeostat::{Context, Controller, Manager, Outcome, Result, condition, crd};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::{endings, idle, on_cluster};
use crate::faults::{Fault, faulty, is};

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

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "runtime.homeostat.dev", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {}

async fn measure(gadget: Arc<Gadget>, context: Context<Gadget>) -> Result<Outcome> {
    let ready = condition::ready("Measured", format!("size {}", gadget.spec.size));
    context.status(GadgetStatus { conditions: vec![ready] }).await?;
    Ok(Outcome::Done)
}

#[test]
fn a_watch_that_breaks_before_a_definition_is_established_ends_no_start() {
    on_cluster(async |cluster| {
        let broken = Arc::new(AtomicUsize::new(0));
        let count = broken.clone();
        let name = "widgets.runtime.homeostat.dev";
        let client = faulty(&cluster.client, move |request| {
            let watches = is(request, "GET", "/customresourcedefinitions")
                && request.uri().query().is_some_and(|query| query.contains("watch"));
            (watches && count.fetch_add(1, Ordering::SeqCst) < 2).then_some(Fault::Break)
        });
        let controller = Controller::new(idle::<Widget>).namespace(&cluster.namespace);
        let manager = Manager::new(client, cluster.env.clone());
        let running = manager.with_crd::<Widget>().with(controller).start().await.unwrap();
        assert!(broken.load(Ordering::SeqCst) > 0, "there was nothing to wait for");
        assert!(running.pending().is_empty(), "{:?}", running.pending());
        running.stop().await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        definitions.delete(name, &DeleteParams::default()).await.unwrap();
    });
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
