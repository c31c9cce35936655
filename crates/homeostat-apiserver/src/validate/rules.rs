//! CEL rules of custom resources (`x-kubernetes-validations`), compiled once per definition.
//!
//! The walk is ours, so that `oldSelf` is the same item of a keyed list and the order of errors is
//! fixed; a single node's rules are compiled and evaluated by `kube-cel`.

use std::collections::BTreeMap;

use kube_cel::{CompiledSchema, ErrorKind, ValidationError};
use serde_json::{Map, Value, json};

use super::{join, schema::old_item};
use crate::field::{FieldError, Reason};
use crate::kinds::Kind;
use crate::schema::{NodeId, Schema, Type};

/// The compiled rules of one schema, by the node they stand on. Empty by default.
#[derive(Debug, Default)]
pub struct Rules {
    nodes: BTreeMap<NodeId, CompiledSchema>,
}

impl Rules {
    /// Compiles every rule below the schema, which must be a tree. A rule that does not compile
    /// is kept and refuses every object; it is found when the definition is written.
    #[must_use]
    pub fn compile(schema: Schema<'_>) -> Self {
        let mut rules = Self::default();
        rules.collect(schema);
        rules
    }

    fn collect(&mut self, schema: Schema<'_>) {
        let node = schema.node();
        if !node.rules.is_empty() {
            let mut document = document(schema);
            let rules: Vec<Value> = node.rules.iter().map(rule_document).collect();
            document["x-kubernetes-validations"] = Value::Array(rules);
            self.nodes.insert(schema.id(), kube_cel::compile_schema(&document));
        }
        for id in node.properties.values().chain(&node.additional).chain(&node.items) {
            self.collect(schema.sibling(*id));
        }
    }

    fn check(
        &self,
        schema: Schema<'_>,
        value: &Value,
        old: Option<&Value>,
        path: &str,
        errors: &mut Vec<FieldError>,
    ) {
        // what did not change is not judged again
        if old == Some(value) {
            return;
        }
        if let Some(compiled) = self.nodes.get(&schema.id())
            && let Err(broken) = kube_cel::validate_compiled(compiled, value, old)
        {
            errors.extend(broken.iter().map(|error| field_error(error, value, path)));
        }
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    if let Some(field) = schema.field(name) {
                        let before = old.and_then(|old| old.get(name));
                        self.check(field, value, before, &join(path, name), errors);
                    }
                }
            }
            Value::Array(items) => {
                let Some(item_schema) = schema.items() else { return };
                for (index, item) in items.iter().enumerate() {
                    let before = old_item(schema.node(), item, old);
                    self.check(item_schema, item, before, &format!("{path}[{index}]"), errors);
                }
            }
            _ => {}
        }
    }
}

/// Whether there is anything to check.
pub(super) fn has_rules(kind: &Kind) -> bool {
    kind.custom.as_ref().is_some_and(|custom| !custom.rules.nodes.is_empty())
}

/// What the rules of a custom resource refuse. Built-in kinds have none.
#[must_use]
pub fn rules(kind: &Kind, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(custom) = &kind.custom
        && !custom.rules.nodes.is_empty()
    {
        custom.rules.check(kind.schema.root(), value, old, "", &mut errors);
    }
    errors
}

fn field_error(error: &ValidationError, value: &Value, path: &str) -> FieldError {
    let path = match error.field_path.as_str() {
        "" => path.to_owned(),
        below => join(path, below.trim_start_matches('.')),
    };
    let shown = (!value.is_object() && !value.is_array()).then(|| value.clone());
    let detail = match error.kind {
        ErrorKind::ValidationFailure => error.message.trim().to_owned(),
        _ => {
            let why = error.message.trim_start_matches("rule evaluation error: ");
            let why = why.replacen("No such key", "no such key", 1);
            let words = format!("{why} evaluating rule: {}", error.rule.trim());
            let shown = Some(Value::from(super::schema::json_type(value)));
            return FieldError { path, reason: Reason::Invalid, value: shown, detail: words };
        }
    };
    match error.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(path, detail),
        Some("FieldValueRequired") => FieldError::required(path, detail),
        Some("FieldValueDuplicate") => {
            FieldError { path, reason: Reason::Duplicate, value: shown, detail: String::new() }
        }
        _ => FieldError { path, reason: Reason::Invalid, value: shown, detail },
    }
}

fn rule_document(rule: &crate::schema::Rule) -> Value {
    json!({
        "rule": rule.expression,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "reason": rule.reason,
        "fieldPath": rule.field_path,
        "optionalOldSelf": rule.optional_old_self,
    })
}

/// The shape below a node, as far as it decides how values look inside an expression.
fn document(schema: Schema<'_>) -> Value {
    let node = schema.node();
    let mut document = Map::new();
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
