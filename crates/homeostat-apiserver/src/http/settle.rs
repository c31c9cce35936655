//! Runs a write to its end: asks what it has to know, and tries again until nothing is open.

use std::future::Future;

use futures::future::join_all;
use http::Response;
use serde_json::{Value, json};

use super::answer;
use super::body::Body;
use crate::admission::{Answer, Inquiry, Question};
use crate::registry::Registry;
use crate::status::Status;
use crate::webhook_client;

/// A write that still has questions after so many rounds competes with others for its object.
const ROUNDS: usize = 64;

/// Runs `write` until it has an answer to everything it asks; its warnings go with its response.
pub(crate) async fn settle(
    registry: &Registry,
    inquiry: &Inquiry,
    write: impl Fn() -> Result<Response<Body>, Status>,
) -> Result<Response<Body>, Status> {
    for _ in 0..ROUNDS {
        inquiry.begin();
        let result = write();
        let open = inquiry.open();
        if open.is_empty() {
            let warnings = inquiry.warnings();
            if warnings.is_empty() {
                return result;
            }
            let mut response = result.unwrap_or_else(|status| answer::refusal(&status));
            answer::warn(&mut response, &warnings);
            return Ok(response);
        }
        for (question, answer) in ask(registry, open).await {
            inquiry.answered(&question, answer);
        }
    }
    Err(Status::new(409, "Conflict", "the object changes faster than its webhooks answer"))
}

/// Asks all questions at once.
fn ask(
    registry: &Registry,
    questions: Vec<Question>,
) -> impl Future<Output = Vec<(Question, Answer)>> {
    join_all(questions.into_iter().map(async |question| {
        let answer = ask_one(registry, &question).await;
        (question, answer)
    }))
}

async fn ask_one(registry: &Registry, question: &Question) -> Answer {
    let uid = registry.env.uid();
    let mut review = question.review.clone();
    review["request"]["uid"] = uid.clone().into();
    let reply = webhook_client::call(registry, &question.client, question.timeout, &review).await?;
    checked(&review, &uid, reply).map_err(|why| format!("received invalid webhook response: {why}"))
}

/// The response in a reply that fits the question.
fn checked(review: &Value, uid: &str, mut reply: Value) -> Answer {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or("").to_owned();
    let response = reply["response"].take();
    if !response.is_object() {
        return Err("webhook response was absent".to_owned());
    }
    if text(review, "apiVersion").ends_with("beta1") {
        return Ok(response);
    }
    let given = text(&response, "uid");
    if given != uid {
        return Err(format!("expected response.uid={uid:?}, got {given:?}"));
    }
    if (text(&reply, "apiVersion"), text(&reply, "kind"))
        != (text(review, "apiVersion"), text(review, "kind"))
    {
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {}, \
             Kind={}",
            text(&reply, "apiVersion"),
            text(&reply, "kind")
        ));
    }
    let has = |field: &str| response.get(field).is_some_and(|v| !v.is_null() && *v != json!(""));
    match (has("patch"), has("patchType")) {
        (true, false) => {
            Err("webhook returned response.patch but not response.patchType".to_owned())
        }
        (false, true) => {
            Err("webhook returned response.patchType but not response.patch".to_owned())
        }
        _ => Ok(response),
    }
}
