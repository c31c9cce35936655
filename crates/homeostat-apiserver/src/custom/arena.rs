//! An `openAPIV3Schema` document as an arena of schema nodes. `metadata` always is the built-in
//! `ObjectMeta`; what the document says about it comes on top.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::wellformed::TYPES;
use crate::schema::{Bounds, ListType, Node, NodeId, Rule, Schema, Schemas, Type};
use crate::warn::is_known_format as is_known;

pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The arena and its root.
pub(super) fn build(document: &Value) -> (Schemas, NodeId) {
    let mut schemas = Schemas::default();
    let metadata = crate::schema::builtin::schemas()
        .named(OBJECT_META)
        .map_or_else(|| NodeId(0), |meta| copy(meta, &mut schemas, &mut BTreeMap::new()));
    let mut builder = Builder { schemas, metadata, stands_alone: false };
    let root = builder.node(document, true);
    (builder.schemas, root)
}

/// The arena of a schema that stands for a value inside an object. All its formats count, known or
/// not, and what may be an integer or a string may be anything, unless the schema says it again.
pub(super) fn build_value(document: &Value) -> (Schemas, NodeId) {
    let schemas = Schemas::default();
    let mut builder = Builder { schemas, metadata: NodeId(0), stands_alone: true };
    builder.metadata = builder.schemas.add(Node { preserve_unknown: true, ..Node::default() });
    let root = builder.node(document, false);
    (builder.schemas, root)
}

/// The schema of a version that is not there: an object about which nothing else is known.
pub(crate) fn nothing() -> Schema<'static> {
    static NOTHING: LazyLock<(Schemas, NodeId)> = LazyLock::new(|| build(&Value::Null));
    NOTHING.0.at(NOTHING.1)
}

/// Copies a type and all it refers to into another arena.
fn copy(from: Schema<'_>, into: &mut Schemas, done: &mut BTreeMap<NodeId, NodeId>) -> NodeId {
    if let Some(id) = done.get(&from.id()) {
        return *id;
    }
    let id = into.add(Node::default());
    done.insert(from.id(), id);
    let mut node = from.node().clone();
    for field in node.properties.values_mut() {
        *field = copy(from.sibling(*field), into, done);
    }
    node.additional = node.additional.map(|id| copy(from.sibling(id), into, done));
    node.items = node.items.map(|id| copy(from.sibling(id), into, done));
    // defaults of built-in types are not defaults of the custom resource
    node.default = None;
    into.set(id, node);
    id
}

struct Builder {
    schemas: Schemas,
    metadata: NodeId,
    stands_alone: bool,
}

impl Builder {
    /// The metadata of an object: what every object has, restricted by what is declared of it.
    fn metadata(&mut self, declared: Option<NodeId>) -> NodeId {
        let Some(declared) = declared.map(|id| self.schemas.at(id).node().clone()) else {
            return self.metadata;
        };
        let common = self.schemas.at(self.metadata).node();
        let mut node = Node { name: common.name.clone(), ..declared };
        let own = std::mem::replace(&mut node.properties, common.properties.clone());
        node.preserve_unknown = common.preserve_unknown;
        if node.preserve_unknown {
            node.properties = own;
        } else {
            let known = own.into_iter().filter(|(name, _)| common.properties.contains_key(name));
            node.properties.extend(known);
        }
        self.schemas.add(node)
    }

