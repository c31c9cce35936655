//! `MutatingAdmissionPolicy`: changes that administrators write as expressions, and the bindings
//! that put them into force.

use std::sync::Arc;

use homeostat_cel::Value as Cel;
use serde_json::{Map, Value, json};

use super::configuration::{Mutation, Policy};
use super::expression::{BUDGET, Given};
use super::hearing::{Evidence, Panel};
use super::matching::{is_exempt, is_question, matched_resources};
use super::request::Untaken;
use super::{Inquiry, Review, policy};
use crate::kinds::Kind;
use crate::registry::metadata;
use crate::status::Status;
use crate::{apply, patch};

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), Status> {
    let registry = review.writer.registry;
    let policies = registry.admission.mutating_policies(&registry.store);
    let unseen = is_exempt(review) || is_question(review) || review.object.is_null();
    if policies.is_empty() || unseen {
        return Ok(());
    }
    let mut refusals = Vec::new();
    for (place, policy) in policies.iter().enumerate() {
        for binding in &policy.bindings {
            let name = metadata::name(binding);
            let id = format!("policy/{}/{name}", policy.name);
            let Some(kind) = matched_resources(review, &policy.constraints) else { continue };
            let resources = binding.pointer("/spec/matchResources").unwrap_or(&Value::Null);
            if matched_resources(review, resources).is_none() || !review.rounds.calls(&id) {
                continue;
            }
            let mut changed = false;
            match run(review, (&policies, place), binding, &kind, &mut changed) {
                Err(Trouble::Undecided(status)) => return Err(*status),
                Err(Trouble::Failed(why)) if policy.fails => refusals.push(format!(
                    "policy '{}' with binding '{name}' denied request: {why}",
                    policy.name
                )),
                Err(Trouble::Failed(_)) | Ok(()) => {}
            }
            review.rounds.called(&id, changed, policy.reinvokes);
        }
    }
    if refusals.is_empty() {
        return Ok(());
    }
    let mut status = review.forbid("");
    status.message.clone_from(&refusals[0]);
    status.reason = "Invalid";
    if let Some(details) = &mut status.details {
        let causes: Vec<Value> = refusals.iter().map(|words| json!({"message": words})).collect();
        details["causes"] = causes.into();
    }
    Err(status)
}

/// Why a policy did not run to its end.
enum Trouble {
    /// It failed; what that means, the policy says.
    Failed(String),
    /// The object is not known in the version that the policy wants to see, or the policy takes
    /// long.
    Undecided(Box<Status>),
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<Status> for Trouble {
    fn from(status: Status) -> Self {
        Self::Undecided(Box::new(status))
    }
}

/// Applies the mutations of a policy, one after the other, once for each parameter; notes whether
/// they change the object.
fn run(
    review: &mut Review<'_>,
    (policies, place): (&Arc<Vec<Policy>>, usize),
    binding: &Value,
    kind: &Kind,
    changed: &mut bool,
) -> Result<(), Trouble> {
    let policy = &policies[place];
    for params in policy::params(review, policy, binding)? {
        let namespace = policy::namespace(review);
        for (position, mutation) in policy.mutations.iter().enumerate() {
            let shown = Arc::new(review.shown(kind)?);
            let evidence = Evidence {
                params: params.clone(),
                namespace: namespace.clone(),
                ..review.evidence(kind, Arc::clone(&shown))
            };
            let panel = Panel::Mutation(Arc::clone(policies), place, position);
            let opinion = review.hear(panel, evidence).ok_or_else(Inquiry::unanswered)?;
            if !opinion.holds? {
                break;
            }
            let (object, made) = (&shown.0, opinion.change?);
            let mutated = match mutation {
                Mutation::Apply(_) => {
                    let mut config = made;
                    config["apiVersion"] = object["apiVersion"].clone();
                    config["kind"] = object["kind"].clone();
                    apply::merged(review.form.unwrap_or(kind).schema.root(), object, &config)
                        .map_err(|error| format!("error applying patch: {error}"))?
                }
                Mutation::Patch(_) => {
                    patch::json(object, &made).map_err(|error| format!("JSON Patch: {error}"))?
                }
            };
            let object = review.take(kind, mutated).map_err(|refusal| match refusal {
                Untaken::Unreadable(why) => why,
                Untaken::Refused(status) => status.message,
            })?;
            *changed |= review.change_to(object);
        }
    }
    Ok(())
}

/// What the mutation at this place makes: what is to be merged, or the operations of a patch.
pub(super) fn evaluate(
    policy: &Policy,
    position: usize,
    given: &Given<'_>,
) -> Result<Value, String> {
    let (Mutation::Apply(expression) | Mutation::Patch(expression)) = &policy.mutations[position];
    to_json(&expression.evaluate(&given.with(&policy.variables), &mut { BUDGET })??)
}

/// What an expression made, as JSON with its names in order.
fn to_json(value: &Cel) -> Result<Value, String> {
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(flag) => (*flag).into(),
        Cel::Int(number) => (*number).into(),
        Cel::UInt(number) => (*number).into(),
        Cel::Float(number) => (*number).into(),
        Cel::String(text) => text.as_str().into(),
        Cel::List(items) => Value::Array(items.iter().map(to_json).collect::<Result<_, _>>()?),
        Cel::Map(map) => {
            let mut fields: Vec<(String, Value)> = Vec::new();
            for (name, field) in map.map.iter() {
                fields.push((name.to_string(), to_json(field)?));
            }
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(fields.into_iter().collect::<Map<_, _>>())
        }
        _ => return Err("the expression evaluated to a type that is no JSON".to_owned()),
    })
}
