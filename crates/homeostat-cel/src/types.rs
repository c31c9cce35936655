//! The types of CEL, as far as a checker tells them apart.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// Anything; only known when the expression is evaluated.
    Dyn,
    /// The same, but for walks: nobody walks over it.
    Any,
    /// The type of what could not be checked; fits everywhere, so that one mistake is told once.
    Error,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A signed number.
    Int,
    /// An unsigned number.
    Uint,
    /// A number with a point.
    Double,
    /// A text.
    String,
    /// Bytes.
    Bytes,
    /// How long something takes.
    Duration,
    /// A moment.
    Timestamp,
    /// The type of types.
    Meta(Arc<Type>),
    /// A list of these.
    List(Arc<Type>),
    /// A map from these to those.
    Map(Arc<(Type, Type)>),
    /// Such a thing, or nothing.
    Optional(Arc<Type>),
    /// A type of a library: `kubernetes.Quantity`.
    Opaque(&'static str),
    /// A structure with known fields.
    Object(Arc<Object>),
    /// Stands for any one type, within one call of a function.
    Param(&'static str),
    /// The same, for one particular call.
    Variable(usize),
}

/// A structure.
#[derive(Debug, PartialEq)]
pub struct Object {
    /// What it is called in mistakes.
    pub name: String,
    /// The fields under the names expressions know them by.
    pub fields: BTreeMap<String, Type>,
}

impl Type {
    /// A list of `item`.
    #[must_use]
    pub fn list(item: Type) -> Self {
        Self::List(Arc::new(item))
    }

    /// A map from `key` to `value`.
    #[must_use]
    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    /// `inner`, or nothing.
    #[must_use]
    pub fn optional(inner: Type) -> Self {
        Self::Optional(Arc::new(inner))
    }

    /// What it is called outside of mistakes: types of messages by their full names.
    pub fn full_name(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::List(item) => format!("list({})", item.full_name()),
            Self::Map(pair) => format!("map({}, {})", pair.0.full_name(), pair.1.full_name()),
            Self::Optional(inner) => format!("optional_type({})", inner.full_name()),
            Self::Meta(_) => "type".to_owned(),
            other => other.to_string(),
        }
    }

    /// Whether it says nothing.
    pub(super) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any | Self::Error)
    }

    /// Whether `null` may stand for it.
    pub(super) fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Dyn
                | Self::Any
                | Self::Error
                | Self::Duration
                | Self::Timestamp
                | Self::Object(_)
                | Self::Opaque(_)
                | Self::Optional(_)
        )
    }

    /// The type with every part replaced that `replace` knows something for.
    pub(super) fn replaced(&self, replace: &mut impl FnMut(&Type) -> Option<Type>) -> Type {
        if let Some(other) = replace(self) {
            return other;
        }
        match self {
            Self::Meta(of) => Self::Meta(Arc::new(of.replaced(replace))),
            Self::List(item) => Self::list(item.replaced(replace)),
            Self::Map(pair) => Self::map(pair.0.replaced(replace), pair.1.replaced(replace)),
            Self::Optional(inner) => Self::optional(inner.replaced(replace)),
            other => other.clone(),
        }
    }

    /// A type from its name in a declaration.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "dyn" => Self::Dyn,
            "null_type" => Self::Null,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "uint" => Self::Uint,
            "double" => Self::Double,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "google.protobuf.Duration" => Self::Duration,
            "google.protobuf.Timestamp" => Self::Timestamp,
            "list" => Self::list(Self::Dyn),
            "map" => Self::map(Self::Dyn, Self::Dyn),
            _ => return None,
        })
    }
}

/// The words of cel-go's messages.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Any => f.write_str("any"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Meta(of) => write!(f, "type({of})"),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(pair) => write!(f, "map({}, {})", pair.0, pair.1),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Opaque(name) | Self::Param(name) => f.write_str(name),
            Self::Object(object) => f.write_str(&object.name),
            Self::Variable(number) => write!(f, "_var{number}"),
        }
    }
}
