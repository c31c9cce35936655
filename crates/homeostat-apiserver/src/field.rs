//! What is wrong with one field of an object: the unit that validation reports and that a
//! `Status` answer lists as a cause. It knows nothing of HTTP.

use std::fmt::{self, Write as _};

use serde_json::Value;

/// Why a field is refused; the names are the API's `causes[].reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A value of the wrong form or range.
    Invalid,
    /// A field that must be set and is not.
    Required,
    /// A value outside the list of allowed ones.
    NotSupported,
    /// A field that may not be set (or changed) here.
    Forbidden,
    /// The same value or key twice.
    Duplicate,
    /// A value of the wrong JSON type.
    TypeInvalid,
    /// A string beyond its maximum length.
    TooLong,
    /// A list or map beyond its maximum size.
    TooMany,
    /// A reference to something that is not there.
    NotFound,
    /// Something that cannot be judged.
    Internal,
}

impl Reason {
    /// The word used in `Status.details.causes[].reason`.
    #[must_use]
    pub fn cause(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Required => "Required value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

/// One refused field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The path as clients print it: `spec.containers[0].name`.
    pub path: String,
    /// Why it is refused.
    pub reason: Reason,
    /// The refused value, where showing it helps.
    pub value: Option<Value>,
    /// What would be accepted.
    pub detail: String,
}

impl FieldError {
    /// A field error with the value it is about.
    pub fn new(
        path: impl Into<String>,
        reason: Reason,
        value: Value,
        detail: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), reason, value: Some(value), detail: detail.into() }
    }

    /// A field that must be set and is not.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), reason: Reason::Required, value: None, detail: detail.into() }
    }

    /// A field that may not be set here.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), reason: Reason::Forbidden, value: None, detail: detail.into() }
    }

    /// The text after the path, as in `causes[].message`.
    #[must_use]
    pub fn message(&self) -> String {
        let mut text = self.reason.words().to_owned();
        match &self.value {
            None => {}
            Some(value @ (Value::Array(_) | Value::Object(_))) => {
                let _ = write!(text, ": {}", crate::go::json(value));
            }
            Some(scalar) => {
                let _ = write!(text, ": {scalar}");
            }
        }
        if !self.detail.is_empty() {
            let _ = write!(text, ": {}", self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message())
    }
}
