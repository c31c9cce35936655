//! Questions and answers without a wire.

use base64::Engine as _;
use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Answer, CONVERT_PATH, Certificate, Conversion, Operation, Review, Webhooks, mutate_path,
};
use crate::error::{Error, Result};

/// A certificate for the local host, and its key.
pub(super) fn made() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// A client that is not asked.
pub(super) fn nobody() -> kube::Client {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(crate::error::BoxError::from("nobody"))
    });
    kube::Client::new(service, "default")
}

fn webhooks() -> Webhooks {
    Webhooks::new(([127, 0, 0, 1], 0), Certificate::pem("", ""))
}

async fn ask(webhooks: Webhooks, path: &str, question: &Value) -> Result<Value> {
    let site = webhooks.site()?;
    site[path](Bytes::from(question.to_string())).await
}

fn question(operation: &str, object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "7", "operation": operation, "name": "a", "namespace": "b", "dryRun": true,
            "userInfo": { "username": "ann", "groups": ["dev"] },
            "object": object, "oldObject": null,
        },
    })
}

fn config() -> Value {
    json!({ "metadata": { "name": "a" }, "data": { "k": "v" }, "notOfThisType": { "kept": true } })
}

#[tokio::test]
async fn a_change_touches_only_what_the_handler_changed() {
    async fn label(review: Review<ConfigMap>) -> Result<Answer> {
        assert_eq!(
            (review.operation, &*review.user, review.dry_run),
            (Operation::Create, "ann", true)
        );
        let mut config = review.object.unwrap();
        config.metadata.labels = Some([("by".to_owned(), review.groups[0].clone())].into());
        Ok(Answer::change(&config)?.warn("labelled"))
    }
    let path = mutate_path::<ConfigMap>();
    assert_eq!(path, "/mutate--v1-configmap");
    let answer =
        ask(webhooks().mutates(label), &path, &question("CREATE", &config())).await.unwrap();
    let response = &answer["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("7"), &json!(true)));
    assert_eq!(response["warnings"], json!(["labelled"]));
    let patch =
        base64::engine::general_purpose::STANDARD.decode(response["patch"].as_str().unwrap());
    let patch: json_patch::Patch = serde_json::from_slice(&patch.unwrap()).unwrap();
    let mut changed = config();
    json_patch::patch(&mut changed, &patch).unwrap();
    let mut wanted = config();
    wanted["metadata"]["labels"] = json!({ "by": "dev" });
    assert_eq!(changed, wanted);
}

mod defaulted {
    use super::{CustomResource, Deserialize, JsonSchema, Serialize};

    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "test.homeostat.dev", version = "v1", kind = "Gate", namespaced)]
    pub(super) struct GateSpec {
        #[serde(default)]
        pub(super) lock: Lock,
        #[serde(default)]
        pub(super) keys: Vec<Key>,
    }

    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    pub(super) struct Lock {
        #[serde(default)]
        pub(super) shut: bool,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub(super) struct Key {
        pub(super) of: String,
    }
}

#[tokio::test]
async fn a_change_in_a_field_that_the_object_left_out_can_be_applied() {
    use defaulted::{Gate, Key};

    async fn shut(review: Review<Gate>) -> Result<Answer> {
        let mut gate = review.object.unwrap();
        gate.spec.lock.shut = true;
        gate.spec.keys.insert(0, Key { of: "cid".to_owned() });
        gate.spec.keys.retain(|key| key.of != "bob");
        Answer::change(&gate)
    }
    let keys = json!([{ "of": "ann", "colour": "red" }, { "of": "bob", "colour": "blue" }]);
    let new_keys = json!([{ "of": "cid" }, { "of": "ann", "colour": "red" }]);
    for (spec, wanted) in [
        (json!({}), json!({ "lock": { "shut": true }, "keys": [{ "of": "cid" }] })),
        (
            json!({ "lock": { "brass": 1 }, "keys": keys, "high": true }),
            json!({ "lock": { "brass": 1, "shut": true }, "keys": new_keys, "high": true }),
        ),
    ] {
        let gate = |spec: Value| json!({ "metadata": { "name": "a" }, "spec": spec });
        let question = question("CREATE", &gate(spec.clone()));
        let site = webhooks().mutates(shut);
        let answer = ask(site, &mutate_path::<Gate>(), &question).await.unwrap();
        let patch = answer["response"]["patch"].as_str().unwrap();
        let patch = base64::engine::general_purpose::STANDARD.decode(patch).unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        let mut changed = gate(spec);
        json_patch::patch(&mut changed, &patch).unwrap();
        assert_eq!(changed, gate(wanted));
    }
}

