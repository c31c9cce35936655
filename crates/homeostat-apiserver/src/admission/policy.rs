//! `ValidatingAdmissionPolicy`: rules that administrators write as expressions, and the bindings
//! that put them into force.

use std::sync::Arc;

use homeostat_cel::Value as Cel;
use serde_json::{Value, json};

use super::configuration::{Policy, Validation};
use super::expression::{BUDGET, Given};
use super::hearing::{Evidence, Panel, Views};
use super::matching::{is_exempt, is_question, matched_resources, selects};
use super::{Inquiry, Review};
use crate::kinds::Kind;
use crate::registry::metadata;
use crate::status::Status;

/// Longer messages are not shown.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// One thing that a policy has against a request.
#[derive(Debug, Clone)]
struct Denial {
    message: String,
    reason: &'static str,
}

/// What came of a policy with one of its parameters.
#[derive(Debug, Clone, Default)]
pub(super) struct Judgement {
    denials: Vec<Denial>,
    /// Why audit annotations have no value, where that matters.
    annotation_failures: Vec<String>,
}

impl Judgement {
    fn failed(policy: &Policy, message: String) -> Self {
        let denial = policy.fails.then_some(Denial { message, reason: "Invalid" });
        Self { denials: denial.into_iter().collect(), ..Self::default() }
    }
}

pub(super) fn check(review: &Review<'_>) -> Result<(), Status> {
    let policies = review.writer.registry.admission.policies(&review.writer.registry.store);
    if policies.is_empty() || is_exempt(review) || is_question(review) {
        return Ok(());
    }
    let mut denied: Option<(String, Denial)> = None;
    let mut deny = |policy: &Policy, binding: Option<&str>, denial: Denial| {
        let by = binding.map_or_else(String::new, |name| format!(" with binding '{name}'"));
        let message = format!(
            "ValidatingAdmissionPolicy '{}'{by} denied request: {}",
            policy.name, denial.message
        );
        denied.get_or_insert((message, denial));
    };
    let (mut views, mut space, mut is_pending) = (Views::default(), None, false);
    for (place, policy) in policies.iter().enumerate() {
        let Some(kind) = matched_resources(review, &policy.constraints) else { continue };
        let param_kind = match param_kind(review, policy) {
            Ok(kind) => kind,
            Err(error) => {
                let message = format!("failed to configure policy: {error}");
                if policy.fails {
                    deny(policy, None, Denial { message, reason: "Invalid" });
                }
                continue;
            }
        };
        for binding in &policy.bindings {
            let resources = binding.pointer("/spec/matchResources").unwrap_or(&Value::Null);
            if matched_resources(review, resources).is_none() {
                continue;
            }
            let name = metadata::name(binding);
            let params = match params(review, param_kind.as_deref(), binding) {
                Ok(params) => params,
                Err(error) if policy.fails => {
                    let message = format!("failed to configure binding: {error}");
                    deny(policy, Some(name), Denial { message, reason: "Invalid" });
                    continue;
                }
                Err(_) => continue,
            };
            for params in params {
                let namespace = space.get_or_insert_with(|| namespace(review)).clone();
                let evidence = review.evidence(&kind, views.of(review, &kind)?);
                let evidence = Evidence { params, namespace, ..evidence };
                let panel = Panel::Policy(Arc::clone(&policies), place);
                // Whatever takes long is heard at once: no policy waits for another.
                let Some(opinion) = review.hear(panel, evidence) else {
                    is_pending = true;
                    continue;
                };
                let judgement = match opinion.holds {
                    Ok(_) => opinion.judgement,
                    Err(error) => Judgement::failed(policy, error),
                };
                for denial in judgement.denials {
                    for action in actions(binding) {
                        match action {
                            "Deny" => deny(policy, Some(name), denial.clone()),
                            "Warn" => review.wish.inquiry().warn(format!(
                                "Validation failed for ValidatingAdmissionPolicy '{}' with binding \
                                 '{name}': {}",
                                policy.name, denial.message
                            )),
                            _ => {}
                        }
                    }
                }
                // Whatever the binding wants done about denials.
                for message in judgement.annotation_failures {
                    deny(policy, Some(name), Denial { message, reason: "Invalid" });
                }
            }
        }
    }
    if is_pending {
        return Err(Inquiry::unanswered());
    }
    match denied {
        None => Ok(()),
        Some((message, denial)) => Err(refusal(review, &message, denial.reason)),
    }
}

fn actions(binding: &Value) -> impl Iterator<Item = &str> {
    let actions = binding.pointer("/spec/validationActions").and_then(Value::as_array);
    actions.into_iter().flatten().filter_map(Value::as_str)
}

fn refusal(review: &Review<'_>, message: &str, reason: &'static str) -> Status {
    let mut status = review.forbid(message);
    status.reason = reason;
    status.code = match reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    if let Some(details) = &mut status.details {
        details["causes"] = json!([{"message": message}]);
    }
    status
}

