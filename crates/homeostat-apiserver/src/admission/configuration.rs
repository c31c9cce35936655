//! What administrators configured, read and compiled once per change of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::expression::Expression;
use crate::registry::metadata;
use crate::store::{Range, Store, Stored};
use homeostat_cel::Type;
use homeostat_cel::admission::{composed, patches, variables};

const GROUP: &str = "admissionregistration.k8s.io";

/// A policy with the bindings that put it into force.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: String,
    /// `matchConstraints`.
    pub(super) constraints: Value,
    /// `apiVersion` and `kind` of its parameters.
    pub(super) param_kind: Option<(String, String)>,
    pub(super) conditions: Vec<Expression>,
    pub(super) variables: Vec<(String, Expression)>,
    pub(super) validations: Vec<Validation>,
    /// The values of its audit annotations: kept nowhere, but they may fail.
    pub(super) annotations: Vec<Expression>,
    pub(super) mutations: Vec<Mutation>,
    /// Whether it wants to see what others change after it.
    pub(super) reinvokes: bool,
    /// Whether an expression without an answer refuses the request.
    pub(super) fails: bool,
    pub(super) bindings: Vec<Value>,
}

/// One change a policy makes.
#[derive(Debug)]
pub(super) enum Mutation {
    /// A configuration that is merged into the object.
    Apply(Expression),
    /// A list of JSON patch operations.
    Patch(Expression),
}

/// One rule of a policy.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) expression: Expression,
    pub(super) message: String,
    pub(super) message_expression: Option<Expression>,
    pub(super) reason: &'static str,
}

/// The compiled configuration of a registry. Nothing is compiled until it is needed.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    policies: Mutex<Compiled<Vec<Policy>>>,
    mutating_policies: Mutex<Compiled<Vec<Policy>>>,
    mutating: Mutex<Compiled<Vec<Webhook>>>,
    validating: Mutex<Compiled<Vec<Webhook>>>,
}

#[derive(Debug, Default)]
struct Compiled<T> {
    /// The revisions of the objects it was made from.
    made_from: Vec<u64>,
    result: Arc<T>,
}

/// One webhook of a configuration.
#[derive(Debug)]
pub(super) struct Webhook {
    pub(super) name: String,
    /// The webhook as it was written.
    pub(super) settings: Value,
    pub(super) rules: Vec<Value>,
    pub(super) conditions: Vec<Expression>,
    /// Whether a call that fails refuses the request.
    pub(super) fails: bool,
    pub(super) timeout: u64,
    /// Which one it is, among all.
    pub(super) id: String,
}

impl Configuration {
    /// The validating policies that are bound.
    pub(super) fn policies(&self, store: &Store) -> Arc<Vec<Policy>> {
        let policies = all(store, "validatingadmissionpolicies");
        let bindings = all(store, "validatingadmissionpolicybindings");
        current(&self.policies, &[&policies, &bindings], || bound(&policies, &bindings))
    }

    /// The mutating policies that are bound.
    pub(super) fn mutating_policies(&self, store: &Store) -> Arc<Vec<Policy>> {
        let policies = all(store, "mutatingadmissionpolicies");
        let bindings = all(store, "mutatingadmissionpolicybindings");
        current(&self.mutating_policies, &[&policies, &bindings], || bound(&policies, &bindings))
    }

    /// The mutating webhooks, in the order they are called.
    pub(super) fn mutating(&self, store: &Store) -> Arc<Vec<Webhook>> {
        let configurations = all(store, "mutatingwebhookconfigurations");
        current(&self.mutating, &[&configurations], || compile_webhooks(&configurations))
    }

    /// The validating webhooks.
    pub(super) fn validating(&self, store: &Store) -> Arc<Vec<Webhook>> {
        let configurations = all(store, "validatingwebhookconfigurations");
        current(&self.validating, &[&configurations], || compile_webhooks(&configurations))
    }
}

/// The policies that any binding puts into force, compiled.
fn bound(policies: &[Arc<Stored>], bindings: &[Arc<Stored>]) -> Vec<Policy> {
    let bindings: Vec<Value> = bindings.iter().map(|binding| binding.value()).collect();
    let compiled = policies.iter().map(|policy| compile_policy(&policy.value(), &bindings));
    compiled.filter(|policy| !policy.bindings.is_empty()).collect()
}

fn all(store: &Store, plural: &str) -> Vec<Arc<Stored>> {
    let page = store.list(&format!("{plural}.{GROUP}"), &Range::default());
    page.map(|page| page.items).unwrap_or_default()
}

