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
use super::webhook::internal;
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
    // Who is meant is found out before anybody changes anything.
    let turns = turns(review, &policies, &mut refusals);
    let is_misconfigured = !refusals.is_empty();
    review.rounds.policies.begin(&review.object);
    let mut is_patched = false;
    for turn in turns {
        let policy = &policies[turn.place];
        let id = turn.id(policy);
        if review.rounds.is_second && !review.rounds.policies.calls_again(&id) {
            continue;
        }
        let mut outcome = Outcome::default();
        run(review, &policies, &turn, &mut outcome)?;
        if policy.fails {
            let name = metadata::name(turn.binding);
            let refused = outcome.failures.iter().map(|why| words(policy, Some(name), why));
            refusals.extend(refused);
        }
        is_patched |= outcome.is_patched;
        review.rounds.is_wanted |= outcome.changed;
        review.rounds.policies.called(&id, outcome.changed, policy.reinvokes);
    }
    if is_patched {
        // Whatever came of it: who changes something sees the object once more.
        review.rounds.policies.require();
        review.rounds.is_wanted = true;
    }
    review.rounds.policies.end(&review.object);
    if refusals.is_empty() {
        return Ok(());
    }
    let mut status = review.forbid("");
    status.message.clone_from(&refusals[0]);
    if !is_misconfigured {
        status.reason = "Invalid";
    }
    if let Some(details) = &mut status.details {
        let causes: Vec<Value> = refusals.iter().map(|words| json!({"message": words})).collect();
        details["causes"] = causes.into();
    }
    Err(status)
}

fn words(policy: &Policy, binding: Option<&str>, why: &str) -> String {
    match binding {
        Some(name) => {
            format!("policy '{}' with binding '{name}' denied request: {why}", policy.name)
        }
        None => format!("policy {:?} denied request: {why}", policy.name),
    }
}

/// One policy with one binding and one parameter of it.
struct Turn<'a> {
    place: usize,
    binding: &'a Value,
    kind: Arc<Kind>,
    params: Value,
}

impl Turn<'_> {
    fn id(&self, policy: &Policy) -> String {
        let (of, params) = (metadata::name(self.binding), &self.params);
        let (namespace, name) = (metadata::namespace(params), metadata::name(params));
        format!("{}/{of}/{namespace}/{name}", policy.name)
    }
}

/// All who have a turn; what is wrong with their configuration is a refusal.
fn turns<'a>(
    review: &Review<'_>,
    policies: &'a [Policy],
    refusals: &mut Vec<String>,
) -> Vec<Turn<'a>> {
    let mut turns = Vec::new();
    for (place, policy) in policies.iter().enumerate() {
        let Some(kind) = matched_resources(review, &policy.constraints) else { continue };
        let mut refuse = |binding: Option<&str>, why: String| {
            if policy.fails {
                refusals.push(words(policy, binding, &why));
            }
        };
        let param_kind = match policy::param_kind(review, policy) {
            Ok(kind) => kind,
            Err(why) => {
                refuse(None, format!("failed to configure policy: {why}"));
                continue;
            }
        };
        for binding in &policy.bindings {
            let resources = binding.pointer("/spec/matchResources").unwrap_or(&Value::Null);
            if matched_resources(review, resources).is_none() {
                continue;
            }
            match policy::params(review, param_kind.as_deref(), binding) {
                Ok(all) => turns.extend(all.into_iter().map(|params| {
                    let kind = Arc::clone(&kind);
                    Turn { place, binding, kind, params }
                })),
                Err(why) => {
                    let why = format!("failed to configure binding: {why}");
                    refuse(Some(metadata::name(binding)), why);
                }
            }
        }
    }
    turns
}

/// What came of a turn.
#[derive(Default)]
struct Outcome {
    /// Whether any mutation was made, be it a change or not.
    is_patched: bool,
    changed: bool,
    failures: Vec<String>,
}

/// Makes the mutations of a policy, one after the other; one that fails keeps none of the others from
/// being made.
///
/// # Errors
/// The object is not known in the version that the policy wants to see, the policy takes long, or a
/// patch makes no object of the kind.
fn run(
    review: &mut Review<'_>,
    policies: &Arc<Vec<Policy>>,
    turn: &Turn<'_>,
    outcome: &mut Outcome,
) -> Result<(), Status> {
    let kind = &turn.kind;
    let namespace = policy::namespace(review);
    for (position, mutation) in policies[turn.place].mutations.iter().enumerate() {
        let shown = Arc::new(review.shown(kind)?);
        let evidence = Evidence {
            params: turn.params.clone(),
            namespace: namespace.clone(),
            ..review.evidence(kind, Arc::clone(&shown))
        };
        let panel = Panel::Mutation(Arc::clone(policies), turn.place, position);
        let opinion = review.hear(panel, evidence).ok_or_else(Inquiry::unanswered)?;
        match opinion.holds {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(why) => {
                outcome.failures.push(why);
                return Ok(());
            }
        }
        let mutated =
            opinion.change.and_then(|made| mutated(review, kind, mutation, &shown.0, made));
        match mutated.map(|object| review.take(kind, object)) {
            Ok(Ok(object)) => {
                outcome.changed |= review.change_to(object);
                outcome.is_patched = true;
            }
            Ok(Err(Untaken::Unreadable(why))) if matches!(mutation, Mutation::Patch(_)) => {
                return Err(internal(&why));
            }
            Ok(Err(Untaken::Unreadable(why))) | Err(why) => outcome.failures.push(why),
            Ok(Err(Untaken::Refused(status))) => outcome.failures.push(status.message),
        }
    }
    Ok(())
}

/// The object with what a mutation made of it.
fn mutated(
    review: &Review<'_>,
    kind: &Kind,
    mutation: &Mutation,
    object: &Value,
    made: Value,
) -> Result<Value, String> {
    match mutation {
        Mutation::Apply(_) => {
            let mut config = made;
            config["apiVersion"] = object["apiVersion"].clone();
            config["kind"] = object["kind"].clone();
            apply::merged(review.form.unwrap_or(kind).schema.root(), object, &config)
                .map_err(|error| format!("error applying patch: {error}"))
        }
        Mutation::Patch(_) => match patch::json(object, &made) {
            // Whoever tests something means to change it only if it holds.
            Err(error) if error.is_failed_test() => Ok(object.clone()),
            patched => patched.map_err(|error| format!("JSON Patch: {error}")),
        },
    }
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
