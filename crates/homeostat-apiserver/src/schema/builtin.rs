//! The schemas of the built-in types: one arena of generated lines, each of which is read when
//! somebody first comes to its node. It never reads them all: a server would wait for that.
//!
//! A field's default is what the published API says it is. For plain values that are always
//! present in an answer it is their zero value (`""`, `0`, `{}`), so filling defaults gives an
//! object the same shape that kube-apiserver would answer with.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::Value;

use super::{Bounds, ListType, Node, NodeId, PatchRule, Schemas, Type, WhenEmpty};

/// A node per line; those of types come first, in the order of their names, and name them at the end.
static LINES: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("../../data/schemas.jsonl").lines().collect());

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    #[serde(default)]
    name: String,
    #[serde(default, rename = "ref")]
    base: Option<u32>,
    #[serde(default, rename = "type")]
    ty: Option<String>,
    #[serde(default)]
    format: Option<String>,
    #[serde(default)]
    default: Option<Value>,
    #[serde(default)]
    required: Vec<String>,
    #[serde(default, rename = "enum")]
    values_allowed: Vec<Value>,
    #[serde(default)]
    fields: BTreeMap<String, NodeId>,
    #[serde(default)]
    values: Option<NodeId>,
    #[serde(default)]
    items: Option<NodeId>,
    #[serde(default)]
    open: bool,
    #[serde(default)]
    patch: String,
    #[serde(default)]
    merge_key: Option<String>,
    #[serde(default)]
    list_type: String,
    #[serde(default)]
    list_keys: Vec<String>,
    #[serde(default)]
    map_type: String,
    #[serde(default)]
    empty: Option<String>,
}

/// The arena of all built-in types, to be asked by published name
/// (`io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`).
#[must_use]
pub fn schemas() -> &'static Arc<Schemas> {
    static SCHEMAS: LazyLock<Arc<Schemas>> = LazyLock::new(|| {
        // A field's copy of a type carries the type's name; the type comes first and keeps it.
        let types = LINES.iter().map_while(|line| name(line)).map(Cow::Borrowed);
        let names = types.zip((0..).map(NodeId)).collect();
        Arc::new(Schemas::unread(LINES.len(), names, read))
    });
    &SCHEMAS
}

/// The name in the line of a type.
fn name(line: &str) -> Option<&str> {
    line.strip_suffix("\"}")?.rsplit_once("\"name\":\"").map(|(_, name)| name)
}

fn read(schemas: &Schemas, id: NodeId) -> Node {
    #[expect(clippy::expect_used, reason = "compiled-in data, all of it read by a test")]
    let line: Written =
        serde_json::from_str(LINES[id.0 as usize]).expect("a line of the generated schemas");
    // Types come first, so what a field lays its rules over is no field.
    let base = line.base.filter(|base| *base < id.0);
    let base = base.map(|base| schemas.at(NodeId(base)).node().clone()).unwrap_or_default();
    node(line, base)
}

fn node(line: Written, base: Node) -> Node {
    let list_type = match (line.list_type.as_str(), line.patch.contains("merge")) {
        ("map", _) => ListType::Map(line.list_keys),
        ("set", _) => ListType::Set,
        // Without a list type the older merge key decides, as it does in server-side apply.
        ("", true) if line.items.is_some() => {
            line.merge_key.clone().map_or(ListType::Set, |key| ListType::Map(vec![key]))
        }
        _ => ListType::Atomic,
    };
    Node {
        ty: line.ty.as_deref().map_or(base.ty, ty),
        name: if line.name.is_empty() { base.name } else { line.name },
        properties: if line.fields.is_empty() { base.properties } else { line.fields },
        additional: line.values.or(base.additional),
        items: line.items.or(base.items),
        required: if line.required.is_empty() { base.required } else { line.required },
        default: line.default.or(base.default),
        when_empty: match line.empty.as_deref() {
            Some("drop") => WhenEmpty::Dropped,
            Some("zero") => WhenEmpty::Zero,
            Some("null") => WhenEmpty::Null,
            _ => WhenEmpty::Kept,
        },
        preserve_unknown: line.open || base.preserve_unknown,
        list_type,
        // A field may say otherwise than its type.
        atomic_map: match line.map_type.as_str() {
            "atomic" => true,
            "granular" => false,
            _ => base.atomic_map,
        },
        patch: PatchRule {
            merge: line.patch.split(',').any(|word| word == "merge"),
            replace: line.patch.split(',').any(|word| word == "replace"),
            retain_keys: line.patch.split(',').any(|word| word == "retainKeys"),
            key: line.merge_key,
        },
        bounds: Bounds {
            one_of_values: line.values_allowed,
            format: line.format.or(base.bounds.format),
            ..Bounds::default()
        },
        ..Node::default()
    }
}

fn ty(word: &str) -> Type {
    match word {
        "object" => Type::Object,
        "array" => Type::Array,
        "string" => Type::String,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        "int-or-string" => Type::IntOrString,
        _ => Type::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_can_be_read_and_every_type_is_found_by_the_name_it_says() {
        let mut named = 0;
        for (id, line) in (0..).map(NodeId).zip(LINES.iter()) {
            let written: Written = serde_json::from_str(line).unwrap();
            assert!(written.base.is_none_or(|base| LINES[base as usize].contains("\"name\":")));
            assert_eq!(name(line).unwrap_or_default(), written.name, "{line}");
            let node = schemas().at(id).node();
            if !written.name.is_empty() {
                named += 1;
                assert_eq!(node.name, written.name);
                assert_eq!(schemas().named(&written.name).unwrap().id(), id);
            }
        }
        assert_eq!(schemas().names.len(), named, "all types are before all fields");
    }
}