#[tokio::test]
async fn no_change_is_no_patch_and_a_deletion_is_not_asked_about() {
    async fn same(review: Review<ConfigMap>) -> Result<Answer> {
        Answer::change(&review.object.unwrap())
    }
    let path = mutate_path::<ConfigMap>();
    for question in [question("UPDATE", &config()), question("DELETE", &Value::Null)] {
        let answer = ask(webhooks().mutates(same), &path, &question).await.unwrap();
        assert_eq!(answer["response"], json!({ "uid": "7", "allowed": true }));
    }
}

#[tokio::test]
async fn a_denial_says_why_and_a_validator_cannot_change() {
    async fn never(_: Review<ConfigMap>) -> Result<Answer> {
        Ok(Answer::deny("not today"))
    }
    async fn sneaky(review: Review<ConfigMap>) -> Result<Answer> {
        Answer::change(&review.object.unwrap())
    }
    let (path, question) = (super::validate_path::<ConfigMap>(), question("CREATE", &config()));
    let answer = ask(webhooks().validates(never), &path, &question).await.unwrap();
    assert_eq!(answer["response"]["allowed"], json!(false));
    assert_eq!(answer["response"]["status"]["message"], json!("not today"));
    assert!(ask(webhooks().validates(sneaky), &path, &question).await.is_err());
}

#[test]
fn two_at_one_path_are_refused() {
    async fn never(_: Review<ConfigMap>) -> Result<Answer> {
        Ok(Answer::deny("not today"))
    }
    let error = webhooks().validates(never).validates(never).site().err().unwrap();
    assert!(error.to_string().contains("/validate--v1-configmap"), "{error}");
}

#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "test.homeostat.dev", version = "v1", kind = "Door", namespaced)]
struct OldSpec {
    open: bool,
}

mod v2 {
    use super::{CustomResource, Deserialize, JsonSchema, Serialize};

    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "test.homeostat.dev", version = "v2", kind = "Door", namespaced)]
    pub(super) struct NewSpec {
        pub(super) angle: i32,
    }
}

#[tokio::test]
async fn versions_are_converted_through_the_hub_and_metadata_is_kept() {
    let conversion = Conversion::<v2::Door>::new().version(
        |old: &Door| {
            Ok(v2::Door::new("", v2::NewSpec { angle: if old.spec.open { 90 } else { 0 } }))
        },
        |new: &v2::Door| match new.spec.angle {
            0 | 90 => Ok(Door::new("", OldSpec { open: new.spec.angle > 0 })),
            other => Err(Error::terminal(format!("{other} degrees are neither open nor shut"))),
        },
    );
    let review = |to: &str, object: Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": { "uid": "9", "desiredAPIVersion": to, "objects": [object] },
        })
    };
    let metadata = json!({ "name": "front", "labels": { "a": "b" }, "uid": "1" });
    let door = |version: &str, spec: Value| {
        let api_version = format!("test.homeostat.dev/{version}");
        json!({ "apiVersion": api_version, "kind": "Door", "metadata": metadata, "spec": spec })
    };
    let site = || webhooks().converts(conversion.clone());
    let (one, two) = ("test.homeostat.dev/v1", "test.homeostat.dev/v2");
    let up = review(two, door("v1", json!({ "open": true })));
    let answer = ask(site(), CONVERT_PATH, &up).await.unwrap();
    assert_eq!(answer["response"]["uid"], json!("9"));
    assert_eq!(answer["response"]["result"]["status"], json!("Success"));
    let wanted = door("v2", json!({ "angle": 90 }));
    assert_eq!(answer["response"]["convertedObjects"], json!([wanted]));
    let down = review(one, door("v2", json!({ "angle": 45 })));
    let answer = ask(site(), CONVERT_PATH, &down).await.unwrap();
    assert_eq!(answer["response"]["result"]["status"], json!("Failure"));
    let message = answer["response"]["result"]["message"].as_str().unwrap();
    assert!(message.contains("45 degrees"), "{message}");
}
