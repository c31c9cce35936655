//! The JSON form of a field set: `fieldsType: FieldsV1`.
//!
//! An object whose names are path elements; `{}` is a field, and `"."` says that a field is in the
//! set besides the fields below it. It reads what Kubernetes writes and writes what Kubernetes reads.

use serde_json::{Map, Value};

use super::path::{PathElement, PathError};
use super::set::{Entry, FieldSet};

impl FieldSet {
    /// The set as `fieldsV1`.
    #[must_use]
    pub fn to_fields_v1(&self) -> Value {
        let mut fields = Map::new();
        for (element, entry) in self.entries.iter() {
            fields.insert(element.encode(), encode_entry(entry));
        }
        Value::Object(fields)
    }

    /// Reads `fieldsV1`; path elements of a kind not known here are left out.
    ///
    /// # Errors
    /// Says which name is not a path element, or that a value is not an object.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, String> {
        let Value::Object(fields) = fields else {
            return Err("fieldsV1 is not an object".to_owned());
        };
        let mut set = Self::default();
        for (name, value) in fields {
            if name == "." {
                continue;
            }
            match PathElement::decode(name) {
                Ok(element) => set.attach(element, decode_entry(value)?),
                Err(PathError::UnknownType) => {}
                Err(error @ PathError::Malformed(_)) => return Err(error.to_string()),
            }
        }
        set.entries.put_in_order();
        Ok(set)
    }
}

fn encode_entry(entry: &Entry) -> Value {
    let mut fields = Map::new();
    if entry.member && !entry.below.is_empty() {
        fields.insert(".".to_owned(), Value::Object(Map::new()));
    }
    for (element, below) in entry.below.entries.iter() {
        fields.insert(element.encode(), encode_entry(below));
    }
    Value::Object(fields)
}

fn decode_entry(value: &Value) -> Result<Entry, String> {
    let below = FieldSet::from_fields_v1(value)?;
    let member = below.is_empty() || value.get(".").is_some();
    Ok(Entry { member, below })
}
