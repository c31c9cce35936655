//! What the CEL rules of custom resources (`x-kubernetes-validations`) say of values.
//!
//! One object has one budget: when its rules have cost that much, no more of them are asked.

use serde_json::Value;

use super::compiled::{Compiled, NodeRules, Rules};
use super::schema::{NOWHERE, OldItems};
use super::{builtin, join};
use crate::aside;
use crate::custom;
use crate::field::{FieldError, Reason};
use crate::kinds::Kind;
use crate::schema::{Schema, Type};
use homeostat_cel::{self as cel, Fault, Lists, Program, Scope};

/// What all rules may cost together for one object.
const BUDGET: u64 = 10_000_000;
/// Longer messages are not shown.
const LONGEST_MESSAGE: usize = 5 * 1024;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

const UNSEEN: &str = "rule compiler initialization error: failed to convert to declType for CEL \
                      validation rules";

/// Nothing is left to pay for more rules.
struct Spent;

/// `self`, and the same before.
struct Selves<'a> {
    new: homeostat_cel::Value,
    old: Option<homeostat_cel::Value>,
    lists: &'a Lists,
}

impl Scope for Selves<'_> {
    fn variable(&self, name: &str) -> Option<homeostat_cel::Value> {
        match name {
            "self" => Some(self.new.clone()),
            "oldSelf" => self.old.clone(),
            _ => None,
        }
    }

    fn lists(&self) -> Option<&Lists> {
        Some(self.lists)
    }
}

/// Whether there is anything to check.
pub(super) fn has_rules(kind: &Kind) -> bool {
    kind.custom.as_ref().is_some_and(|custom| !custom.rules.is_empty())
}

/// Whether an object is a definition whose own rules judge its defaults, which may take long.
pub(super) fn judge_definition(kind: &Kind, value: &Value) -> bool {
    kind.is("customresourcedefinitions.apiextensions.k8s.io")
        && kind.custom.is_none()
        && custom::has_ruled_defaults(value)
}

/// What the rules of a custom resource refuse. Built-in kinds have none, but of definitions with rules
/// for their defaults all is judged here. Rules that are broken by what did not change are `forgiven`.
pub fn rules(
    kind: &Kind,
    value: &Value,
    old: Option<&Value>,
    forgiven: &mut Vec<FieldError>,
) -> Vec<FieldError> {
    if judge_definition(kind, value) {
        return builtin(kind, value, old);
    }
    let Some(custom) = kind.custom.as_ref().filter(|custom| !custom.rules.is_empty()) else {
        return Vec::new();
    };
    let mut check = Check::new(&custom.rules, None, forgiven);
    // Why it ended early is among the errors.
    let _ = aside::judge(value, || check.node(kind.schema.root(), value, old, "", false));
    check.errors
}

/// The same, unless it would take long.
pub(crate) fn short_rules(
    kind: &Kind,
    value: &Value,
    old: Option<&Value>,
    forgiven: &mut Vec<FieldError>,
) -> Option<Vec<FieldError>> {
    if judge_definition(kind, value) {
        return None;
    }
    let custom = kind.custom.as_ref().filter(|custom| !custom.rules.is_empty());
    let Some(custom) = custom else { return Some(Vec::new()) };
    if !aside::is_small(value) || old.is_some_and(|old| !aside::is_small(old)) {
        return None;
    }
    let mut check = Check::new(&custom.rules, Some(aside::SHORT_IN_ALL), forgiven);
    let _ = check.node(kind.schema.root(), value, old, "", false);
    (!check.gave_up).then_some(check.errors)
}

/// The rules that judge the defaults of one schema. They have one budget, too.
#[derive(Debug)]
pub(crate) struct Defaults {
    left: Option<u64>,
}

impl Defaults {
    pub(crate) fn new() -> Self {
        Self { left: Some(BUDGET) }
    }

    /// Whether nothing is left to pay for more rules.
    pub(crate) fn is_spent(&self) -> bool {
        self.left.is_none()
    }

