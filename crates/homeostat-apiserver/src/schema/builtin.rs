//! The schemas of the built-in types: one arena, read once from generated data.
//!
//! A field's default is what the published API says it is. For plain values that are always
//! present in an answer it is their zero value (`""`, `0`, `{}`), so filling defaults gives an
//! object the same shape that kube-apiserver would answer with.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;

use super::{Bounds, ListType, Node, NodeId, PatchRule, Schemas, Type, WhenEmpty};

const ARENA: &[u8] = include_bytes!("../../data/schemas.json.gz");

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
    static SCHEMAS: OnceLock<Arc<Schemas>> = OnceLock::new();
    SCHEMAS.get_or_init(|| Arc::new(read()))
}

fn read() -> Schemas {
    let mut text = Vec::new();
    #[expect(clippy::expect_used, reason = "compiled-in data, read by every test")]
    let written: Vec<Written> = flate2::read::GzDecoder::new(ARENA)
        .read_to_end(&mut text)
        .map_err(serde_json::Error::io)
        .and_then(|_| serde_json::from_slice(&text))
        .expect("the generated schemas");
    let mut nodes: Vec<Node> = Vec::with_capacity(written.len());
    for (index, line) in written.into_iter().enumerate() {
        // Types come first, so what a field lays its rules over is there already.
        let base = line.base.map(|base| base as usize).filter(|base| *base < index);
        let base = base.map(|base| nodes[base].clone()).unwrap_or_default();
        nodes.push(node(line, base));
    }
    // A field's copy of a type carries the type's name; the type comes first and keeps it.
    Schemas::of(nodes)
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
