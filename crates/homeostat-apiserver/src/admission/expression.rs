//! Expressions of policies and match conditions: compiled once, evaluated against one request, as
//! long as the budget lasts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use homeostat_cel::Value as Cel;
use serde_json::Value;

use super::access::Access;
use super::hearing::Evidence;
use crate::aside;
use homeostat_cel::{self as cel, Fault, Program, Run, Type};

/// What the expressions of one policy may cost together for one request.
pub(super) const BUDGET: u64 = 10_000_000;
/// The same of all match conditions.
const CONDITIONS_BUDGET: u64 = 2_500_000;
/// What is said when a budget is spent.
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// One expression; what does not compile is kept, and fails whenever it is evaluated.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    program: Result<Program, String>,
}

impl Expression {
    /// The expression in a field of an object, which may speak of `variables`.
    pub(super) fn of(object: &Value, field: &str, variables: &[(&str, Type)]) -> Self {
        let text = object.get(field).and_then(Value::as_str).unwrap_or("");
        Self { text: text.to_owned(), program: Program::compile(text, variables) }
    }

    /// The type of its value, as far as it is known.
    pub(super) fn ty(&self) -> Type {
        self.program.as_ref().map_or(Type::Dyn, |program| program.ty().clone())
    }

    /// The value, or why there is none, in the API's words.
    ///
    /// # Errors
    /// What is said when the budget is spent; then nothing more is evaluated.
    pub(super) fn evaluate(
        &self,
        scope: &Scope<'_>,
        left: &mut u64,
    ) -> Result<Result<Cel, String>, String> {
        let program = match &self.program {
            Ok(program) => program,
            Err(why) => return Ok(Err(format!("compilation error: {why}"))),
        };
        let run = scope.given.pace.run(program, scope);
        let cost = run.cost.saturating_add(scope.cost.take());
        *left = left.checked_sub(cost).ok_or(OUT_OF_BUDGET)?;
        if scope.given.pace.gave_up.get() {
            // Nobody will read it.
            return Err(String::new());
        }
        Ok(run
            .result
            .map_err(|fault| format!("expression '{}' resulted in error: {fault}", self.text)))
    }
}

/// How long expressions may take.
#[derive(Debug)]
pub(super) struct Pace {
    /// What they may still cost; as much as they like if there is no such amount.
    left: Option<Cell<u64>>,
    gave_up: Cell<bool>,
}

impl Pace {
    /// As long as it takes.
    pub(super) fn unhurried() -> Self {
        Self { left: None, gave_up: Cell::new(false) }
    }

    /// A moment: what costs more is given up, and whatever comes of it means nothing.
    pub(super) fn short(left: u64) -> Self {
        Self { left: Some(Cell::new(left)), gave_up: Cell::new(false) }
    }

    /// What is left of a moment; nothing if it was too short.
    pub(super) fn left(&self) -> Option<u64> {
        self.left.as_ref().map(Cell::get).filter(|_| !self.gave_up.get())
    }

    fn run(&self, program: &Program, scope: &Scope<'_>) -> Run {
        let Some(left) = &self.left else { return aside::run(program, scope) };
        let run = program.run_within(scope, aside::SHORT.min(left.get()));
        // What it asked for meanwhile has been paid.
        left.set(left.get().saturating_sub(run.cost));
        if run.result == Err(Fault::Exceeded) {
            self.gave_up.set(true);
        }
        run
    }
}

/// Everything an expression may speak of. Absent things are null.
#[derive(Clone)]
pub(super) struct Given<'a> {
    pub(super) object: Cel,
    pub(super) old_object: Cel,
    pub(super) request: Cel,
    pub(super) params: Cel,
    pub(super) namespace: Cel,
    /// Whom they ask who may do what; not all have somebody.
    access: Option<&'a Access<'a>>,
    pace: &'a Pace,
}

impl<'a> Given<'a> {
    pub(super) fn new(evidence: &Evidence, access: &'a Access<'a>, pace: &'a Pace) -> Self {
        let (object, old_object) = &*evidence.shown;
        Self {
            object: cel::untyped(object),
            old_object: cel::untyped(old_object),
            request: cel::untyped(&evidence.request),
            params: cel::untyped(&evidence.params),
            namespace: cel::untyped(&evidence.namespace),
            access: Some(access),
            pace,
        }
    }

    /// The same, without an `authorizer`.
    pub(super) fn asking_nobody(&self) -> Self {
        Self { access: None, ..self.clone() }
    }

    /// A scope with the variables of a policy.
    pub(super) fn with(&self, variables: &'a [(String, Expression)]) -> Scope<'a> {
        Scope { given: self.clone(), variables, known: RefCell::default(), cost: Cell::default() }
    }
}

/// What one round of expressions sees. Variables of a policy are evaluated when they are first
/// asked for.
pub(super) struct Scope<'a> {
    given: Given<'a>,
    variables: &'a [(String, Expression)],
    known: RefCell<BTreeMap<String, Result<Cel, String>>>,
    /// What variables cost since somebody looked.
    cost: Cell<u64>,
}

impl cel::Scope for Scope<'_> {
    fn variable(&self, name: &str) -> Option<Cel> {
        let given = &self.given;
        Some(match name {
            "object" => given.object.clone(),
            "oldObject" => given.old_object.clone(),
            "request" => given.request.clone(),
            "params" => given.params.clone(),
            "namespaceObject" => given.namespace.clone(),
            "authorizer" => given.access.map(|_| cel::authorizer())?,
            "authorizer.requestResource" => cel::about_resource(given.access?.own.clone()),
            _ => return None,
        })
    }

    fn decide(&self, question: &cel::Question) -> cel::Decision {
        let access = self.given.access;
        access.map_or_else(cel::Decision::default, |access| access.answer(question))
    }

    fn composed(&self, name: &str) -> Result<Cel, String> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let found = self.variables.iter().find(|(own, _)| own == name);
        let Some((_, expression)) = found else { return Err(format!("no such key: {name}")) };
        let value = match &expression.program {
            Err(why) => Err(format!("composited variable {name:?} fails to compile: {why}")),
            Ok(program) => {
                let run = self.given.pace.run(program, self);
                self.cost.set(self.cost.get().saturating_add(run.cost));
                run.result.map_err(|fault| {
                    format!("composited variable {name:?} fails to evaluate: {fault}")
                })
            }
        };
        self.known.borrow_mut().insert(name.to_owned(), value.clone());
        value
    }
}

/// Whether every condition holds. Conditions see no namespace.
///
/// # Errors
/// Those of conditions that have no answer, unless another one does not hold.
pub(super) fn conditions_hold(
    conditions: &[Expression],
    given: &Given<'_>,
) -> Result<bool, String> {
    let scope = Given { namespace: Cel::Null, ..given.clone() }.with(&[]);
    let mut left = CONDITIONS_BUDGET;
    let mut answers = Vec::with_capacity(conditions.len());
    for condition in conditions {
        answers.push(condition.evaluate(&scope, &mut left)?);
    }
    if answers.contains(&Ok(Cel::Bool(false))) {
        return Ok(false);
    }
    let errors: Vec<String> = answers.into_iter().filter_map(Result::err).collect();
    match &errors[..] {
        [] => Ok(true),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}
