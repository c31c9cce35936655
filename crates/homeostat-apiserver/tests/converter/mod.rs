//! A conversion webhook that every test can have: v1 says `color`, v1beta1 says `colour`, and the
//! path of the request says what is wrong with the answer.

use serde_json::{Value, json};

use crate::webhook_server::{self, Reply, Served};

/// The reply to a `ConversionReview` that was posted to `path`.
pub(crate) fn reply(path: &str, review: &Value) -> (u16, String) {
    let request = &review["request"];
    let to = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap();
    let converted: Vec<Value> = objects.iter().map(|object| convert(path, object, to)).collect();
    let mut reply = json!({
        "kind": "ConversionReview", "apiVersion": review["apiVersion"],
        "response": {
            "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted,
        },
    });
    match path {
        "/fails" => reply["response"]["result"] = json!({"status": "Failure", "message": "no way"}),
        "/fails-silently" => reply["response"]["result"] = json!({"status": "Failure"}),
        "/no-objects" => reply["response"]["convertedObjects"] = json!([]),
        "/no-response" => reply["response"] = Value::Null,
        "/wrong-review" => reply["apiVersion"] = "apiextensions.k8s.io/v1beta1".into(),
        "/not-found" => return (404, "nothing here".to_owned()),
        _ => {}
    }
    (200, reply.to_string())
}

fn convert(path: &str, object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = to.into();
    let (from, into) = if to.ends_with("/v1") { ("colour", "color") } else { ("color", "colour") };
    for part in ["spec", "status"] {
        let Some(part) = object.get_mut(part).and_then(Value::as_object_mut) else { continue };
        if let Some(value) = part.remove(from) {
            part.insert(into.to_owned(), value);
        }
    }
    let metadata = &mut object["metadata"];
    match path {
        "/another-name" => metadata["name"] = "other".into(),
        "/another-namespace" => metadata["namespace"] = "other".into(),
        "/another-kind" => object["kind"] = "Other".into(),
        "/another-version" => object["apiVersion"] = "example.com/v7".into(),
        "/labels" => {
            metadata["labels"] = json!({"by": "webhook"});
            metadata["annotations"] = json!({"by": "webhook"});
            metadata["finalizers"] = json!(["example.com/stays-out"]);
        }
        "/bad-labels" => metadata["labels"] = json!({"a": "b c"}),
        "/number-labels" => metadata["labels"] = json!({"a": 1}),
        "/no-metadata" => drop(object.as_object_mut().unwrap().remove("metadata")),
        _ => {}
    }
    object
}

/// Serves the webhook over HTTPS for as long as the process lives.
pub(crate) async fn serve() -> Served {
    webhook_server::serve(|head, body| {
        let (code, text) = reply(head.uri.path(), &serde_json::from_slice(body).unwrap());
        Reply::Text(code, text)
    })
    .await
}
