//! One step of a path into an object, as `managedFields` names it.
//!
//! The order of the variants and of the values is the order in which Kubernetes writes a field set.
//! This module never looks at a schema.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Number, Value};

/// One step from a container to what it contains.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A field of a struct or an entry of a map: `f:replicas`.
    Field(String),
    /// An item of a list, by its key fields, sorted by name: `k:{"name":"web"}`.
    Key(Vec<(String, Atom)>),
    /// An item of a set: `v:"finalizer"`.
    Value(Atom),
    /// An item of a list by position: `i:0`. Kubernetes reads these and never writes them.
    Index(i64),
}

/// A value small enough to name an item of a list.
#[derive(Debug, Clone)]
pub enum Atom {
    /// A number; whole and fractional numbers compare by value.
    Number(Number),
    /// A string.
    String(String),
    /// `true` or `false`.
    Bool(bool),
    /// Anything else, as JSON text: not valid as a key, but never lost when read back.
    Other(String),
}

/// What may stand before the colon but is not understood; such a field is left out when read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PathError {
    /// A newer server may know this letter.
    #[error("unknown path element type")]
    UnknownType,
    /// The element is not written as it should be.
    #[error("{0}")]
    Malformed(String),
}

impl PathElement {
    /// A field of a struct or map.
    #[must_use]
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// An item of a list by key fields, in any order.
    #[must_use]
    pub fn key<'a>(fields: impl IntoIterator<Item = (&'a str, Atom)>) -> Self {
        let mut fields: Vec<_> =
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(fields)
    }

    /// How it compares with the field of that name.
    pub(super) fn cmp_field(&self, name: &str) -> Ordering {
        match self {
            Self::Field(own) => own.as_str().cmp(name),
            // Fields come first.
            Self::Key(_) | Self::Value(_) | Self::Index(_) => Ordering::Greater,
        }
    }

    /// The name used in the JSON form of a field set.
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let key: Map<String, Value> =
                    fields.iter().map(|(name, value)| (name.clone(), value.to_value())).collect();
                format!("k:{}", compact(&Value::Object(key)))
            }
            Self::Value(value) => format!("v:{}", compact(&value.to_value())),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// Reads a name of the JSON form.
    pub(super) fn decode(text: &str) -> Result<Self, PathError> {
        let malformed = |why: &str| PathError::Malformed(format!("{why}: {text}"));
        let Some((letter, rest)) = text.split_once(':') else {
            return Err(malformed("missing colon"));
        };
        match letter {
            "f" => Ok(Self::Field(rest.to_owned())),
            "k" => {
                let fields: Map<String, Value> =
                    serde_json::from_str(rest).map_err(|_| malformed("key is not an object"))?;
                Ok(Self::key(fields.iter().map(|(name, value)| (name.as_str(), Atom::from(value)))))
            }
            "v" => {
                let value: Value =
                    serde_json::from_str(rest).map_err(|_| malformed("value is not JSON"))?;
                Ok(Self::Value(Atom::from(&value)))
            }
            "i" => rest.parse().map(Self::Index).map_err(|_| malformed("index is not a number")),
            _ if letter.len() == 1 => Err(PathError::UnknownType),
            _ => Err(malformed("missing colon")),
        }
    }
}

/// The form people read in conflicts: `.spec`, `[name="web"]`, `[="finalizer"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (position, (name, value)) in fields.iter().enumerate() {
                    let comma = if position == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl Atom {
    fn to_value(&self) -> Value {
        match self {
            Self::Number(number) => Value::Number(number.clone()),
            Self::String(text) => Value::String(text.clone()),
            Self::Bool(bool) => Value::Bool(*bool),
            Self::Other(json) => serde_json::from_str(json).unwrap_or(Value::Null),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::String(_) => 1,
            Self::Bool(_) => 2,
            Self::Other(_) => 3,
        }
    }
}

impl From<&Value> for Atom {
    fn from(value: &Value) -> Self {
        match value {
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::String(text.clone()),
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Null | Value::Array(_) | Value::Object(_) => Self::Other(value.to_string()),
        }
    }
}

impl From<&str> for Atom {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::String(text) => write!(f, "{text:?}"),
            Self::Bool(bool) => write!(f, "{bool}"),
            Self::Other(json) => f.write_str(json),
        }
    }
}

impl Ord for Atom {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => compare_numbers(a, b),
            (Self::String(a), Self::String(b)) | (Self::Other(a), Self::Other(b)) => a.cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Atom {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Atom {}

/// By value; of whole numbers too large for a float the exact value decides, of floats too. The order must
/// be total: who owns what is looked up by it.
fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    let float = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only whole numbers of one float are compared"
    )]
    let exact = |number: &Number| number.as_i128().unwrap_or(float(number) as i128);
    float(a).total_cmp(&float(b)).then_with(|| exact(a).cmp(&exact(b)))
}

/// JSON text as Go writes it inside a path element: the characters special to HTML are escaped.
fn compact(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => escaped.push(character),
        }
    }
    escaped
}
