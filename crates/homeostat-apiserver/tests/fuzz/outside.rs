//! The world outside the server, in this process: webhooks that say anything, and nodes that
//! answer everything. Nothing here touches a network.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use homeostat_apiserver::{
    Body, NodeConnector, WebhookAddress, WebhookAnswer, WebhookConnector, WebhookReply,
};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use crate::dice::Dice;

/// Webhooks that agree, refuse, change things, or talk nonsense.
pub(crate) struct Webhooks(pub(crate) Arc<Dice>);

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Webhooks")
    }
}

impl WebhookConnector for Webhooks {
    fn post(&self, _: WebhookAddress, body: Bytes) -> BoxFuture<'static, WebhookReply> {
        let asked: Value = serde_json::from_slice(&body).unwrap();
        let dice = &self.0;
        let reply = match dice.below(20) {
            0 => Err("connection refused".to_owned()),
            1 => Ok(WebhookAnswer::json(500, "broken")),
            2 => Ok(WebhookAnswer::json(200, "{")),
            3 => Ok(WebhookAnswer::json(200, "[1]")),
            4 => return std::future::pending().boxed(),
            _ => Ok(WebhookAnswer::json(200, self.review(&asked).to_string())),
        };
        std::future::ready(reply).boxed()
    }
}

impl Webhooks {
    fn review(&self, asked: &Value) -> Value {
        let dice = &self.0;
        let mut reply = json!({
            "apiVersion": asked["apiVersion"], "kind": asked["kind"],
            "response": {"uid": asked["request"]["uid"], "allowed": dice.chance(80)},
        });
        let response = &mut reply["response"];
        if asked["kind"] == "ConversionReview" {
            let wanted = &asked["request"]["desiredAPIVersion"];
            let mut objects = asked["request"]["objects"].clone();
            for object in objects.as_array_mut().into_iter().flatten() {
                if dice.chance(85) {
                    object["apiVersion"] = wanted.clone();
                }
                if dice.chance(10) {
                    object["metadata"] = json!({"name": "other", "labels": {"x": 1}});
                }
                if dice.chance(5) {
                    *object = json!("nothing");
                }
            }
            response["convertedObjects"] = if dice.chance(5) { json!({}) } else { objects };
            response["result"] = dice
                .pick(&[json!({"status": "Success"}), json!({"status": "Failure"}), json!(7)])
                .clone();
        } else if dice.chance(40) {
            let patches = [
                "W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscyIsInZhbHVlIjp7ImEiOiJiIn19XQ==",
                "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL21ldGFkYXRhIn1d",
                "W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6IiIsInZhbHVlIjo3fV0=",
                "not base64",
                "e30=",
            ];
            response["patch"] = (*dice.pick(&patches)).into();
            response["patchType"] = (*dice.pick(&["JSONPatch", "JSONPatch", "Odd"])).into();
        }
        if dice.chance(15) {
            response["status"] = dice
                .pick(&[
                    json!({"code": 403, "message": "no"}),
                    json!({"code": 99, "reason": 7}),
                    json!({"code": 100_000}),
                    json!([]),
                    json!({"code": 200, "kind": "Odd", "status": "Success"}),
                ])
                .clone();
        }
        if dice.chance(10) {
            response["warnings"] = json!(["careful", "\u{0}\n", "x".repeat(5000)]);
        }
        if dice.chance(10) {
            response["auditAnnotations"] = json!({"a": "b", "": 1});
        }
        reply
    }
}

/// Nodes that say yes.
#[derive(Debug)]
pub(crate) struct Nodes;

impl NodeConnector for Nodes {
    fn call(&self, _: &str, _: http::Request<Body>) -> BoxFuture<'static, http::Response<Body>> {
        let body = Full::from("yes").map_err(|never| match never {}).boxed_unsync();
        std::future::ready(http::Response::new(body)).boxed()
    }
}