/// Everything the policy has against the request.
pub(super) fn evaluate(policy: &Policy, given: &Given<'_>) -> Judgement {
    let failed = |message: String| Denial { message, reason: "Invalid" };
    let mut left = BUDGET;
    let scope = given.with(&policy.variables);
    let validations = policy.validations.iter();
    let judged = validations
        .map(|validation| validation.expression.evaluate(&scope, &mut left))
        .collect::<Result<Vec<_>, _>>();
    let judged = match judged {
        Ok(judged) => judged,
        Err(spent) => return Judgement::failed(policy, spent),
    };
    let given = given.asking_nobody();
    let scope = given.with(&policy.variables);
    let messages = policy.validations.iter().map(|validation| {
        let expression = validation.message_expression.as_ref();
        expression.map(|expression| expression.evaluate(&scope, &mut left)).transpose()
    });
    let messages = messages.collect::<Result<Vec<_>, _>>();
    let mut denials = Vec::new();
    for (at, (validation, answer)) in policy.validations.iter().zip(judged).enumerate() {
        let denial = match (answer, &messages) {
            (Err(error), _) => policy.fails.then(|| failed(error)),
            (Ok(_), Err(spent)) => {
                policy.fails.then(|| failed(format!("failed messageExpression: {spent}")))
            }
            (Ok(Cel::Bool(true)), _) => None,
            (Ok(_), Ok(messages)) => {
                let message = message(validation, messages.get(at).and_then(Option::as_ref));
                Some(Denial { message, reason: validation.reason })
            }
        };
        denials.extend(denial);
    }
    // Nobody keeps the annotations that have a value.
    let (scope, mut left) = (given.with(&policy.variables), BUDGET);
    let mut annotation_failures = Vec::new();
    for annotation in &policy.annotations {
        match annotation.evaluate(&scope, &mut left) {
            Ok(Err(why)) if policy.fails => annotation_failures.push(why),
            Ok(_) => {}
            Err(spent) => return Judgement::failed(policy, spent),
        }
    }
    Judgement { denials, annotation_failures }
}

fn message(validation: &Validation, made: Option<&Result<Cel, String>>) -> String {
    let made = match made {
        Some(Ok(Cel::String(text))) => Some(text.trim().to_owned()),
        _ => None,
    };
    let usable =
        |text: &String| !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n');
    made.filter(usable)
        .or_else(|| Some(validation.message.trim().to_owned()).filter(|text| !text.is_empty()))
        .unwrap_or_else(|| format!("failed expression: {}", validation.expression.text.trim()))
}

/// The namespace of the object, without what only its writers need.
pub(super) fn namespace(review: &Review<'_>) -> Value {
    if !review.kind.namespaced {
        return Value::Null;
    }
    let found = review.writer.registry.peek("namespaces", "", review.namespace);
    found.map_or(Value::Null, |mut namespace| {
        metadata::set(&mut namespace, "managedFields", Value::Null);
        metadata::set(&mut namespace, "ownerReferences", Value::Null);
        namespace
    })
}

/// The kind of a policy's parameters, if it has any.
///
/// # Errors
/// Nothing of that kind is served.
pub(super) fn param_kind(
    review: &Review<'_>,
    policy: &Policy,
) -> Result<Option<Arc<Kind>>, String> {
    let Some((version, kind)) = &policy.param_kind else { return Ok(None) };
    let (group, version) = version.split_once('/').unwrap_or(("", version.as_str()));
    let catalogue = review.writer.registry.catalogue();
    let served = catalogue.all().iter().find(|row| {
        row.group == group && row.version == version && row.kind == *kind && row.is_stored()
    });
    served.cloned().map(Some).ok_or_else(|| {
        format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
    })
}

/// The parameters a binding names: one evaluation for each, one without any where none are meant.
pub(super) fn params(
    review: &Review<'_>,
    kind: Option<&Kind>,
    binding: &Value,
) -> Result<Vec<Value>, String> {
    let reference = binding.pointer("/spec/paramRef").filter(|reference| !reference.is_null());
    let (Some(row), Some(reference)) = (kind, reference) else {
        return Ok(vec![Value::Null]);
    };
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or("");
    let namespace = match (row.namespaced, text("namespace"), review.namespace) {
        (false, "", _) => "",
        (false, _, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped \
                        `paramKind`"
                .to_owned());
        }
        (true, "", "") => {
            return Err("cannot use namespaced paramRef in policy binding that matches \
                        cluster-scoped resources"
                .to_owned());
        }
        (true, "", own) => own,
        (true, given, _) => given,
    };
    let all = review.list(&crate::registry::convert::resource(row), namespace);
    let found: Vec<Value> = all
        .into_iter()
        .filter(|object| match (text("name"), reference.get("selector")) {
            ("", Some(selector)) => selects(selector, &metadata::labels(object)),
            (name, _) => metadata::name(object) == name,
        })
        .collect();
    if found.is_empty() && text("parameterNotFoundAction") == "Deny" {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".into());
    }
    Ok(found)
}