/// What was made from these objects, made anew if any of them changed.
fn current<T>(
    known: &Mutex<Compiled<T>>,
    objects: &[&Vec<Arc<Stored>>],
    make: impl FnOnce() -> T,
) -> Arc<T> {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let revisions = objects.iter().flat_map(|list| list.iter().map(|object| object.revision));
    if !revisions.clone().eq(known.made_from.iter().copied()) {
        known.made_from = revisions.collect();
        known.result = Arc::new(make());
    }
    Arc::clone(&known.result)
}

fn list<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or("")
}

fn conditions(object: &Value, pointer: &str, has_params: bool) -> Vec<Expression> {
    let scope = variables(has_params, true);
    list(object, pointer).map(|given| Expression::of(given, "expression", &scope)).collect()
}

fn compile_policy(policy: &Value, bindings: &[Value]) -> Policy {
    let name = metadata::name(policy).to_owned();
    let param_kind = policy.pointer("/spec/paramKind").filter(|kind| kind.is_object());
    let has_params = param_kind.is_some();
    let own = |binding: &&Value| {
        binding.pointer("/spec/policyName").and_then(Value::as_str) == Some(name.as_str())
    };
    let mut known: BTreeMap<String, Type> = BTreeMap::new();
    let mut declared = Vec::new();
    for variable in list(policy, "/spec/variables") {
        let scope = [variables(has_params, true), vec![composed(&known)]].concat();
        let expression = Expression::of(variable, "expression", &scope);
        known.insert(text(variable, "name").to_owned(), expression.ty());
        declared.push((text(variable, "name").to_owned(), expression));
    }
    let scope =
        |authorizer: bool| [variables(has_params, authorizer), vec![composed(&known)]].concat();
    Policy {
        constraints: policy.pointer("/spec/matchConstraints").cloned().unwrap_or_default(),
        param_kind: param_kind
            .map(|kind| (text(kind, "apiVersion").to_owned(), text(kind, "kind").to_owned())),
        conditions: conditions(policy, "/spec/matchConditions", has_params),
        variables: declared,
        validations: list(policy, "/spec/validations")
            .map(|validation| compile_validation(validation, &scope(true), &scope(false)))
            .collect(),
        annotations: list(policy, "/spec/auditAnnotations")
            .map(|annotation| Expression::of(annotation, "valueExpression", &scope(false)))
            .collect(),
        mutations: list(policy, "/spec/mutations")
            .map(|mutation| compile_mutation(mutation, scope(true)))
            .collect(),
        reinvokes: policy.pointer("/spec/reinvocationPolicy").and_then(Value::as_str)
            == Some("IfNeeded"),
        fails: policy.pointer("/spec/failurePolicy").and_then(Value::as_str) != Some("Ignore"),
        bindings: bindings.iter().filter(own).cloned().collect(),
        name,
    }
}

fn compile_mutation(mutation: &Value, mut scope: Vec<(&'static str, Type)>) -> Mutation {
    let [patched, operation] = patches();
    scope.push(("Object", Type::Meta(Arc::new(patched))));
    scope.push(("JSONPatch", Type::Meta(Arc::new(operation))));
    let expression = |field: &str| Expression::of(&mutation[field], "expression", &scope);
    match text(mutation, "patchType") {
        "JSONPatch" => Mutation::Patch(expression("jsonPatch")),
        _ => Mutation::Apply(expression("applyConfiguration")),
    }
}

fn compile_validation(
    validation: &Value,
    scope: &[(&str, Type)],
    message_scope: &[(&str, Type)],
) -> Validation {
    let has_message = !text(validation, "messageExpression").is_empty();
    Validation {
        expression: Expression::of(validation, "expression", scope),
        message: text(validation, "message").to_owned(),
        message_expression: has_message
            .then(|| Expression::of(validation, "messageExpression", message_scope)),
        reason: match text(validation, "reason") {
            "Forbidden" => "Forbidden",
            "Unauthorized" => "Unauthorized",
            "RequestEntityTooLarge" => "RequestEntityTooLarge",
            _ => "Invalid",
        },
    }
}

fn compile_webhooks(configurations: &[Arc<Stored>]) -> Vec<Webhook> {
    let mut webhooks = Vec::new();
    for configuration in configurations {
        for settings in list(&configuration.value(), "/webhooks") {
            let name = text(settings, "name").to_owned();
            webhooks.push(Webhook {
                id: format!("{}/{name}", configuration.key.name),
                rules: list(settings, "/rules").cloned().collect(),
                conditions: conditions(settings, "/matchConditions", false),
                fails: text(settings, "failurePolicy") != "Ignore",
                timeout: settings.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10),
                settings: settings.clone(),
                name,
            });
        }
    }
    webhooks
}
