//! What an object may look like: one representation for built-in kinds and custom resources.
//!
//! A [`Schemas`] arena holds the nodes (built-in types refer to each other, some recursively); a
//! [`Schema`] is a cursor into it. Defaulting, pruning, validation, strategic merge and
//! server-side apply all walk this one structure. It never looks at a value by itself.
//!
//! There are a thousand nodes of built-in types, and most processes use few of them: those are read
//! when somebody comes to them, so that a server is ready before they are.

pub mod builtin;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::{Map, Value};

/// Index of a node in its [`Schemas`] arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

/// The JSON type a node accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Type {
    /// Anything: the schema says nothing about the type.
    #[default]
    Any,
    /// A JSON object: a struct (`properties`) or a map (`additional`).
    Object,
    /// A JSON array.
    Array,
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A whole number or a string (`x-kubernetes-int-or-string`).
    IntOrString,
}

/// How server-side apply merges a list (`x-kubernetes-list-type`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ListType {
    /// Replaced as a whole; the default.
    #[default]
    Atomic,
    /// A set of scalars.
    Set,
    /// Items identified by these keys.
    Map(Vec<String>),
}

/// How a strategic merge patch treats a field (`x-kubernetes-patch-strategy` and `-merge-key`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchRule {
    /// Lists are merged by `key` (or as a set of scalars when there is none), maps field by field.
    pub merge: bool,
    /// `replace`: a map is replaced as a whole instead of merged.
    pub replace: bool,
    /// `retainKeys`: fields of the map that the patch does not list are cleared.
    pub retain_keys: bool,
    /// The field that identifies an item of a merged list.
    pub key: Option<String>,
}

/// What becomes of a field of a built-in type that is empty or was not given, unless it is a struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenEmpty {
    /// It is there when it was given; the default.
    #[default]
    Kept,
    /// It is left out when it has its zero value.
    Dropped,
    /// It is there in any case, with its zero value.
    Zero,
    /// It is there in any case; `null` when it was not given.
    Null,
}

/// A CEL rule of a custom resource (`x-kubernetes-validations`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// The expression; `self` and, in transition rules, `oldSelf`.
    pub expression: String,
    /// Shown when the rule is broken.
    pub message: Option<String>,
    /// Computes the message.
    pub message_expression: Option<String>,
    /// The cause's reason; `FieldValueInvalid` when unset.
    pub reason: Option<String>,
    /// The field reported instead of the rule's own.
    pub field_path: Option<String>,
    /// Also run where there is no old value.
    pub optional_old_self: bool,
}

/// Bounds on values; everything unset accepts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bounds {
    /// The only values accepted.
    pub one_of_values: Vec<Value>,
    /// `format`, as published (`date-time`, `int32`, `byte`, ...).
    pub format: Option<String>,
    /// A regular expression for strings.
    pub pattern: Option<String>,
    /// Least number, and whether it is itself excluded.
    pub minimum: Option<(f64, bool)>,
    /// Greatest number, and whether it is itself excluded.
    pub maximum: Option<(f64, bool)>,
    /// The number must be a multiple of this.
    pub multiple_of: Option<f64>,
    /// Bounds on the length of strings.
    pub length: (Option<i64>, Option<i64>),
    /// Bounds on the number of items.
    pub items: (Option<i64>, Option<i64>),
    /// Bounds on the number of properties.
    pub properties: (Option<i64>, Option<i64>),
    /// No two items are equal.
    pub unique_items: bool,
}

/// One node of a schema.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Node {
    /// The type accepted.
    pub ty: Type,
    /// The published name of the type (`io.k8s.api.core.v1.PodSpec`); empty where it has none.
    pub name: String,
    /// A `type` that nobody knows: no value is of it.
    pub unknown_type: Option<Box<str>>,
    /// The fields of a struct.
    pub properties: BTreeMap<String, NodeId>,
    /// The value schema of a map.
    pub additional: Option<NodeId>,
    /// The item schema of a list.
    pub items: Option<NodeId>,
    /// Fields that must be present.
    pub required: Vec<String>,
    /// The value of the field when it is absent.
    pub default: Option<Value>,
    /// What becomes of the field when it is empty.
    pub when_empty: WhenEmpty,
    /// `null` is a value of its own.
    pub nullable: bool,
    /// Fields without a schema are kept.
    pub preserve_unknown: bool,
    /// The value is a whole object with `apiVersion`, `kind` and `metadata`.
    pub embedded_resource: bool,
    /// How lists merge under server-side apply.
    pub list_type: ListType,
    /// A struct or map that server-side apply replaces as a whole.
    pub atomic_map: bool,
    /// How a strategic merge patch treats this field.
    pub patch: PatchRule,
    /// Bounds on the value.
    pub bounds: Bounds,
    /// `allOf`, `anyOf`, `oneOf` (value validations only), and `not`.
    pub all_of: Vec<NodeId>,
    /// At least one of these accepts.
    pub any_of: Vec<NodeId>,
    /// Exactly one of these accepts.
    pub one_of: Vec<NodeId>,
    /// This must not accept.
    pub not: Option<NodeId>,
    /// CEL rules.
    pub rules: Vec<Rule>,
}

