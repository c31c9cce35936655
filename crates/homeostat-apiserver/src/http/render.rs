//! Objects and lists in the form the client asked for.
//!
//! Lists are built by joining the stored bytes: nothing is decoded to be shown as it is.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::negotiate::{Accepted, Form};
use crate::kinds::Kind;
use crate::print::{self, IncludeObject, Look};
use crate::registry::options::Query;
use crate::registry::{Listed, TEMPLATE_COUNT, convert};
use crate::status::Status;
use crate::store::Stored;

/// How a client wants to see things.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) form: Form,
    /// How tables look, and in which version bare metadata is.
    pub(crate) look: Look,
}

impl View {
    /// The view that the parameters ask for.
    ///
    /// # Errors
    /// 400 for a table that shall include something else than objects.
    pub(crate) fn new(accepted: Accepted, query: &Query, now: Timestamp) -> Result<Self, Status> {
        let Accepted { form, version, .. } = accepted;
        let include = match query.get("includeObject").map_or("", String::as_str) {
            "None" => IncludeObject::None,
            "Object" => IncludeObject::Object,
            "" | "Metadata" => IncludeObject::Metadata,
            other if form == Form::Table => {
                return Err(Status::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: \
                     {other:?}: must be 'Metadata', 'Object', 'None', or empty"
                )));
            }
            _ => IncludeObject::Metadata,
        };
        Ok(Self { form, look: Look { include, now, headers: true, version } })
    }

    /// One object.
    pub(crate) fn object(self, kind: &Kind, stored: &Arc<Stored>) -> Bytes {
        match self.form {
            Form::Metadata | Form::MetadataList => {
                print::partial(&convert::value(kind, stored), self.look.version).to_string().into()
            }
            Form::Table => {
                let value = convert::value(kind, stored);
                let revision = value.pointer("/metadata/resourceVersion").cloned();
                let list = json!({"resourceVersion": revision});
                self.table(kind, &[&value], &list).to_string().into()
            }
            Form::Object | Form::Discovery => match convert::body(kind, stored) {
                std::borrow::Cow::Borrowed(_) => stored.body.clone(),
                std::borrow::Cow::Owned(bytes) => bytes.into(),
            },
        }
    }

    fn table(self, kind: &Kind, objects: &[&Value], list: &Value) -> Value {
        print::table(kind, objects, list, self.look)
    }

    /// A list.
    pub(crate) fn list(self, kind: &Kind, listed: &Listed) -> Bytes {
        let mut list_metadata = list_metadata(listed);
        if kind.custom.is_some() && self.form == Form::Object && listed.continue_token.is_empty() {
            // Lists of custom resources always name it.
            list_metadata["continue"] = "".into();
        }
        if self.form == Form::Table {
            let values: Vec<Value> =
                listed.items.iter().map(|item| convert::value(kind, item)).collect();
            let values: Vec<&Value> = values.iter().collect();
            return self.table(kind, &values, &list_metadata).to_string().into();
        }
        let meta_version = self.look.version.api_version().to_owned();
        let (list_kind, api_version) = match self.form {
            Form::Metadata | Form::MetadataList => {
                ("PartialObjectMetadataList".to_owned(), meta_version)
            }
            _ => (kind.list_kind.clone(), kind.api_version()),
        };
        let only_metadata = matches!(self.form, Form::Metadata | Form::MetadataList);
        let head = json!({
            "kind": list_kind,
            "apiVersion": api_version,
            "metadata": list_metadata,
        })
        .to_string();
        let size: usize = listed.items.iter().map(|item| item.body.len() + 1).sum();
        let mut bytes = BytesMut::with_capacity(head.len() + size + 16);
        bytes.put_slice(&head.as_bytes()[..head.len() - 1]);
        if only_metadata && listed.items.is_empty() {
            bytes.put_slice(b",\"items\":null}");
            return bytes.freeze();
        }
        bytes.put_slice(b",\"items\":[");
        // Items of built-in lists do not repeat what the list says.
        let bare =
            (kind.custom.is_none() && self.form == Form::Object).then(|| convert::head(kind));
        for (at, item) in listed.items.iter().enumerate() {
            if at > 0 {
                bytes.put_u8(b',');
            }
            let object = self.object(kind, item);
            match bare.as_ref().and_then(|head| object.strip_prefix(head.as_bytes())) {
                Some(rest) => {
                    bytes.put_u8(b'{');
                    bytes.put_slice(rest);
                }
                None => bytes.put_slice(&object),
            }
        }
        bytes.put_slice(b"]}");
        bytes.freeze()
    }

    /// A bookmark: nothing but a revision, in the form of the other events.
    pub(crate) fn bookmark(self, kind: &Kind, revision: u64, initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let meta_version = self.look.version.api_version().to_owned();
        let (name, api_version) = match self.form {
            Form::Metadata | Form::MetadataList => {
                ("PartialObjectMetadata".to_owned(), meta_version)
            }
            _ => (kind.kind.clone(), kind.api_version()),
        };
        if self.form == Form::Object && kind.is("daemonsets.apps") {
            // Even of none.
            metadata["annotations"][TEMPLATE_COUNT] = "0".into();
        }
        let object = json!({"kind": name, "apiVersion": api_version, "metadata": metadata});
        if self.form != Form::Table {
            return object.to_string().into();
        }
        let list = json!({"resourceVersion": revision.to_string()});
        let mut table = self.table(kind, &[], &list);
        table["rows"] = json!([{"cells": [], "object": object}]);
        table.to_string().into()
    }
}

fn list_metadata(listed: &Listed) -> Value {
    let mut metadata = json!({});
    if listed.revision > 0 {
        metadata["resourceVersion"] = listed.revision.to_string().into();
    }
    if !listed.continue_token.is_empty() {
        metadata["continue"] = listed.continue_token.clone().into();
    }
    if let Some(remaining) = listed.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    metadata
}
