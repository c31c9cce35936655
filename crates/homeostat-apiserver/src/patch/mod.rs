//! The three patches that say what to change: JSON patch, JSON merge patch, strategic merge patch.
//!
//! Pure functions from a live object and a patch to a new object. Ownership of fields is brought up
//! to date by [`apply::track_update`](crate::apply::track_update); nothing here validates the result.

mod list;
mod operations;
mod order;
mod strategic;

#[cfg(test)]
mod tests;

pub use self::strategic::strategic;

use serde_json::Value;

use crate::decode::MAX_DEPTH;

/// The copies of one JSON patch may not be longer, together.
const MOST_COPIED: usize = 3 * 1024 * 1024;
/// A JSON patch may not have more operations.
pub const MOST_OPERATIONS: usize = 10_000;

/// Why a patch cannot be applied; each variant is one HTTP status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is not written as a patch: 400.
    #[error("{0}")]
    Malformed(String),
    /// A JSON patch with too many operations: 413.
    #[error("The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// The patch does not fit the object (a failed test, a missing path): 422.
    #[error("{0}")]
    Unprocessable(String),
    /// A strategic merge patch that cannot be merged, for which kube-apiserver answers 500.
    #[error("{0}")]
    Unmergeable(String),
}

impl PatchError {
    /// Whether a test of a JSON patch did not hold.
    pub(crate) fn is_failed_test(&self) -> bool {
        matches!(self, Self::Unprocessable(words) if words.starts_with("testing value "))
    }

    /// The HTTP status kube-apiserver answers with.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::TooManyOperations(_) => 413,
            Self::Unprocessable(_) => 422,
            Self::Unmergeable(_) => 500,
        }
    }
}

/// Applies a JSON patch (RFC 6902), all operations or none.
///
/// # Errors
/// [`PatchError::Malformed`] when `operations` is not a list,
/// [`PatchError::TooManyOperations`], or [`PatchError::Unprocessable`] when an operation fails.
pub fn json(live: &Value, operations: &Value) -> Result<Value, PatchError> {
    check_list(operations).map_err(PatchError::Malformed)?;
    let list = operations.as_array().map_or(&[][..], Vec::as_slice);
    if list.len() > MOST_OPERATIONS {
        return Err(PatchError::TooManyOperations(list.len()));
    }
    let mut object = live.clone();
    let mut copied = 0;
    for operation in list {
        check_growth(&object, operation, &mut copied)?;
        operations::apply(&mut object, operation).map_err(PatchError::Unprocessable)?;
    }
    Ok(object)
}

/// Whether something is written as a JSON patch.
///
/// # Errors
/// Why not, in Go's words.
pub(crate) fn check_list(operations: &Value) -> Result<(), String> {
    operations::misread(operations).map_or(Ok(()), Err)
}

/// A few operations that copy can make an object of any size and depth: both are bounded.
fn check_growth(object: &Value, operation: &Value, copied: &mut usize) -> Result<(), PatchError> {
    let text = |field: &str| operations::text(operation, field).unwrap_or_default();
    let is_copy = text("op") == "copy";
    let value = match text("op") {
        "add" | "replace" => operation.get("value"),
        "copy" | "move" => operations::at(object, text("from")),
        _ => None,
    };
    let Some(value) = value else { return Ok(()) };
    if !fits(value, MAX_DEPTH.saturating_sub(text("path").matches('/').count())) {
        let words = format!("the object would nest deeper than {MAX_DEPTH} levels");
        return Err(PatchError::Unprocessable(words));
    }
    if is_copy {
        *copied += value.to_string().len();
        if *copied > MOST_COPIED {
            let words = format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied}, \
                 exceeding the limit {MOST_COPIED}"
            );
            return Err(PatchError::Unprocessable(words));
        }
    }
    Ok(())
}

/// Whether a value nests at most `levels` deep.
fn fits(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| fits(item, levels - 1)),
        Value::Object(fields) => levels > 0 && fields.values().all(|field| fits(field, levels - 1)),
        _ => true,
    }
}

/// Applies a JSON merge patch (RFC 7386): objects are merged, `null` deletes, all else replaces.
#[must_use]
pub fn merge(live: &Value, patch: &Value) -> Value {
    let mut object = live.clone();
    json_patch::merge(&mut object, patch);
    object
}
