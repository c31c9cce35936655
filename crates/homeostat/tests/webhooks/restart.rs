//! When the server begins to answer: before the API needs it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use homeostat::kube::api::{Api, DeleteParams};
use homeostat::kube::core::ApiResource;
use homeostat::kube::{CustomResource, CustomResourceExt, ResourceExt};
use homeostat::webhook::{CONVERT_PATH, Certificate, Conversion, Webhooks};
use homeostat::{Context, Controller, Manager, Outcome};
use homeostat_testing::object;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::on_the_wire;

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "again.homeostat.dev", version = "v1", kind = "Plank", namespaced)]
struct InWords {
    length: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "again.homeostat.dev", version = "v2", kind = "Plank", root = "Board", namespaced)]
struct InNumbers {
    centimetres: u32,
}

/// The definition of both versions, with the address of the only test that installs it.
struct Installed;

static CLIENT_CONFIG: OnceLock<serde_json::Value> = OnceLock::new();

impl CustomResourceExt for Installed {
    fn crd() -> CustomResourceDefinition {
        let version = |name: &str| {
            json!({ "name": name, "served": true, "storage": name == "v1", "schema": {
                "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true } } })
        };
        object(json!({ "metadata": { "name": Self::crd_name() }, "spec": {
            "group": "again.homeostat.dev", "scope": "Namespaced",
            "names": { "plural": "planks", "singular": "plank", "kind": "Plank" },
            "versions": [version("v1"), version("v2")],
            "conversion": { "strategy": "Webhook", "webhook": {
                "clientConfig": CLIENT_CONFIG.get().unwrap(), "conversionReviewVersions": ["v1"],
            } },
        } }))
    }

    fn crd_name() -> &'static str {
        Plank::crd_name()
    }

    fn api_resource() -> ApiResource {
        Plank::api_resource()
    }

    fn shortnames() -> &'static [&'static str] {
        &[]
    }
}

#[test]
fn a_manager_that_installs_and_converts_a_kind_starts_again_with_objects_of_the_old_version() {
    use base64::Engine as _;

    on_the_wire(async |cluster| {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let bundle = base64::engine::general_purpose::STANDARD.encode(&certificate);
        let url = format!("https://{address}{CONVERT_PATH}");
        CLIENT_CONFIG.set(json!({ "url": url, "caBundle": bundle })).unwrap();
        let start = async || {
            let conversion = Conversion::<Board>::new().version(
                |old: &Plank| {
                    let centimetres =
                        old.spec.length.parse().map_err(homeostat::Error::terminal)?;
                    Ok(Board::new(&old.name_any(), InNumbers { centimetres }))
                },
                |new: &Board| {
                    let length = new.spec.centimetres.to_string();
                    Ok(Plank::new(&new.name_any(), InWords { length }))
                },
            );
            let webhooks = Webhooks::new(address, Certificate::pem(&*certificate, &*key));
            let look = |_: Arc<Board>, _: Context<Board>| async { Ok(Outcome::Done) };
            let controller = Controller::new(look).namespace(&cluster.namespace);
            let manager = Manager::new(cluster.client.clone(), cluster.env.clone());
            let manager = manager.with_crd::<Installed>().webhooks(webhooks.converts(conversion));
            let started = Box::pin(manager.with(controller).start());
            let running = cluster.env.timeout(Duration::from_secs(40), started).await.unwrap();
            running.unwrap()
        };
        let first = start().await;
        cluster.create(&Plank::new("a", InWords { length: "7".to_owned() })).await;
        cluster.runs(&first.journal(), 1).await;
        first.stop().await.unwrap();
        let second = start().await;
        cluster.runs(&second.journal(), 1).await;
        second.stop().await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        definitions.delete(Plank::crd_name(), &DeleteParams::default()).await.unwrap();
    });
}
