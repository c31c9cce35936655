//! Whether an object may be stored: names and metadata, the schema, CEL rules, and the rules of
//! built-in kinds.
//!
//! Every function gives all it finds, in document order, and changes nothing. What is refused
//! here becomes the causes of one 422 answer.

mod metadata;
mod name;

use serde_json::Value;

use crate::field::{FieldError, Reason};

pub use metadata::object_meta;

fn invalid(
    path: impl Into<String>,
    value: impl Into<Value>,
    detail: impl Into<String>,
) -> FieldError {
    FieldError::new(path, Reason::Invalid, value.into(), detail)
}
