//! Expressions of policies and match conditions: compiled once, evaluated against one request.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, MapEntryExpr, MapExpr};
use kube_cel::cel::common::types::CelString;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Program, Value as Cel};

use serde_json::Value;

/// One expression; what does not compile is kept, and fails whenever it is evaluated.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    root: Result<IdedExpr, String>,
}

impl Expression {
    pub(super) fn new(text: &str) -> Self {
        let root = Program::compile(text)
            .map(|program| without_structs(program.expression().clone()))
            .map_err(|error| error.to_string());
        Self { text: text.to_owned(), root }
    }

    /// The expression in a field of an object.
    pub(super) fn of(object: &Value, field: &str) -> Self {
        Self::new(object.get(field).and_then(Value::as_str).unwrap_or(""))
    }

    /// The value, or why there is none, in the API's words.
    pub(super) fn evaluate(&self, bound: &Bound) -> Result<Cel, String> {
        self.resolve(bound).map_err(|error| match &self.root {
            Ok(_) => format!("expression '{}' resulted in error: {error}", self.text),
            Err(_) => format!("compilation error: {error}"),
        })
    }

    fn resolve(&self, bound: &Bound) -> Result<Cel, String> {
        let root = self.root.as_ref().map_err(Clone::clone)?;
        Cel::resolve(root, &bound.context).map_err(|error| {
            let error = error.to_string();
            let Some(key) = error.strip_prefix("No such key: ") else { return error };
            match bound.failed.get(key) {
                Some(why) if self.text.contains(&format!("variables.{key}")) => {
                    format!("composited variable {key:?} fails to evaluate: {why}")
                }
                _ => format!("no such key: {key}"),
            }
        })
    }
}

/// Objects that expressions build (`Object{…}`, `JSONPatch{…}`) are maps here: nothing is known of
/// their types, and JSON is what they become.
fn without_structs(mut node: IdedExpr) -> IdedExpr {
    node.expr = match node.expr {
        Expr::Struct(object) => {
            let entries = object.entries.into_iter().map(|mut entry| {
                if let EntryExpr::StructField(field) = entry.expr {
                    let name = LiteralValue::String(CelString::from(field.field));
                    entry.expr = EntryExpr::MapEntry(MapEntryExpr {
                        key: IdedExpr { id: entry.id, expr: Expr::Literal(name) },
                        value: without_structs(field.value),
                        optional: field.optional,
                    });
                }
                entry
            });
            Expr::Map(MapExpr { entries: entries.collect() })
        }
        Expr::Map(mut map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    entry.value = without_structs(std::mem::take(&mut entry.value));
                }
            }
            Expr::Map(map)
        }
        Expr::List(mut list) => {
            list.elements = list.elements.into_iter().map(without_structs).collect();
            Expr::List(list)
        }
        Expr::Call(mut call) => {
            call.args = call.args.into_iter().map(without_structs).collect();
            call.target = call.target.map(|target| Box::new(without_structs(*target)));
            Expr::Call(call)
        }
        Expr::Comprehension(mut walk) => {
            walk.iter_range = without_structs(std::mem::take(&mut walk.iter_range));
            walk.loop_step = without_structs(std::mem::take(&mut walk.loop_step));
            walk.result = without_structs(std::mem::take(&mut walk.result));
            Expr::Comprehension(walk)
        }
        other => other,
    };
    node
}

/// Everything an expression may speak of. Absent things are null.
pub(super) struct Scope<'a> {
    pub(super) object: &'a Value,
    pub(super) old_object: &'a Value,
    pub(super) request: &'a Value,
    pub(super) params: &'a Value,
    pub(super) namespace: &'a Value,
}

/// A scope with the variables of a policy.
pub(super) struct Bound {
    context: Context<'static>,
    /// Why variables have no value, by their name.
    failed: BTreeMap<String, String>,
}

impl Scope<'_> {
    /// The scope with the variables of a policy, each of which may use those before it. One that
    /// fails is missing, so whatever uses it fails too.
    pub(super) fn bind(&self, variables: &[(String, Expression)]) -> Bound {
        let mut context = Context::default().with_all();
        context.add_variable_from_value("object", value(self.object));
        context.add_variable_from_value("oldObject", value(self.old_object));
        context.add_variable_from_value("request", value(self.request));
        context.add_variable_from_value("params", value(self.params));
        context.add_variable_from_value("namespaceObject", value(self.namespace));
        let mut bound = Bound { context, failed: BTreeMap::new() };
        let mut known: Vec<(String, Cel)> = Vec::new();
        for (name, expression) in variables {
            bound.context.add_variable_from_value("variables", map(known.clone()));
            match expression.resolve(&bound) {
                Ok(value) => known.push((name.clone(), value)),
                Err(why) => drop(bound.failed.insert(name.clone(), why)),
            }
        }
        bound.context.add_variable_from_value("variables", map(known));
        bound
    }
}

/// JSON as expressions see it: whole numbers are signed, and names are as they are.
fn value(json: &Value) -> Cel {
    match json {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(signed), _) => Cel::Int(signed),
            (None, Some(unsigned)) => Cel::UInt(unsigned),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(value).collect())),
        Value::Object(fields) => {
            map(fields.iter().map(|(name, field)| (name.clone(), value(field))))
        }
    }
}

fn map(fields: impl IntoIterator<Item = (String, Cel)>) -> Cel {
    let fields = fields.into_iter().map(|(name, field)| (Key::String(Arc::new(name)), field));
    Cel::Map(Map { map: Arc::new(fields.collect()) })
}

/// Whether every condition holds: `Ok(false)` as soon as one does not, otherwise the errors of
/// those that have no answer.
pub(super) fn conditions_hold(conditions: &[Expression], scope: &Bound) -> Result<bool, String> {
    let mut errors = Vec::new();
    for condition in conditions {
        match condition.evaluate(scope) {
            Ok(Cel::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
    }
    match &errors[..] {
        [] => Ok(true),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}