    /// What the rules refuse of a default: as a value that stays what it is, and as a new one.
    pub(crate) fn judge(
        &mut self,
        rules: &Rules,
        schema: Schema<'_>,
        default: &Value,
        path: &str,
    ) -> Vec<FieldError> {
        let Some(budget) = self.left.filter(|_| !rules.is_empty()) else { return Vec::new() };
        let mut errors = Vec::new();
        for old in [Some(default), None] {
            let mut forgiven = Vec::new();
            let mut check = Check::new(rules, None, &mut forgiven);
            (check.left, check.ratchets) = (budget, false);
            let ended = aside::judge(default, || check.node(schema, default, old, path, false));
            let left = ended.is_ok().then_some(check.left);
            self.left = self.left.min(left);
            errors.append(&mut check.errors);
            if !errors.is_empty() {
                break;
            }
        }
        errors
    }
}

/// The check of one object.
struct Check<'a> {
    rules: &'a Rules,
    left: u64,
    errors: Vec<FieldError>,
    forgiven: &'a mut Vec<FieldError>,
    /// Whether rules that are broken by what did not change are forgiven.
    ratchets: bool,
    /// What may be spent before it is given up; everything if there is no such amount.
    short: Option<u64>,
    gave_up: bool,
}

impl<'a> Check<'a> {
    fn new(rules: &'a Rules, short: Option<u64>, forgiven: &'a mut Vec<FieldError>) -> Self {
        let (left, errors) = (BUDGET, Vec::new());
        Self { rules, left, errors, forgiven, ratchets: true, short, gave_up: false }
    }

    /// Runs an expression, unless that takes longer than it may.
    fn run(&mut self, program: &Program, scope: &Selves<'_>) -> Result<cel::Run, Spent> {
        let Some(left) = self.short else { return Ok(aside::run(program, scope)) };
        let run = program.run_within(scope, aside::SHORT.min(left));
        self.gave_up = run.result == Err(Fault::Exceeded);
        self.short = Some(left.saturating_sub(run.cost));
        if self.gave_up { Err(Spent) } else { Ok(run) }
    }

