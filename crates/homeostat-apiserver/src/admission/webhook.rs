//! `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`: programs that administrators put in
//! the way of writes. What they are asked goes through the write's inquiry; nothing is called here.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Review;
use super::configuration::Webhook;
use super::hearing::{Panel, Views};
use super::inquiry::{Inquiry, Question, Topic};
use super::matching::{is_exempt, matched};
use super::request::Untaken;
use crate::go::syntax;
use crate::kinds::Kind;
use crate::status::Status;

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), Status> {
    let registry = review.writer.registry;
    let webhooks = registry.admission.mutating(&registry.store);
    if webhooks.is_empty() || is_exempt(review) {
        return Ok(());
    }
    review.rounds.webhooks.begin(&review.object);
    for (place, webhook) in webhooks.iter().enumerate() {
        if review.rounds.is_second && !review.rounds.webhooks.calls_again(&webhook.id) {
            continue;
        }
        let called = should_call(review, (&webhooks, place), &mut Views::default());
        let Some(kind) = called.map_err(Failure::status)? else { continue };
        let changed = call_mutating(review, webhook, &kind)?;
        let reinvokes = webhook.settings["reinvocationPolicy"] == "IfNeeded";
        review.rounds.is_wanted |= changed;
        review.rounds.webhooks.called(&webhook.id, changed, reinvokes);
    }
    review.rounds.webhooks.end(&review.object);
    Ok(())
}

pub(super) fn validate(review: &Review<'_>) -> Result<(), Status> {
    let registry = review.writer.registry;
    let webhooks = registry.admission.validating(&registry.store);
    if webhooks.is_empty() || is_exempt(review) {
        return Ok(());
    }
    let (mut called, mut views, mut is_pending) = (Vec::new(), Views::default(), false);
    for (place, webhook) in webhooks.iter().enumerate() {
        match should_call(review, (&webhooks, place), &mut views) {
            Ok(kind) => called.extend(kind.map(|kind| (webhook, kind))),
            Err(Failure::Pending) => is_pending = true,
            Err(Failure::Refused(status)) => return Err(*status),
        }
    }
    if is_pending {
        return Err(Inquiry::unanswered());
    }
    // All are asked at once: none of them changes anything.
    let mut answers = Vec::new();
    for (webhook, kind) in called {
        answers.push(response(review, webhook, &kind, false));
    }
    let mut pending = None;
    for answer in answers {
        match answer {
            Ok(_) => {}
            Err(Failure::Pending) => pending = Some(Inquiry::unanswered()),
            Err(Failure::Refused(status)) => return Err(*status),
        }
    }
    pending.map_or(Ok(()), Err)
}

/// The kind in whose form the webhook sees the object, if it is to be called.
fn should_call(
    review: &Review<'_>,
    (webhooks, place): (&Arc<Vec<Webhook>>, usize),
    views: &mut Views,
) -> Result<Option<Arc<Kind>>, Failure> {
    let webhook = &webhooks[place];
    let Some(kind) = matched(review, &webhook.settings, &webhook.rules) else { return Ok(None) };
    if webhook.conditions.is_empty() {
        return Ok(Some(kind));
    }
    let evidence = review.evidence(&kind, views.of(review, &kind).map_err(refused)?);
    let panel = Panel::Webhook(Arc::clone(webhooks), place);
    match review.hear(panel, evidence).ok_or(Failure::Pending)?.holds {
        Ok(true) => Ok(Some(kind)),
        Err(error) if webhook.fails => {
            Err(refused(Status::forbidden(review.kind, review.name, &error)))
        }
        Ok(false) | Err(_) => Ok(None),
    }
}

/// Why a webhook's word is not there.
enum Failure {
    /// It has not been asked yet, or whether to ask it takes long to find out.
    Pending,
    /// The request is refused.
    Refused(Box<Status>),
}

impl Failure {
    fn status(self) -> Status {
        match self {
            Self::Pending => Inquiry::unanswered(),
            Self::Refused(status) => *status,
        }
    }
}

fn refused(status: Status) -> Failure {
    Failure::Refused(Box::new(status))
}

