//! Objects and lists in the form the client asked for.
//!
//! Lists are built by joining the stored bytes: nothing is decoded to be shown as it is.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Value, json};

use super::negotiate::Form;
use crate::kinds::Kind;
use crate::registry::{Listed, convert};
use crate::store::Stored;

/// One object.
pub(crate) fn object(kind: &Kind, stored: &Arc<Stored>, form: Form) -> Bytes {
    match form {
        Form::Metadata => metadata(&convert::value(kind, stored)).to_string().into(),
        Form::Object | Form::Discovery | Form::Table => match convert::body(kind, stored) {
            std::borrow::Cow::Borrowed(_) => stored.body.clone(),
            std::borrow::Cow::Owned(bytes) => bytes.into(),
        },
    }
}

/// `PartialObjectMetadata` of an object.
pub(crate) fn metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata"),
    })
}

/// The metadata of a list.
pub(crate) fn list_metadata(listed: &Listed) -> Value {
    let mut metadata = json!({"resourceVersion": listed.revision.to_string()});
    if !listed.continue_token.is_empty() {
        metadata["continue"] = listed.continue_token.clone().into();
    }
    if let Some(remaining) = listed.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    metadata
}

/// A list.
pub(crate) fn list(kind: &Kind, listed: &Listed, form: Form) -> Bytes {
    let (list_kind, api_version) = match form {
        Form::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
        _ => (kind.list_kind.clone(), kind.api_version()),
    };
    let head = json!({
        "kind": list_kind,
        "apiVersion": api_version,
        "metadata": list_metadata(listed),
    })
    .to_string();
    let size: usize = listed.items.iter().map(|item| item.body.len() + 1).sum();
    let mut bytes = BytesMut::with_capacity(head.len() + size + 16);
    bytes.put_slice(&head.as_bytes()[..head.len() - 1]);
    bytes.put_slice(b",\"items\":[");
    for (at, item) in listed.items.iter().enumerate() {
        if at > 0 {
            bytes.put_u8(b',');
        }
        bytes.put_slice(&object(kind, item, form));
    }
    bytes.put_slice(b"]}");
    bytes.freeze()
}
