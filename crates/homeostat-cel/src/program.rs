//! An expression that was checked and can be run, as often as one likes.

use std::collections::BTreeMap;

use kube_cel::cel::Value;
use kube_cel::cel::common::ast::operators as named;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr};

use super::authorization::{Decision, Question};
use super::check::{Checked, Variables, check};
use super::lists::Lists;
use super::run::Machine;
use super::source::Source;
use super::types::Type;
use super::{functions, values};

/// What one expression may cost when it is run.
const CALL_LIMIT: u64 = 1_000_000;

/// What expressions may speak of while they run.
pub trait Scope {
    /// The value of a variable; `None` where it has none.
    fn variable(&self, name: &str) -> Option<Value>;

    /// The value of `variables.name`, or why it has none. Nobody knows any by default.
    fn composed(&self, name: &str) -> Result<Value, String> {
        Err(format!("no such key: {name}"))
    }

    /// Which lists among the values are sets or maps. None by default.
    fn lists(&self) -> Option<&Lists> {
        None
    }

    /// Whether somebody may do something; asked only where `authorizer` has a value. Nobody knows
    /// by default.
    fn decide(&self, _question: &Question) -> Decision {
        Decision { error: Some("no authorizer".to_owned()), ..Decision::default() }
    }
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// What it asks for cannot be done, in the words of cel-go.
    Failed(String),
    /// It cost more than one expression may.
    Exceeded,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed(why) => f.write_str(why),
            Self::Exceeded => f.write_str("operation cancelled: actual cost limit exceeded"),
        }
    }
}

/// A run of an expression.
#[derive(Debug)]
pub struct Run {
    /// The value, or why there is none.
    pub result: Result<Value, Fault>,
    /// What it cost, also when it failed.
    pub cost: u64,
}

/// A checked expression.
#[derive(Debug)]
pub struct Program {
    pub(super) root: IdedExpr,
    pub(super) checked: Checked,
    /// Nodes whose value does not depend on anything. They cost nothing.
    pub(super) constants: BTreeMap<u64, Value>,
}

impl Program {
    /// Reads and checks an expression about `variables`.
    ///
    /// # Errors
    /// All mistakes, in the form of cel-go.
    pub fn compile(text: &str, variables: Variables<'_>) -> Result<Self, String> {
        let source = Source::parse(text)?;
        let checked = check(&source, variables)?;
        let mut program = Self { root: source.root, checked, constants: BTreeMap::new() };
        let mut constants = BTreeMap::new();
        program.fold(&program.root, &mut constants);
        program.constants = constants;
        Ok(program)
    }

    /// The type of what it gives.
    pub fn ty(&self) -> &Type {
        &self.checked.ty
    }

    /// Whether it speaks of a variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.checked.uses.contains(variable)
    }

    /// Runs it, until it has a value or has cost too much.
    pub fn run(&self, scope: &dyn Scope) -> Run {
        self.run_within(scope, CALL_LIMIT)
    }

    /// The same, with less that it may cost: [`Fault::Exceeded`] says only that it is not enough.
    pub fn run_within(&self, scope: &dyn Scope, limit: u64) -> Run {
        let mut machine = Machine::new(self, scope, limit.min(CALL_LIMIT));
        let result = machine.eval(&self.root);
        Run { result, cost: machine.cost }
    }

    /// The value of a node that is always the same.
    fn fold(&self, node: &IdedExpr, found: &mut BTreeMap<u64, Value>) -> Option<Value> {
        let mut all = |nodes: &[IdedExpr]| -> Option<Vec<Value>> {
            // Every one is folded, also after one that is not constant.
            let values: Vec<_> = nodes.iter().map(|node| self.fold(node, found)).collect();
            values.into_iter().collect()
        };
        let value = match &node.expr {
            Expr::Literal(literal) => Some(values::literal(literal)),
            Expr::Ident(name) => match self.checked.types.get(&node.id) {
                Some(Type::Meta(_)) if !self.uses(name) => Some(values::type_named(name)),
                _ => None,
            },
            Expr::List(list) => {
                let items = all(&list.elements);
                let plain = list.optional_indices.is_empty();
                items.filter(|_| plain).map(|items| Value::List(items.into()))
            }
            Expr::Map(map) => {
                let mut entries = Some(Vec::new());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    let key = self.fold(&entry.key, found).and_then(|key| values::key(&key));
                    let value = self.fold(&entry.value, found).filter(|_| !entry.optional);
                    entries = entries.zip(key.zip(value)).map(|(mut entries, entry)| {
                        entries.push(entry);
                        entries
                    });
                }
                entries.map(values::entries)
            }
            Expr::Call(call) => {
                let target = call.target.iter().map(|target| self.fold(target, found));
                target.for_each(drop);
                self.fold_call(call, found)
            }
            Expr::Select(select) => {
                self.fold(&select.operand, found);
                None
            }
            Expr::Struct(object) => {
                for entry in &object.entries {
                    if let EntryExpr::StructField(field) = &entry.expr {
                        self.fold(&field.value, found);
                    }
                }
                None
            }
            Expr::Comprehension(walk) => {
                let parts = [&walk.iter_range, &walk.accu_init, &walk.loop_cond];
                for part in parts.into_iter().chain([&walk.loop_step, &walk.result]) {
                    self.fold(part, found);
                }
                None
            }
            Expr::Unspecified => None,
        };
        if let Some(value) = &value {
            found.insert(node.id, value.clone());
        }
        value
    }

    /// Conversions of constants are constant, and so is what nothing is in.
    fn fold_call(&self, call: &CallExpr, found: &mut BTreeMap<u64, Value>) -> Option<Value> {
        const CONVERSIONS: &[&str] =
            &["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint"];
        let given: Vec<_> = call.args.iter().map(|node| self.fold(node, found)).collect();
        match (call.func_name.as_str(), &given[..]) {
            (name, [Some(value)]) if call.target.is_none() && CONVERSIONS.contains(&name) => {
                functions::call(name, false, vec![value.clone()]).ok()
            }
            (named::IN, [_, Some(Value::List(items))]) if items.is_empty() => {
                Some(Value::Bool(false))
            }
            _ => None,
        }
    }
}