    /// Checks a value and what is in it. `unchanged` says it of what it is in.
    fn node(
        &mut self,
        schema: Schema<'_>,
        value: &Value,
        old: Option<&Value>,
        path: &str,
        unchanged: bool,
    ) -> Result<(), Spent> {
        if value.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        let unchanged = unchanged || (self.ratchets && old == Some(value));
        if let Some(node) = self.rules.of(schema.id()) {
            self.own_rules(schema, node, value, old, path, unchanged)?;
        }
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    let Some(field) = schema.field(name) else { continue };
                    let before = old.and_then(|old| old.get(name));
                    let is_key = !schema.node().properties.contains_key(name);
                    let path = if is_key { format!("{path}[{name}]") } else { join(path, name) };
                    self.node(field, value, before, &path, unchanged)?;
                }
            }
            Value::Array(items) => {
                let Some(item_schema) = schema.items() else { return Ok(()) };
                let before = OldItems::of(schema.node(), old);
                for (index, item) in items.iter().enumerate() {
                    let before = before.find(item);
                    let path = format!("{path}[{index}]");
                    self.node(item_schema, item, before, &path, unchanged)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn pay(&mut self, cost: u64) -> bool {
        let enough = cost <= self.left;
        self.left = self.left.saturating_sub(cost);
        enough
    }

    fn own_rules(
        &mut self,
        schema: Schema<'_>,
        node: &NodeRules,
        value: &Value,
        old: Option<&Value>,
        path: &str,
        unchanged: bool,
    ) -> Result<(), Spent> {
        let kind = type_name(schema.node().ty);
        let here = if path.is_empty() { NOWHERE } else { path };
        let trouble = |detail: String| FieldError {
            path: here.to_owned(),
            reason: Reason::Invalid,
            value: Some(kind.into()),
            detail,
        };
        let Some(decl) = &node.decl else {
            self.errors.push(trouble(UNSEEN.to_owned()));
            return Ok(());
        };
        if self.left == 0 {
            self.errors.push(trouble(OUT_OF_BUDGET.to_owned()));
            return Err(Spent);
        }
        let mut lists = Lists::default();
        let new = cel::typed(value, decl, &mut lists);
        let old = old.map(|old| cel::typed(old, decl, &mut lists));
        let (plain, optional) = (
            Selves { new: new.clone(), old: old.clone(), lists: &lists },
            Selves { new, old: Some(cel::maybe(old.clone())), lists: &lists },
        );
        for compiled in &node.rules {
            let program = match &compiled.program {
                Ok(program) => program,
                Err(why) => {
                    self.errors.push(trouble(format!("rule compile error: {why}")));
                    continue;
                }
            };
            let is_optional = compiled.rule.optional_old_self;
            if compiled.uses_old() && old.is_none() && !is_optional {
                continue;
            }
            let run = self.run(program, if is_optional { &optional } else { &plain })?;
            if !self.pay(run.cost) {
                self.errors.push(trouble(OUT_OF_BUDGET.to_owned()));
                return Err(Spent);
            }
            match run.result {
                Ok(homeostat_cel::Value::Bool(true)) => {}
                Err(Fault::Exceeded) => {
                    self.errors.push(trouble(format!(
                        "'{}': no further validation rules will be run due to call cost exceeds \
                         limit for rule: {}",
                        Fault::Exceeded,
                        compiled.name()
                    )));
                    return Err(Spent);
                }
                Err(Fault::Failed(why)) if why.starts_with("no such overload") => {
                    self.errors.push(trouble(format!(
                        "'{why}': call arguments did not match a supported operator, function or \
                         macro signature for rule: {}",
                        compiled.name()
                    )));
                }
                Err(Fault::Failed(why)) => {
                    let detail = format!("{why} evaluating rule: {}", compiled.name());
                    self.errors.push(trouble(detail));
                }
                Ok(_) => {
                    let path = match compiled.place.as_str() {
                        "" => here.to_owned(),
                        below => join(path, below),
                    };
                    let (error, spent) = match self.message(compiled, &plain) {
                        Ok(message) => (broken(compiled, path, value, message), Ok(())),
                        Err(detail) => (FieldError { path, ..trouble(detail) }, Err(Spent)),
                    };
                    // What did not change is not held against anybody.
                    if compiled.uses_old() || !unchanged {
                        self.errors.push(error);
                    } else {
                        self.forgiven.push(error);
                    }
                    spent?;
                }
            }
        }
        Ok(())
    }

    /// The message of a broken rule, or that it cost too much to find.
    fn message(&mut self, compiled: &Compiled, selves: &Selves<'_>) -> Result<String, String> {
        let otherwise = match compiled.rule.message.as_deref() {
            None | Some("") => format!("failed rule: {}", compiled.rule.expression.trim()),
            Some(message) => message.trim().to_owned(),
        };
        let Some(program) = &compiled.message else { return Ok(otherwise) };
        let Ok(run) = self.run(program, selves) else { return Err(String::new()) };
        if !self.pay(run.cost) {
            return Err(
                "messageExpression evaluation failed due to running out of cost budget, no \
                        further validation rules will be run"
                    .to_owned(),
            );
        }
        match run.result {
            Err(Fault::Exceeded) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for \
                 messageExpression: {:?}",
                compiled.rule.message_expression.as_deref().unwrap_or_default()
            )),
            Ok(homeostat_cel::Value::String(text)) => {
                let text = text.trim();
                let fits =
                    !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n');
                Ok(if fits { text.to_owned() } else { otherwise })
            }
            _ => Ok(otherwise),
        }
    }
}

fn broken(compiled: &Compiled, path: String, value: &Value, detail: String) -> FieldError {
    let shown = (!value.is_object() && !value.is_array()).then(|| value.clone());
    match compiled.rule.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(path, detail),
        Some("FieldValueRequired") => FieldError::required(path, detail),
        Some("FieldValueDuplicate") => {
            FieldError { path, reason: Reason::Duplicate, value: shown, detail: String::new() }
        }
        _ => FieldError { path, reason: Reason::Invalid, value: shown, detail },
    }
}

/// What a schema calls a type.
fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Object => "object",
        Type::Array => "array",
        Type::String => "string",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
        Type::Any | Type::IntOrString => "",
    }
}
