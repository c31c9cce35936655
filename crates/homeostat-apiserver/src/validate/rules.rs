//! CEL rules of custom resources (`x-kubernetes-validations`), compiled once per definition.
//!
//! One object has one budget: when its rules have cost that much, no more of them are asked.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::join;
use super::schema::{NOWHERE, OldItems};
use crate::aside;
use crate::field::{FieldError, Reason};
use crate::kinds::Kind;
use crate::schema::{ListType, NodeId, Rule, Schema, Type};
use homeostat_cel::{self as cel, Decl, Fault, Lists, Program, Scope};

/// What all rules may cost together for one object.
const BUDGET: u64 = 10_000_000;
/// Longer messages are not shown.
const LONGEST_MESSAGE: usize = 5 * 1024;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The compiled rules of one schema, by the node they stand on. Empty by default.
#[derive(Debug, Default)]
pub struct Rules {
    nodes: BTreeMap<NodeId, NodeRules>,
}

#[derive(Debug)]
struct NodeRules {
    /// What `self` is.
    decl: Decl,
    rules: Vec<Compiled>,
}

/// A rule. What does not compile is kept and refuses every object; it is found when the definition
/// is written.
#[derive(Debug)]
struct Compiled {
    rule: Rule,
    program: Result<Program, String>,
    message: Option<Program>,
}

/// Nothing is left to pay for more rules.
struct Spent;

impl Rules {
    /// Compiles every rule below the schema, which must be a tree.
    #[must_use]
    pub fn compile(schema: Schema<'_>) -> Self {
        let mut rules = Self::default();
        rules.collect(schema, true);
        rules
    }

    fn collect(&mut self, schema: Schema<'_>, is_root: bool) {
        let node = schema.node();
        if !node.rules.is_empty()
            && let Some(decl) =
                Decl::of(&document(schema), is_root || node.embedded_resource, "selfType")
        {
            let rules = node.rules.iter().map(|rule| Compiled::new(rule, &decl.ty)).collect();
            self.nodes.insert(schema.id(), NodeRules { decl, rules });
        }
        for id in node.properties.values().chain(&node.additional).chain(&node.items) {
            self.collect(schema.sibling(*id), false);
        }
    }
}

impl Compiled {
    fn new(rule: &Rule, own: &cel::Type) -> Self {
        let old = match rule.optional_old_self {
            true => cel::Type::optional(own.clone()),
            false => own.clone(),
        };
        let variables = [("self", own.clone()), ("oldSelf", old)];
        let compile = |text: &str| Program::compile(text, &variables);
        let message = rule.message_expression.as_deref().filter(|text| !text.is_empty());
        Self {
            program: compile(&rule.expression),
            message: message.and_then(|text| compile(text).ok()),
            rule: rule.clone(),
        }
    }

    fn uses_old(&self) -> bool {
        self.program.as_ref().is_ok_and(|program| program.uses("oldSelf"))
    }

    /// What is said of it in errors.
    fn name(&self) -> &str {
        match self.rule.message.as_deref().filter(|message| !message.is_empty()) {
            Some(message) => message.trim(),
            None => self.rule.expression.trim(),
        }
    }
}

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
    kind.custom.as_ref().is_some_and(|custom| !custom.rules.nodes.is_empty())
}

/// What the rules of a custom resource refuse. Built-in kinds have none. Rules that are broken by
/// what did not change are `forgiven`.
pub fn rules(
    kind: &Kind,
    value: &Value,
    old: Option<&Value>,
    forgiven: &mut Vec<FieldError>,
) -> Vec<FieldError> {
    let Some(custom) = kind.custom.as_ref().filter(|custom| !custom.rules.nodes.is_empty()) else {
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
    let custom = kind.custom.as_ref().filter(|custom| !custom.rules.nodes.is_empty());
    let Some(custom) = custom else { return Some(Vec::new()) };
    if !aside::is_small(value) || old.is_some_and(|old| !aside::is_small(old)) {
        return None;
    }
    let mut check = Check::new(&custom.rules, Some(aside::SHORT_IN_ALL), forgiven);
    let _ = check.node(kind.schema.root(), value, old, "", false);
    (!check.gave_up).then_some(check.errors)
}

/// The check of one object.
struct Check<'a> {
    rules: &'a Rules,
    left: u64,
    errors: Vec<FieldError>,
    forgiven: &'a mut Vec<FieldError>,
    /// What may be spent before it is given up; everything if there is no such amount.
    short: Option<u64>,
    gave_up: bool,
}

impl<'a> Check<'a> {
    fn new(rules: &'a Rules, short: Option<u64>, forgiven: &'a mut Vec<FieldError>) -> Self {
        Self { rules, left: BUDGET, errors: Vec::new(), forgiven, short, gave_up: false }
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
        let unchanged = unchanged || old == Some(value);
        if let Some(node) = self.rules.nodes.get(&schema.id()) {
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
        if self.left == 0 {
            self.errors.push(trouble(OUT_OF_BUDGET.to_owned()));
            return Err(Spent);
        }
        let mut lists = Lists::default();
        let new = cel::typed(value, &node.decl, &mut lists);
        let old = old.map(|old| cel::typed(old, &node.decl, &mut lists));
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
                    let path = match compiled.rule.field_path.as_deref() {
                        None | Some("") => here.to_owned(),
                        Some(below) => join(path, below.trim_start_matches('.')),
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

/// The shape below a node, as far as it decides how values look inside an expression.
fn document(schema: Schema<'_>) -> Value {
    let node = schema.node();
    let mut document = Map::new();
    document.insert("type".to_owned(), type_name(node.ty).into());
    if !node.properties.is_empty() {
        let fields = node
            .properties
            .iter()
            .map(|(name, id)| (name.clone(), self::document(schema.sibling(*id))));
        document.insert("properties".to_owned(), Value::Object(fields.collect()));
    }
    if let Some(values) = node.additional {
        document.insert("additionalProperties".to_owned(), self::document(schema.sibling(values)));
    }
    if let Some(items) = node.items {
        document.insert("items".to_owned(), self::document(schema.sibling(items)));
    }
    if let Some(format) = &node.bounds.format {
        document.insert("format".to_owned(), json!(format));
    }
    match &node.list_type {
        ListType::Atomic => {}
        ListType::Set => drop(document.insert("x-kubernetes-list-type".to_owned(), "set".into())),
        ListType::Map(keys) => {
            document.insert("x-kubernetes-list-type".to_owned(), "map".into());
            document.insert("x-kubernetes-list-map-keys".to_owned(), json!(keys));
        }
    }
    let flags = [
        ("x-kubernetes-int-or-string", node.ty == Type::IntOrString),
        ("x-kubernetes-preserve-unknown-fields", node.preserve_unknown),
        ("x-kubernetes-embedded-resource", node.embedded_resource),
    ];
    for (name, _) in flags.into_iter().filter(|(_, set)| *set) {
        document.insert(name.to_owned(), Value::Bool(true));
    }
    Value::Object(document)
}
