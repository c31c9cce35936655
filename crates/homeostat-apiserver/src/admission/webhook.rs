//! `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`: programs that administrators put in
//! the way of writes. What they are asked goes through the write's inquiry; nothing is called here.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Review;
use super::configuration::Webhook;
use super::hearing::{Panel, Views};
use super::inquiry::{Inquiry, Question, Topic};
use super::matching::{is_exempt, matched};
use crate::kinds::Kind;
use crate::status::Status;

/// What mutating webhooks remember from the first round of the chain to the second.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// The second round: only those that asked for it are called again.
    pub(super) is_second: bool,
    /// Something changed after a webhook that wants to see such changes.
    pub(super) is_wanted: bool,
    called: BTreeSet<String>,
    again: BTreeSet<String>,
    output: Option<Value>,
}

impl Rounds {
    /// Whether the webhook or policy has its turn in this round.
    pub(super) fn calls(&self, id: &str) -> bool {
        !self.is_second || self.again.contains(id)
    }

    /// Remembers a call: whether it changed the object, and whether it wants to see what others
    /// change after it.
    pub(super) fn called(&mut self, id: &str, changed: bool, reinvokes: bool) {
        if changed {
            let called = std::mem::take(&mut self.called);
            self.again.extend(called);
            self.is_wanted = true;
        }
        if reinvokes {
            self.called.insert(id.to_owned());
        }
    }
}

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), Status> {
    let registry = review.writer.registry;
    let webhooks = registry.admission.mutating(&registry.store);
    if webhooks.is_empty() || is_exempt(review) {
        return Ok(());
    }
    if review.rounds.is_second && review.rounds.output.as_ref() != Some(&review.object) {
        let called = std::mem::take(&mut review.rounds.called);
        review.rounds.again.extend(called);
    }
    for (place, webhook) in webhooks.iter().enumerate() {
        if !review.rounds.calls(&webhook.id) {
            continue;
        }
        let called = should_call(review, (&webhooks, place), &mut Views::default());
        let Some(kind) = called.map_err(Failure::status)? else { continue };
        let changed = call_mutating(review, webhook, &kind)?;
        let reinvokes = webhook.settings["reinvocationPolicy"] == "IfNeeded";
        review.rounds.called(&webhook.id, changed, reinvokes);
    }
    review.rounds.output = Some(review.object.clone());
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
        answers.push(response(review, webhook, &kind));
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
        Err(error) if webhook.fails => Err(refused(review.forbid(&error))),
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
fn response(review: &Review<'_>, webhook: &Webhook, kind: &Kind) -> Result<Option<Value>, Failure> {
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
                topic: Topic::Admission,
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

fn internal(message: &str) -> Status {
    let mut status = Status::internal(format!("Internal error occurred: {message}"));
    status.details = Some(Box::new(json!({"causes": [{"message": message}]})));
    status
}

/// The webhook's own refusal, completed where it says too little.
fn denial(webhook: &str, result: Option<&Value>) -> Status {
    let mut given = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}});
    let said = result.and_then(Value::as_object).cloned().unwrap_or_default();
    let text = |field: &str| said.get(field).and_then(Value::as_str).unwrap_or("");
    let denied = format!("admission webhook {webhook:?} denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = said.get("code").and_then(Value::as_u64).filter(|code| *code >= 400);
    let code = u16::try_from(code.unwrap_or(400)).unwrap_or(400);
    given["status"] = "Failure".into();
    given["message"] = message.clone().into();
    for field in ["reason", "details"] {
        if let Some(value) = said.get(field).filter(|value| **value != json!("")) {
            given[field] = value.clone();
        }
    }
    given["code"] = code.into();
    let mut status = Status::new(code, "", message);
    status.verbatim = Some(Box::new(given));
    status
}

/// Calls a webhook that may change the object; says whether it did.
fn call_mutating(review: &mut Review<'_>, webhook: &Webhook, kind: &Kind) -> Result<bool, Status> {
    let answer = match response(review, webhook, kind) {
        Ok(Some(answer)) => answer,
        Ok(None) => return Ok(false),
        Err(failure) => return Err(failure.status()),
    };
    let undecodable = |error: &dyn std::fmt::Display| {
        failure(&webhook.name, &format!("received undecodable patch in webhook response: {error}"))
    };
    let patch = match answer["patch"].as_str() {
        None | Some("") => return Ok(false),
        Some(text) => STANDARD.decode(text).map_err(|error| undecodable(&error))?,
    };
    let operations: Value = serde_json::from_slice(&patch).map_err(|error| undecodable(&error))?;
    if operations.as_array().is_some_and(Vec::is_empty) {
        return Ok(false);
    }
    if review.object.is_null() {
        return Err(internal(&format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for \
             this operation",
            webhook.name
        )));
    }
    let (shown, _) = review.shown(kind)?;
    let patched =
        crate::patch::json(&shown, &operations).map_err(|error| internal(&error.to_string()))?;
    let object = review.take(kind, patched).map_err(|status| internal(&status.message))?;
    let changed = object != review.object;
    review.object = object;
    Ok(changed)
}