    fn node(&mut self, document: &Value, is_object: bool) -> NodeId {
        let get = |name: &str| document.get(name);
        let flag = |name: &str| document.get(name) == Some(&Value::Bool(true));
        let embedded = flag("x-kubernetes-embedded-resource");
        let mut properties: BTreeMap<String, NodeId> = BTreeMap::new();
        for (name, field) in get("properties").and_then(Value::as_object).into_iter().flatten() {
            properties.insert(name.clone(), self.node(field, false));
        }
        if is_object || embedded {
            for name in ["apiVersion", "kind"] {
                let text = || Node { ty: Type::String, ..Node::default() };
                properties.entry(name.to_owned()).or_insert_with(|| self.schemas.add(text()));
            }
            let declared = properties.get("metadata").copied();
            properties.insert("metadata".to_owned(), self.metadata(declared));
        }
        let additional = match get("additionalProperties") {
            Some(Value::Bool(true)) => {
                Some(self.schemas.add(Node { preserve_unknown: true, ..Node::default() }))
            }
            Some(values @ Value::Object(_)) => Some(self.node(values, false)),
            _ => None,
        };
        let mut many = |name: &str| -> Vec<NodeId> {
            let branches = document.get(name).and_then(Value::as_array).into_iter().flatten();
            branches.map(|branch| self.node(branch, false)).collect()
        };
        let (all_of, any_of, one_of) = (many("allOf"), many("anyOf"), many("oneOf"));
        let items =
            get("items").filter(|items| items.is_object()).map(|items| self.node(items, false));
        let not = get("not").map(|not| self.node(not, false));
        let mut bounds = bounds(document);
        let named = document.get("type").and_then(Value::as_str).unwrap_or_default();
        let stands_alone = self.stands_alone;
        bounds.format = bounds
            .format
            .filter(|format| !format.is_empty() && (stands_alone || is_known(named, format)));
        let ty = match ty(document) {
            Type::IntOrString if stands_alone => Type::Any,
            ty => ty,
        };
        let unknown_type = Some(named).filter(|named| !named.is_empty() && !TYPES.contains(named));
        self.schemas.add(Node {
            ty,
            unknown_type: unknown_type.map(Into::into),
            properties,
            additional,
            items,
            required: strings(get("required")),
            default: get("default").cloned(),
            nullable: flag("nullable"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: embedded,
            list_type: match get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("set") => ListType::Set,
                Some("map") => ListType::Map(strings(get("x-kubernetes-list-map-keys"))),
                _ => ListType::Atomic,
            },
            atomic_map: get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
            bounds,
            all_of,
            any_of,
            one_of,
            not,
            rules: rules(document),
            ..Node::default()
        })
    }
}

fn ty(document: &Value) -> Type {
    if document.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return Type::IntOrString;
    }
    match document.get("type").and_then(Value::as_str) {
        Some("object") => Type::Object,
        Some("array") => Type::Array,
        Some("string") => Type::String,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Boolean,
        _ => Type::Any,
    }
}

fn bounds(document: &Value) -> Bounds {
    let count = |name: &str| document.get(name).and_then(Value::as_i64);
    let number = |name: &str| document.get(name).and_then(Value::as_f64);
    let flag = |name: &str| document.get(name) == Some(&Value::Bool(true));
    let text = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
    Bounds {
        one_of_values: document.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
        format: text("format"),
        pattern: text("pattern"),
        minimum: number("minimum").map(|least| (least, flag("exclusiveMinimum"))),
        maximum: number("maximum").map(|most| (most, flag("exclusiveMaximum"))),
        multiple_of: number("multipleOf"),
        length: (count("minLength"), count("maxLength")),
        items: (count("minItems"), count("maxItems")),
        properties: (count("minProperties"), count("maxProperties")),
        unique_items: flag("uniqueItems"),
    }
}

fn rules(document: &Value) -> Vec<Rule> {
    let rules = document.get("x-kubernetes-validations").and_then(Value::as_array);
    let rule = |rule: &Map<String, Value>| {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).map(str::to_owned);
        Rule {
            expression: text("rule").unwrap_or_default(),
            message: text("message").filter(|message| !message.is_empty()),
            message_expression: text("messageExpression").filter(|text| !text.is_empty()),
            reason: text("reason"),
            field_path: text("fieldPath"),
            optional_old_self: rule.get("optionalOldSelf") == Some(&Value::Bool(true)),
        }
    };
    rules.into_iter().flatten().filter_map(Value::as_object).map(rule).collect()
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
