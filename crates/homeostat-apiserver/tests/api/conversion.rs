//! Definitions whose versions a webhook converts.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use homeostat_apiserver::{
    Server, ServerConfig, WebhookAddress, WebhookAnswer, WebhookConnector, WebhookReply,
};
use homeostat_env::Env;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::converter;

/// The webhook in this process; remembers what it was asked.
#[derive(Debug, Default)]
struct Hook {
    asked: Mutex<Vec<Value>>,
    /// Nothing is answered while somebody holds it.
    held: Arc<tokio::sync::Mutex<()>>,
}

impl WebhookConnector for Hook {
    fn post(&self, address: WebhookAddress, body: Bytes) -> BoxFuture<'static, WebhookReply> {
        let review: Value = serde_json::from_slice(&body).unwrap();
        let path = address.path.split('?').next().unwrap().to_owned();
        let (code, text) = converter::reply(&path, &review);
        self.asked.lock().unwrap().push(review);
        let held = Arc::clone(&self.held);
        async move {
            let _answering = held.lock().await;
            Ok(WebhookAnswer::json(code, text))
        }
        .boxed()
    }
}

fn version(name: &str, storage: bool, color: &str) -> Value {
    let part = json!({"type": "object", "properties": {
        color: {"type": "string"}, "replicas": {"type": "integer"}}});
    json!({
        "name": name, "served": true, "storage": storage,
        "selectableFields": [{"jsonPath": format!(".spec.{color}")}],
        "subresources": {"status": {}, "scale": {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
        "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": part, "status": part},
        }},
    })
}

fn definition(url: &str, ca: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gizmos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "gizmos", "kind": "Gizmo"},
            "versions": [version("v1", true, "color"), version("v1beta1", false, "colour")],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": {"url": url, "caBundle": ca}, "conversionReviewVersions": ["v1"],
            }},
        },
    })
}

struct World {
    client: Client,
    hook: Arc<Hook>,
}

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OLD: &str = "/apis/example.com/v1beta1/gizmos";
const NEW: &str = "/apis/example.com/v1/gizmos";

impl World {
    /// A server with a definition whose webhook is in this process.
    async fn new() -> Self {
        let server = Server::new(ServerConfig::new(Env::simulated(1, Timestamp::UNIX_EPOCH)));
        let hook = Arc::new(Hook::default());
        server.connect_webhooks(hook.clone());
        let world = Self { client: Client::new(server, "default"), hook };
        let (code, made) =
            world.send("POST", DEFINITION, definition("https://127.0.0.1:1/ok", "")).await;
        assert_eq!(code, 201, "{made}");
        world
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let media = match method {
            "PATCH" if path.contains("fieldManager=") => "application/apply-patch+yaml",
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", media).body(Body::from(bytes)).unwrap();
        let (parts, body) = self.client.send(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status.as_u16(), serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    async fn get(&self, path: &str) -> Value {
        self.send("GET", path, Value::Null).await.1
    }

    async fn get_text(&self, path: &str) -> String {
        let request = http::Request::get(path).body(Body::empty()).unwrap();
        let body = self.client.send(request).await.unwrap().into_body();
        String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    /// From now on the webhook answers as at this path.
    async fn misbehave(&self, path: &str) {
        let url = format!("https://127.0.0.1:1{path}");
        let patch = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"url": url}}}}});
        let path = format!("{DEFINITION}/gizmos.example.com");
        let (code, after) = self.send("PATCH", &path, patch).await;
        assert_eq!(code, 200, "{after}");
    }

    fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut self.hook.asked.lock().unwrap())
    }
}

fn old(name: &str, colour: &str) -> Value {
    json!({"apiVersion": "example.com/v1beta1", "kind": "Gizmo", "metadata": {"name": name},
        "spec": {"colour": colour, "replicas": 1}})
}

#[tokio::test(start_paused = true)]
async fn what_one_version_writes_the_other_reads_in_its_own_words() {
    let world = World::new().await;
    let (code, made) = world.send("POST", OLD, old("a", "red")).await;
    assert_eq!((code, &made["spec"]["colour"]), (201, &json!("red")), "{made}");
    let read = world.get(&format!("{NEW}/a")).await;
    assert_eq!(read["spec"], json!({"color": "red", "replicas": 1}));
    assert_eq!(read["metadata"]["uid"], made["metadata"]["uid"]);
    let change = json!({"spec": {"color": "blue"}});
    world.send("PATCH", &format!("{NEW}/a"), change).await;
    let read = world.get(&format!("{OLD}/a")).await;
    assert_eq!(
        (&read["spec"]["colour"], &read["metadata"]["generation"]),
        (&json!("blue"), &json!(2))
    );
    let change = json!({"spec": {"colour": "green"}});
    let (_, patched) = world.send("PATCH", &format!("{OLD}/a"), change).await;
    assert_eq!(patched["spec"]["colour"], "green");
    let listed = world.get(OLD).await;
    assert_eq!(listed["items"][0]["spec"]["colour"], "green");
    let (code, gone) = world.send("DELETE", &format!("{OLD}/a"), Value::Null).await;
    assert_eq!((code, &gone["status"]), (200, &json!("Success")));
}

