//! What the server fills in: schema defaults of custom resources, and for built-in kinds the
//! values that clients are used to find.
//!
//! It only adds what is absent. It never replaces a value that a user gave, and it never allocates
//! (addresses, ports and names are given elsewhere).

mod blank;
mod derived;
mod pod;
mod published;
mod rows;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::kinds::Kind;
use crate::schema::{Schema, Type, WhenEmpty};

pub(crate) use blank::{blank, empty_lists, fill_blanks};

/// Fills absent fields that have a default in the schema; a `null` where the schema does not allow
/// one counts as absent, and without a default it goes.
pub fn apply_defaults(schema: Schema<'_>, value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (name, id) in &schema.node().properties {
                let field = schema.sibling(*id).node();
                let absent = match object.get(name) {
                    None => true,
                    Some(Value::Null) => !field.nullable && field.ty != Type::Any,
                    Some(_) => false,
                };
                match &field.default {
                    Some(default) if absent => {
                        object.insert(name.clone(), default.clone());
                    }
                    None if absent => {
                        object.shift_remove(name);
                    }
                    _ => {}
                }
            }
            for (name, value) in object.iter_mut() {
                if let Some(field) = schema.field(name) {
                    apply_defaults(field, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = schema.items() {
                items.iter_mut().for_each(|value| apply_defaults(item, value));
            }
        }
        _ => {}
    }
}

/// Fills what a built-in kind is expected to have. Custom resources are left alone.
pub fn builtin(kind: &Kind, value: &mut Value) {
    if kind.custom.is_some() {
        return;
    }
    let root = kind.schema.root();
    published::fill(root, value);
    walk(root, value);
    derived::of_kind(kind, value);
}

/// Rows by the type they belong to.
static ROWS: LazyLock<BTreeMap<&str, Vec<(&str, Value)>>> = LazyLock::new(|| {
    let mut table: BTreeMap<&str, Vec<(&str, Value)>> = BTreeMap::new();
    for (ty, fields) in rows::ROWS {
        let entry = table.entry(ty).or_default();
        for (field, text) in *fields {
            entry.push((field, serde_json::from_str(text).unwrap_or(Value::Null)));
        }
    }
    table
});

fn walk(schema: Schema<'_>, value: &mut Value) {
    let node = schema.node();
    match value {
        Value::Object(object) => {
            let ty = node.name.strip_prefix("io.k8s.api.").unwrap_or(&node.name);
            if let Some(rows) = ROWS.get(ty) {
                for (field, default) in rows {
                    if is_unset(schema, object.get(*field), field) {
                        object.insert((*field).to_owned(), default.clone());
                    }
                }
            }
            derived::of_type(ty, object);
            for (name, value) in object.iter_mut() {
                if let Some(field) = schema.field(name) {
                    walk(field, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = schema.items() {
                items.iter_mut().for_each(|value| walk(item, value));
            }
        }
        _ => {}
    }
}

/// Whether a field was not said. Where absent and zero are two things, zero was.
fn is_unset(schema: Schema<'_>, value: Option<&Value>, field: &str) -> bool {
    let rule = || schema.field(field).map(|field| field.node().when_empty);
    match value {
        None | Some(Value::Null) => true,
        zero => is_zero(zero) && matches!(rule(), Some(WhenEmpty::Dropped | WhenEmpty::Zero)),
    }
}

/// Whether it is what a text or a number is when nobody sets it.
fn is_zero(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Node, Schemas};
    use serde_json::json;

    #[test]
    fn every_row_is_json() {
        for (ty, fields) in rows::ROWS {
            for (field, text) in *fields {
                assert!(serde_json::from_str::<Value>(text).is_ok(), "{ty}.{field}: {text}");
            }
        }
    }

    #[test]
    fn schema_defaults_fill_nested_fields_and_respect_null_only_where_it_is_allowed() {
        let mut schemas = Schemas::default();
        let inner =
            schemas.add(Node { ty: Type::Integer, default: Some(json!(7)), ..Node::default() });
        let nullable = schemas.add(Node {
            ty: Type::Integer,
            default: Some(json!(1)),
            nullable: true,
            ..Node::default()
        });
        let outer = schemas.add(Node {
            ty: Type::Object,
            default: Some(json!({})),
            properties: [("n".to_owned(), inner), ("may".to_owned(), nullable)].into(),
            ..Node::default()
        });
        let root = schemas.add(Node {
            ty: Type::Object,
            properties: [("spec".to_owned(), outer)].into(),
            ..Node::default()
        });
        let mut absent = json!({});
        apply_defaults(schemas.at(root), &mut absent);
        assert_eq!(absent, json!({"spec": {"n": 7, "may": 1}}));
        let mut nulls = json!({"spec": {"n": null, "may": null}});
        apply_defaults(schemas.at(root), &mut nulls);
        assert_eq!(nulls, json!({"spec": {"n": 7, "may": null}}));
    }
}
