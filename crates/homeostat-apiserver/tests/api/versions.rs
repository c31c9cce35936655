//! Definitions with several versions.

use http_body_util::BodyExt as _;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::client::Body;
use serde_json::{Value, json};

use super::{client, cluster_api, create};

const DEFINITIONS: &str = "apiextensions.k8s.io";

fn version(name: &str, storage: bool, spec: &Value) -> Value {
    json!({
        "name": name,
        "served": true,
        "storage": storage,
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": spec}},
        }},
    })
}

fn definition(versions: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gizmos.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "gizmos", "kind": "Gizmo"},
            "versions": versions,
        },
    })
}

fn old() -> Value {
    let mut version = version(
        "v1beta1",
        false,
        &json!({"color": {"type": "string"}, "shade": {"type": "string"}}),
    );
    version["deprecated"] = true.into();
    version["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    version
}

fn new() -> Value {
    version("v1", true, &json!({"color": {"type": "string"}, "depth": {"type": "integer"}}))
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> (http::HeaderMap, Value) {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(bytes))
        .unwrap();
    let (parts, body) = client.send(request).await.unwrap().into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.headers, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

fn gizmo(version: &str, spec: &Value) -> Value {
    let api_version = format!("example.com/{version}");
    json!({"apiVersion": api_version, "kind": "Gizmo", "metadata": {"name": "a"}, "spec": spec})
}

async fn define(client: &Client, versions: &[Value]) {
    create(&cluster_api(client, DEFINITIONS, "CustomResourceDefinition"), definition(versions))
        .await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_written_in_the_storage_version_and_read_in_any() {
    let client = client();
    define(&client, &[new(), old()]).await;
    let made = gizmo("v1beta1", &json!({"color": "red", "shade": "dark"}));
    let (_, made) = send(&client, "POST", "/apis/example.com/v1beta1/gizmos", &made).await;
    // The stored version knows no shades.
    assert_eq!(made["spec"], json!({"color": "red"}));
    assert_eq!(made["apiVersion"], "example.com/v1beta1");
    let (_, read) = send(&client, "GET", "/apis/example.com/v1/gizmos/a", &Value::Null).await;
    assert_eq!(
        (&read["apiVersion"], &read["spec"]["color"]),
        (&json!("example.com/v1"), &json!("red"))
    );
}

#[tokio::test(start_paused = true)]
async fn users_of_a_deprecated_version_are_warned() {
    let client = client();
    define(&client, &[new(), old()]).await;
    let (headers, _) = send(&client, "GET", "/apis/example.com/v1beta1/gizmos", &Value::Null).await;
    assert_eq!(headers["warning"], "299 - \"example.com/v1beta1 Gizmo is deprecated\"");
    let (headers, _) = send(&client, "GET", "/apis/example.com/v1/gizmos", &Value::Null).await;
    assert!(!headers.contains_key("warning"));
}

#[tokio::test(start_paused = true)]
async fn every_version_selects_by_its_own_fields() {
    let client = client();
    define(&client, &[new(), old()]).await;
    let path = "/apis/example.com/v1/gizmos";
    send(&client, "POST", path, &gizmo("v1", &json!({"color": "red"}))).await;
    let by = |color: &str| {
        format!("/apis/example.com/v1beta1/gizmos?fieldSelector=spec.color%3D{color}")
    };
    let (_, found) = send(&client, "GET", &by("red"), &Value::Null).await;
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
    let (_, found) = send(&client, "GET", &by("blue"), &Value::Null).await;
    assert_eq!(found["items"], json!([]));
    let (_, refused) =
        send(&client, "GET", &format!("{path}?fieldSelector=spec.color%3Dred"), &Value::Null).await;
    assert_eq!(refused["code"], 400);
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_older_than_a_default_show_it() {
    let client = client();
    define(&client, &[new(), old()]).await;
    let path = "/apis/example.com/v1/gizmos";
    send(&client, "POST", path, &gizmo("v1", &json!({"color": "red"}))).await;
    let mut changed = new();
    changed["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["depth"]["default"] =
        3.into();
    let patch = Patch::Merge(json!({"spec": {"versions": [changed, old()]}}));
    let definitions = cluster_api(&client, DEFINITIONS, "CustomResourceDefinition");
    definitions.patch("gizmos.example.com", &PatchParams::default(), &patch).await.unwrap();
    let (_, read) = send(&client, "GET", &format!("{path}/a"), &Value::Null).await;
    assert_eq!(read["spec"], json!({"color": "red", "depth": 3}));
}

#[tokio::test(start_paused = true)]
async fn a_new_storage_version_is_remembered_beside_the_old_one() {
    let client = client();
    define(&client, &[new(), old()]).await;
    let (mut was, mut is) = (new(), old());
    was["storage"] = false.into();
    is["storage"] = true.into();
    let patch = Patch::Merge(json!({"spec": {"versions": [was, is]}}));
    let definitions = cluster_api(&client, DEFINITIONS, "CustomResourceDefinition");
    let name = "gizmos.example.com";
    let after = definitions.patch(name, &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(after.data["status"]["storedVersions"], json!(["v1", "v1beta1"]));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_the_definition() {
    let client = client();
    define(&client, &[new()]).await;
    send(&client, "POST", "/apis/example.com/v1/gizmos", &gizmo("v1", &json!({}))).await;
    let watching = {
        let client = client.clone();
        tokio::spawn(async move {
            let path = "/apis/example.com/v1/gizmos?watch=true";
            let request = http::Request::get(path).body(Body::empty()).unwrap();
            let body = client.send(request).await.unwrap().into_body();
            let bytes = body.collect().await.unwrap().to_bytes();
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    tokio::task::yield_now().await;
    let definitions = cluster_api(&client, DEFINITIONS, "CustomResourceDefinition");
    definitions.delete("gizmos.example.com", &DeleteParams::default()).await.unwrap();
    let seen = watching.await.unwrap();
    let words: Vec<Value> = seen
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone())
        .collect();
    assert_eq!(words, [json!("ADDED"), json!("DELETED")]);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_a_stricter_schema_may_stay_until_it_is_touched() {
    let client = client();
    define(&client, &[new()]).await;
    let path = "/apis/example.com/v1/gizmos";
    send(&client, "POST", path, &gizmo("v1", &json!({"color": "turquoise", "depth": 1}))).await;
    let mut stricter = new();
    stricter["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"]["maxLength"] =
        4.into();
    let patch = Patch::Merge(json!({"spec": {"versions": [stricter]}}));
    let definitions = cluster_api(&client, DEFINITIONS, "CustomResourceDefinition");
    definitions.patch("gizmos.example.com", &PatchParams::default(), &patch).await.unwrap();
    let (_, mut live) = send(&client, "GET", &format!("{path}/a"), &Value::Null).await;
    live["spec"]["depth"] = 2.into();
    let (_, mut live) = send(&client, "PUT", &format!("{path}/a"), &live).await;
    assert_eq!(live["spec"]["depth"], 2, "{live}");
    live["spec"]["color"] = "ultramarine".into();
    let (_, refused) = send(&client, "PUT", &format!("{path}/a"), &live).await;
    assert_eq!(refused["code"], 422, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_objects_are_stored_under_cannot_change() {
    let client = client();
    define(&client, &[new()]).await;
    let definitions = cluster_api(&client, DEFINITIONS, "CustomResourceDefinition");
    for change in [json!({"scope": "Namespaced"}), json!({"names": {"kind": "Other"}})] {
        let patch = Patch::Merge(json!({"spec": change}));
        let name = "gizmos.example.com";
        let refused = definitions.patch(name, &PatchParams::default(), &patch).await;
        let Err(kube::Error::Api(status)) = refused else { panic!("{refused:?}") };
        assert!(status.message.ends_with("field is immutable"), "{}", status.message);
    }
}