#[tokio::test(start_paused = true)]
async fn the_status_and_the_scale_speak_the_version_they_are_asked_in() {
    let world = World::new().await;
    let (_, mut made) = world.send("POST", OLD, old("a", "red")).await;
    made["status"] = json!({"colour": "grey", "replicas": 3});
    let (code, after) = world.send("PUT", &format!("{OLD}/a/status"), made).await;
    assert_eq!((code, &after["status"]["colour"]), (200, &json!("grey")), "{after}");
    assert_eq!(world.get(&format!("{NEW}/a")).await["status"]["color"], "grey");
    let change = json!({"spec": {"replicas": 5}});
    let (code, scale) = world.send("PATCH", &format!("{OLD}/a/scale"), change).await;
    assert_eq!(
        (code, &scale["spec"]["replicas"], &scale["status"]["replicas"]),
        (200, &json!(5), &json!(3))
    );
    assert_eq!(world.get(&format!("{OLD}/a/scale")).await["spec"]["replicas"], 5);
}

#[tokio::test(start_paused = true)]
async fn a_list_asks_once_about_everything_that_is_stored_otherwise() {
    let world = World::new().await;
    for (name, colour) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        world.send("POST", OLD, old(name, colour)).await;
    }
    world.asked();
    let listed = world.get(NEW).await;
    assert_eq!((listed["items"].as_array().unwrap().len(), world.asked().len()), (3, 0));
    let listed = world.get(OLD).await;
    assert_eq!(listed["items"][1]["spec"]["colour"], "blue");
    let asked = world.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["request"]["objects"].as_array().unwrap().len(), 3);
    assert_eq!(asked[0]["request"]["desiredAPIVersion"], "example.com/v1beta1");
    let red = world.get(&format!("{OLD}?fieldSelector=spec.colour%3Dred&limit=1")).await;
    assert_eq!(red["items"].as_array().unwrap().len(), 1);
    let rest = red["metadata"]["continue"].as_str().unwrap();
    let rest = world.get(&format!("{OLD}?fieldSelector=spec.colour%3Dred&continue={rest}")).await;
    assert_eq!(rest["items"][0]["metadata"]["name"], "c");
    let (code, _) =
        world.send("DELETE", &format!("{OLD}?fieldSelector=spec.colour%3Dred"), Value::Null).await;
    assert_eq!((code, world.get(NEW).await["items"].as_array().unwrap().len()), (200, 1));
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_of_changes_in_its_own_version() {
    let world = World::new().await;
    world.send("POST", OLD, old("a", "red")).await;
    world.send("POST", OLD, old("b", "blue")).await;
    let path = format!("{OLD}?watch=true&timeoutSeconds=5&fieldSelector=spec.colour%3Dred");
    let request = http::Request::get(&path).body(Body::empty()).unwrap();
    let mut body = world.client.send(request).await.unwrap().into_body();
    let change = |color: &str| json!({"spec": {"color": color}});
    world.send("PATCH", &format!("{NEW}/b"), change("red")).await;
    world.send("PATCH", &format!("{NEW}/a"), change("green")).await;
    let mut text = String::new();
    while let Some(Ok(frame)) = body.frame().await {
        text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<(&str, &str, &str)> = events
        .iter()
        .map(|event| {
            let text = |pointer: &str| event.pointer(pointer).unwrap().as_str().unwrap();
            (text("/type"), text("/object/metadata/name"), text("/object/spec/colour"))
        })
        .collect();
    assert_eq!(told, [("ADDED", "a", "red"), ("ADDED", "b", "red"), ("DELETED", "a", "red")]);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_asked_once_about_a_change_however_many_watch() {
    let world = World::new().await;
    world.send("POST", OLD, old("a", "red")).await;
    let mut bodies = Vec::new();
    for accept in ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"].repeat(5) {
        let path = format!("{OLD}?watch=true&timeoutSeconds=5&resourceVersion=0");
        let request = http::Request::get(&path).header("accept", accept);
        let response = world.client.send(request.body(Body::empty()).unwrap()).await.unwrap();
        bodies.push(response.into_body());
    }
    world.send("PATCH", &format!("{NEW}/a"), json!({"spec": {"color": "blue"}})).await;
    // What the lists and the write needed to know.
    world.asked();
    let texts = futures::future::join_all(bodies.into_iter().map(|body| body.collect())).await;
    for text in texts {
        let text = String::from_utf8(text.unwrap().to_bytes().to_vec()).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(last["type"], "MODIFIED");
        if last["object"]["kind"] == "Gizmo" {
            assert_eq!(last["object"]["spec"]["colour"], "blue");
        }
    }
    assert_eq!(world.asked().len(), 1);
    // Another webhook may see things differently.
    world.misbehave("/labels").await;
    world.asked();
    let path = format!("{OLD}?watch=true&timeoutSeconds=5&resourceVersion=1");
    let text = world.get_text(&path).await;
    assert!(text.lines().last().unwrap().contains(r#"{"by":"webhook"}"#), "{text}");
    assert_eq!(world.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_may_change_labels_and_annotations_and_nothing_else_of_the_metadata() {
    let world = World::new().await;
    world.send("POST", OLD, old("a", "red")).await;
    world.misbehave("/labels").await;
    let read = world.get(&format!("{OLD}/a")).await;
    assert_eq!(read["metadata"]["labels"], json!({"by": "webhook"}));
    assert_eq!(read["metadata"]["annotations"], json!({"by": "webhook"}));
    assert_eq!(read["metadata"].get("finalizers"), None);
    let selected = world.get(&format!("{OLD}?labelSelector=by%3Dwebhook")).await;
    assert_eq!(selected["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_used_is_an_error_in_the_words_of_kube_apiserver() {
    let world = World::new().await;
    world.send("POST", OLD, old("a", "red")).await;
    let cases = [
        ("/fails", " failed: no way"),
        ("/no-objects", " returned 0 objects, expected 1"),
        ("/not-found", " failed: the server could not find the requested resource"),
        ("/another-name", " returned invalid object: must have the same name: a != other"),
    ];
    for (path, words) in cases {
        world.misbehave(path).await;
        let (code, refused) = world.send("GET", &format!("{OLD}/a"), Value::Null).await;
        assert_eq!(code, 500);
        let message = format!("conversion webhook for example.com/v1, Kind=Gizmo{words}");
        assert_eq!(refused["message"], json!(message));
        assert_eq!(refused.get("reason"), None);
        // Nothing is written that could not be stored.
        let (code, _) = world.send("POST", OLD, old("b", "red")).await;
        assert_eq!(code, 500);
        let (code, refused) = world.send("GET", OLD, Value::Null).await;
        assert_eq!(code, 429, "{refused}");
        assert_eq!(world.get(NEW).await["items"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_goes_although_its_webhook_does_not_answer() {
    let world = World::new().await;
    world.send("POST", OLD, old("a", "red")).await;
    let path = format!("{DEFINITION}/gizmos.example.com");
    let patch = json!({"spec": {"versions": [
        version("v1", false, "color"), version("v1beta1", true, "colour")]}});
    world.send("PATCH", &path, patch).await;
    world.send("POST", OLD, old("b", "red")).await;
    world.misbehave("/fails").await;
    assert_eq!(world.send("DELETE", &path, Value::Null).await.0, 200);
    assert_eq!(world.send("GET", &path, Value::Null).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_moves_an_object_to_the_new_storage_version() {
    let world = World::new().await;
    world.send("POST", OLD, old("a", "red")).await;
    let patch = json!({"spec": {"versions": [
        version("v1", false, "color"), version("v1beta1", true, "colour")]}});
    world.send("PATCH", &format!("{DEFINITION}/gizmos.example.com"), patch).await;
    let before = world.get(&format!("{OLD}/a")).await;
    world.asked();
    let (code, after) = world.send("PUT", &format!("{OLD}/a"), before.clone()).await;
    assert_eq!(code, 200);
    assert_ne!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    world.asked();
    world.get(&format!("{OLD}/a")).await;
    assert!(world.asked().is_empty(), "it is stored in this version now");
    let (_, again) = world.send("PUT", &format!("{OLD}/a"), after.clone()).await;
    assert_eq!(again["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn the_webhook_is_reached_over_https() {
    let server = Server::new(ServerConfig::new(Env::system()));
    let hook = converter::serve().await;
    let world = World { client: Client::new(server, "default"), hook: Arc::default() };
    let definition = definition(&format!("{}/ok", hook.url), &hook.ca);
    assert_eq!(world.send("POST", DEFINITION, definition).await.0, 201);
    let (code, made) = world.send("POST", OLD, old("a", "red")).await;
    assert_eq!((code, &made["spec"]["colour"]), (201, &json!("red")), "{made}");
    assert_eq!(world.get(&format!("{NEW}/a")).await["spec"]["color"], "red");
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_definition_goes_while_its_objects_are_converted_ends() {
    let world = World::new().await;
    world.send("POST", OLD, old("a", "red")).await;
    world.asked();
    let held = world.hook.held.lock().await;
    let (client, path) = (world.client.clone(), format!("{OLD}?watch=true"));
    let watched = tokio::spawn(async move {
        let request = http::Request::get(path).body(Body::empty()).unwrap();
        let body = client.send(request).await.unwrap().into_body();
        String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
    });
    while world.hook.asked.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let one = format!("{DEFINITION}/gizmos.example.com");
    world.send("DELETE", &one, Value::Null).await;
    while world.send("GET", &one, Value::Null).await.0 != 404 {
        tokio::task::yield_now().await;
    }
    drop(held);
    let limit = std::time::Duration::from_secs(60);
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    let told = env.timeout(limit, watched).await.expect("the watch has no end");
    let told = told.unwrap();
    let types = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let types: Vec<Value> = types.map(|mut event| event["type"].take()).collect();
    assert_eq!(types, ["ADDED", "DELETED"], "{told}");
}
