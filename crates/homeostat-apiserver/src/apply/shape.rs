//! How server-side apply sees a place in an object: as one leaf, field by field, or item by item.
//!
//! A [`Place`] is a schema cursor that also knows what to do where the schema is silent: objects
//! are then taken field by field and lists as a whole. It never changes a value.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::object_meta::object_meta;
use super::path::{Atom, PathElement};
use crate::schema::{ListType, Node, Schema, Type};

/// Fields that must be there and are left out all the same when they are not.
const OMITTED: &[(&str, &str)] = &[
    (
        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec",
        "validationActions",
    ),
    ("io.k8s.api.networking.v1.IPAddressSpec", "parentRef"),
];
/// The type whose content belongs to somebody else: always replaced as a whole.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// A place in an object, with the schema that holds there.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// The schema says what may be here.
    Declared {
        /// The schema of the value.
        schema: Schema<'a>,
        /// Fields without a schema are kept, here and in types written inline below.
        preserve: bool,
        /// The value is a whole Kubernetes object with `apiVersion`, `kind` and `metadata`.
        object: bool,
    },
    /// No schema: objects field by field, lists as a whole.
    Deduced,
    /// Replaced as a whole, whatever it is.
    Opaque,
}

/// How the value at a place is taken apart.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape<'a> {
    /// Not at all: scalars, atomic lists and atomic maps.
    Leaf,
    /// Field by field: structs and maps.
    Fields(Fields<'a>),
    /// Item by item: sets and lists with keys.
    Items(Items<'a>),
}

/// A struct or map whose fields have owners of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(Place<'a>);

/// A field of a struct or map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    /// Where the field's value is.
    pub(super) place: Place<'a>,
    /// The schema names this field; entries of maps have no names.
    pub(super) named: bool,
}

/// A list whose items have owners of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items<'a> {
    /// Key fields; none for a set of scalars.
    keys: &'a [String],
    /// Where each item is.
    pub(super) place: Place<'a>,
}

impl<'a> Place<'a> {
    /// The place of a whole object.
    pub(super) fn root(schema: Schema<'a>) -> Self {
        Self::Declared { schema, preserve: schema.node().preserve_unknown, object: true }
    }

    fn below(self, schema: Schema<'a>) -> Self {
        let node = schema.node();
        if node.name == RAW_EXTENSION {
            return Self::Opaque;
        }
        let inherited =
            matches!(self, Self::Declared { preserve: true, .. }) && node.name.is_empty();
        let preserve = node.preserve_unknown || inherited;
        Self::Declared { schema, preserve, object: node.embedded_resource }
    }

    /// How to take `value` apart here. `null` stands for an empty map where a map may be.
    pub(super) fn shape(self, value: &Value) -> Shape<'a> {
        match self {
            Self::Opaque => Shape::Leaf,
            Self::Deduced => match value {
                Value::Object(_) | Value::Null => Shape::Fields(Fields(self)),
                _ => Shape::Leaf,
            },
            Self::Declared { schema, .. } => {
                let node = schema.node();
                let maps = matches!(node.ty, Type::Object | Type::Any);
                let lists = matches!(node.ty, Type::Array | Type::Any);
                match value {
                    Value::Object(_) | Value::Null if maps => self.fields(node),
                    Value::Array(_) | Value::Null if lists => self.items(schema),
                    _ => Shape::Leaf,
                }
            }
        }
    }

    /// How to take apart two values of which at least one is present; the newer one decides.
    pub(super) fn shape_of_pair(self, old: Option<&Value>, new: Option<&Value>) -> Shape<'a> {
        match (old, new) {
            (Some(old), None | Some(Value::Null)) => self.shape(old),
            (_, Some(new)) => self.shape(new),
            (None, None) => Shape::Leaf,
        }
    }

    fn fields(self, node: &Node) -> Shape<'a> {
        if node.atomic_map { Shape::Leaf } else { Shape::Fields(Fields(self)) }
    }

    fn items(self, schema: Schema<'a>) -> Shape<'a> {
        let keys = match &schema.node().list_type {
            ListType::Atomic => return Shape::Leaf,
            ListType::Set => &[][..],
            ListType::Map(keys) => keys.as_slice(),
        };
        Shape::Items(Items { keys, place: self.item() })
    }

    /// Where the items of a list are.
    pub(super) fn item(self) -> Self {
        match self {
            Self::Declared { schema, .. } => {
                schema.items().map_or(Self::Opaque, |item| self.below(item))
            }
            Self::Deduced | Self::Opaque => Self::Opaque,
        }
    }

    /// The field of that name, or `None` where the schema does not allow it.
    pub(super) fn declared_field(self, name: &str) -> Option<Field<'a>> {
        let Self::Declared { schema, preserve, object } = self else {
            return Some(Field { place: self, named: false });
        };
        let node = schema.node();
        if let Some(id) = node.properties.get(name) {
            let field = schema.sibling(*id);
            let bare = object && name == "metadata" && field.node().properties.is_empty();
            let place = if bare { object_meta() } else { self.below(field) };
            return Some(Field { place, named: true });
        }
        if object && matches!(name, "apiVersion" | "kind" | "metadata") {
            let place = if name == "metadata" { object_meta() } else { Self::Deduced };
            return Some(Field { place, named: true });
        }
        if let Some(id) = node.additional {
            return Some(Field { place: self.below(schema.sibling(id)), named: false });
        }
        let free = preserve || node.properties.is_empty();
        free.then_some(Field { place: Self::Deduced, named: false })
    }

    /// The schema says that the map or list here is replaced as a whole.
    pub(super) fn is_declared_atomic(self) -> bool {
        let Self::Declared { schema, .. } = self else { return false };
        let node = schema.node();
        match node.ty {
            Type::Object => node.atomic_map,
            Type::Array => node.list_type == ListType::Atomic,
            _ => false,
        }
    }
}