/// The published name of amounts.
pub(crate) const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

impl Node {
    /// What a typed reader holds where nothing was given.
    #[must_use]
    pub fn zero(&self) -> Value {
        match self.ty {
            _ if self.name == QUANTITY => Value::from("0"),
            Type::Object => Value::Object(Map::new()),
            Type::Array => Value::Array(Vec::new()),
            Type::String => Value::String(String::new()),
            Type::Integer | Type::Number | Type::IntOrString => Value::from(0),
            Type::Boolean => Value::Bool(false),
            Type::Any => Value::Null,
        }
    }
}

/// An arena of nodes that refer to each other.
#[derive(Debug, Clone, Default)]
pub struct Schemas {
    nodes: Vec<OnceLock<Box<Node>>>,
    names: BTreeMap<Cow<'static, str>, NodeId>,
    /// Reads a node that nobody came to yet; `None` where all are there.
    read: Option<fn(&Schemas, NodeId) -> Node>,
}

impl Schemas {
    /// An arena of so many nodes that are read when somebody comes to them. What is read may come to
    /// others, but not around to itself.
    fn unread(
        count: usize,
        names: BTreeMap<Cow<'static, str>, NodeId>,
        read: fn(&Self, NodeId) -> Node,
    ) -> Self {
        Self { nodes: vec![OnceLock::new(); count], names, read: Some(read) }
    }

    /// Adds a node; the first one with a name can be found by it.
    ///
    /// # Panics
    /// Beyond 2^32 nodes, which no API comes near.
    pub fn add(&mut self, node: Node) -> NodeId {
        #[expect(clippy::expect_used, reason = "documented; a schema has thousands of nodes")]
        let id = NodeId(u32::try_from(self.nodes.len()).expect("fewer than 2^32 schema nodes"));
        if !node.name.is_empty() {
            self.names.entry(node.name.clone().into()).or_insert(id);
        }
        self.nodes.push(Box::new(node).into());
        id
    }

    /// Replaces a node that was added as a stand-in for a recursive type.
    pub fn set(&mut self, id: NodeId, node: Node) {
        if !node.name.is_empty() {
            self.names.insert(node.name.clone().into(), id);
        }
        self.nodes[id.0 as usize] = Box::new(node).into();
    }

    fn node(&self, id: NodeId) -> &Node {
        let read = || Box::new(self.read.map_or_else(Node::default, |read| read(self, id)));
        self.nodes[id.0 as usize].get_or_init(read)
    }

    /// The cursor at `id`.
    #[must_use]
    pub fn at(&self, id: NodeId) -> Schema<'_> {
        Schema { arena: self, id }
    }

    /// The type of that published name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Schema<'_>> {
        self.names.get(name).map(|id| self.at(*id))
    }
}

/// A cursor: one node and the arena it lives in.
#[derive(Debug, Clone, Copy)]
pub struct Schema<'a> {
    arena: &'a Schemas,
    id: NodeId,
}

impl<'a> Schema<'a> {
    /// The node itself.
    #[must_use]
    pub fn node(self) -> &'a Node {
        self.arena.node(self.id)
    }

    /// The node's index.
    #[must_use]
    pub fn id(self) -> NodeId {
        self.id
    }

    /// Another node of the same arena.
    #[must_use]
    pub fn sibling(self, id: NodeId) -> Schema<'a> {
        self.arena.at(id)
    }

    /// The type of that published name in the same arena.
    #[must_use]
    pub fn named(self, name: &str) -> Option<Schema<'a>> {
        self.arena.named(name)
    }

    /// The schema of a declared field, else of the map's values.
    #[must_use]
    pub fn field(self, name: &str) -> Option<Schema<'a>> {
        let node = self.node();
        node.properties.get(name).copied().or(node.additional).map(|id| self.arena.at(id))
    }

    /// The schema of a list's items.
    #[must_use]
    pub fn items(self) -> Option<Schema<'a>> {
        self.node().items.map(|id| self.arena.at(id))
    }
}

/// The schema of one kind, shared between requests.
#[derive(Debug, Clone)]
pub struct KindSchema {
    /// The arena; one for all built-in kinds, one per custom resource version.
    pub schemas: Arc<Schemas>,
    /// The node of the kind itself.
    pub root: NodeId,
}

impl KindSchema {
    /// The cursor at the kind.
    #[must_use]
    pub fn root(&self) -> Schema<'_> {
        self.schemas.at(self.root)
    }
}