/// The response of an allowing webhook; `None` when it failed and that does not matter.
fn response(
    review: &Review<'_>,
    webhook: &Webhook,
    kind: &Kind,
    mutates: bool,
) -> Result<Option<Value>, Failure> {
    let side_effects = webhook.settings["sideEffects"].as_str();
    if review.wish.is_dry_run() && !matches!(side_effects, Some("None" | "NoneOnDryRun")) {
        let words = format!("admission webhook {:?} does not support dry run", webhook.name);
        return Err(refused(Status::bad_request(words)));
    }
    let versions = webhook.settings["admissionReviewVersions"].as_array();
    let version = versions
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .find(|version| matches!(*version, "v1" | "v1beta1"));
    let answer = match version {
        None => Err("could not create admission objects: webhook does not accept known \
                     AdmissionReview versions (v1, v1beta1)"
            .to_owned()),
        Some(version) => {
            let (object, old_object) = review.shown(kind).map_err(refused)?;
            let mut request = review.request(kind);
            request["object"] = object;
            request["oldObject"] = old_object;
            let question = Question {
                webhook: webhook.name.clone(),
                client: webhook.settings["clientConfig"].clone(),
                timeout: webhook.timeout,
                review: json!({
                    "kind": "AdmissionReview",
                    "apiVersion": format!("admission.k8s.io/{version}"),
                    "request": request,
                }),
                topic: Topic::Admission { mutates },
                repeated: 0,
            };
            review.wish.inquiry().ask(question).ok_or(Failure::Pending)?
        }
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => {
            tracing::warn!(webhook = webhook.name, %why, "a webhook could not be called");
            let failed = || refused(failure(&webhook.name, &why));
            return if webhook.fails { Err(failed()) } else { Ok(None) };
        }
    };
    for warning in answer["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        review.wish.inquiry().warn(warning.to_owned());
    }
    if answer["allowed"] == json!(true) {
        return Ok(Some(answer));
    }
    Err(refused(denial(&webhook.name, answer.get("status"))))
}

/// 500: the webhook could not be asked, or its answer could not be used.
fn failure(webhook: &str, why: &str) -> Status {
    internal(&format!("failed calling webhook {webhook:?}: {why}"))
}

/// 500: something made no object.
pub(super) fn internal(message: &str) -> Status {
    let mut status = Status::internal(format!("Internal error occurred: {message}"));
    status.details = Some(Box::new(json!({"causes": [{"message": message}]})));
    status
}

/// The webhook's own refusal, completed where it says too little.
fn denial(webhook: &str, result: Option<&Value>) -> Status {
    let mut given = result.filter(|result| result.is_object()).cloned().unwrap_or(json!({}));
    let text = |field: &str| given.get(field).and_then(Value::as_str).unwrap_or("");
    let denied = format!("admission webhook {webhook:?} denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let is_failure = matches!(text("status"), "" | "Success");
    let code = given.get("code").and_then(Value::as_u64).filter(|code| *code >= 400).unwrap_or(400);
    // HTTP has no other codes.
    let code = u16::try_from(code).ok().filter(|code| *code < 1000).unwrap_or(500);
    given["kind"] = "Status".into();
    given["apiVersion"] = "v1".into();
    if !given["metadata"].is_object() {
        given["metadata"] = json!({});
    }
    if is_failure {
        given["status"] = "Failure".into();
    }
    given["message"] = message.clone().into();
    given["code"] = code.into();
    let mut status = Status::new(code, "", message);
    status.details = given.get("details").cloned().map(Box::new);
    status.verbatim = Some(Box::new(given));
    status
}

/// Calls a webhook that may change the object; says whether it did.
fn call_mutating(review: &mut Review<'_>, webhook: &Webhook, kind: &Kind) -> Result<bool, Status> {
    let answer = match response(review, webhook, kind, true) {
        Ok(Some(answer)) => answer,
        Ok(None) => return Ok(false),
        Err(failure) => return Err(failure.status()),
    };
    let operations = match operations(&answer) {
        Ok(operations) => operations,
        Err(why) if webhook.fails => return Err(failure(&webhook.name, &why)),
        Err(_) => return Ok(false),
    };
    let Some(operations) = operations else { return Ok(false) };
    if review.object.is_null() {
        return Err(internal(&format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for \
             this operation",
            webhook.name
        )));
    }
    let ty = answer["patchType"].as_str().unwrap_or_default();
    if ty != "JSONPatch" {
        let why = format!("unsupported patch type {ty:?}");
        return if webhook.fails { Err(failure(&webhook.name, &why)) } else { Ok(false) };
    }
    let (shown, _) = review.shown(kind)?;
    let patched =
        crate::patch::json(&shown, &operations).map_err(|error| internal(&error.to_string()))?;
    let object = review.take(kind, patched).map_err(|refusal| match refusal {
        Untaken::Unreadable(why) => internal(&why),
        Untaken::Refused(status) => *status,
    })?;
    Ok(review.change_to(object))
}

/// The operations of a response's patch, if it has any.
fn operations(answer: &Value) -> Result<Option<Value>, String> {
    let patch = answer["patch"].as_str().unwrap_or_default();
    if patch.is_empty() {
        return Ok(None);
    }
    let undecodable =
        |why: String| format!("received undecodable patch in webhook response: {why}");
    let patch = STANDARD.decode(patch).map_err(|error| undecodable(error.to_string()))?;
    let operations: Value = serde_json::from_slice(&patch).map_err(|error| {
        undecodable(syntax::complaint(&patch).unwrap_or_else(|| error.to_string()))
    })?;
    if operations.is_null() {
        return Ok(None);
    }
    crate::patch::check_list(&operations).map_err(undecodable)?;
    Ok(Some(operations)
        .filter(|operations| operations.as_array().is_some_and(|all| !all.is_empty())))
}