impl<'a> Fields<'a> {
    /// The field of that name; one that the schema does not know is taken as it comes.
    pub(super) fn field(self, name: &str) -> Field<'a> {
        self.0.declared_field(name).unwrap_or(Field { place: Place::Deduced, named: false })
    }

    /// What a field that is not there is the same as, when it is never absent in Kubernetes' own
    /// types: structs by value are `{}`, lists and maps that are always written are `null`.
    pub(super) fn absent(self, name: &str) -> Option<&'static Value> {
        static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));
        let Place::Declared { schema, .. } = self.0 else { return None };
        let parent = schema.node();
        let field = schema.sibling(*parent.properties.get(name)?).node();
        if parent.name.is_empty() {
            return None;
        }
        let container = matches!(field.ty, Type::Object | Type::Array);
        if field.ty == Type::Object
            && !field.properties.is_empty()
            && field.default.as_ref() == Some(&*EMPTY)
        {
            Some(&EMPTY)
        } else {
            let is_written = container
                && parent.required.iter().any(|required| required == name)
                && !OMITTED.contains(&(parent.name.as_str(), name));
            is_written.then_some(&Value::Null)
        }
    }
}

impl Items<'_> {
    /// The path element that names this item.
    ///
    /// # Errors
    /// The item cannot be named: `null`, of the wrong type, or without any key.
    pub(super) fn element(self, item: &Value) -> Result<PathElement, String> {
        if self.keys.is_empty() {
            return set_element(item);
        }
        let Value::Object(fields) = item else {
            return Err(if item.is_null() {
                "associative list with keys may not have a null element".to_owned()
            } else {
                "associative list with keys may not have non-map elements".to_owned()
            });
        };
        let named: Vec<_> = self
            .keys
            .iter()
            .filter_map(|key| self.key_value(fields, key).map(|value| (key.as_str(), value)))
            .collect();
        if named.is_empty() {
            return Err(format!(
                "associative list with keys has an element that omits all key fields {:?} \
                 (and doesn't have default values for any key fields)",
                self.keys
            ));
        }
        Ok(PathElement::key(named))
    }

    fn key_value(self, fields: &Map<String, Value>, key: &str) -> Option<Atom> {
        if let Some(value) = fields.get(key) {
            return Some(Atom::from(value));
        }
        let Place::Declared { schema, .. } = self.place else { return None };
        let id = schema.node().properties.get(key)?;
        let default = schema.sibling(*id).node().default.as_ref()?;
        (!default.is_null()).then(|| Atom::from(default))
    }
}

fn set_element(item: &Value) -> Result<PathElement, String> {
    match item {
        Value::Object(_) => {
            Err("associative list without keys has an element that's a map type".to_owned())
        }
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => {
            Err("associative list without keys has an element that's an explicit null".to_owned())
        }
        _ => Ok(PathElement::Value(Atom::from(item))),
    }
}
