//! One cached object: its parsed header and its JSON with what nobody reads cut out.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::header::Header;
use super::intern::Interner;
use super::scan::{Fields, Scan};
use crate::error::{Error, Result};
use crate::kind::Kind;

/// An object in the cache: never changed in place, shared by everybody who reads it.
pub struct Entry {
    /// The parsed metadata.
    pub header: Header,
    body: Box<str>,
}

impl Entry {
    /// Reads an object from JSON text in one borrowed pass; nothing below `metadata` is decoded.
    ///
    /// # Errors
    /// When the text is no JSON object, or its metadata has no name or a field of a wrong type.
    pub fn parse(
        kind: &Kind,
        json: &str,
        keep_managed_fields: bool,
    ) -> Result<Self, serde_json::Error> {
        let scan = serde_json::from_str(json)?;
        Self::assemble(&Form::new(kind, keep_managed_fields), &scan, &mut Interner::default())
    }

    /// The same for one that was scanned.
    pub(crate) fn assemble(
        form: &Form,
        scan: &Scan<'_>,
        interner: &mut Interner,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self { header: Header::parse(&scan.metadata, interner)?, body: body(form, scan) })
    }

    /// The same object with another body.
    pub(crate) fn with_body_of(self, form: &Form, scan: &Scan<'_>) -> Self {
        Self { header: self.header, body: body(form, scan) }
    }

    /// The object as JSON, `apiVersion` and `kind` always present; `managedFields` are cut out
    /// unless the caches were told to keep them.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.body
    }

    /// The object as type `K`, decoded anew; [`super::Informer::get`] keeps what was read lately.
    ///
    /// # Errors
    /// [`Error::Decode`] when the JSON does not fit the type.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<K> {
        serde_json::from_str(self.json()).map_err(|source| Error::Decode {
            object: format!("{} {}", self.kind(), self.header.key),
            source,
        })
    }

    /// The object as plain JSON.
    ///
    /// # Errors
    /// [`Error::Decode`] when the body is damaged beyond its first level.
    pub fn value(&self) -> Result<Value> {
        self.decode()
    }

    /// The annotations, read from the body; empty when there are none.
    #[must_use]
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let scan = serde_json::from_str::<Scan<'_>>(self.json()).unwrap_or_default();
        scan.metadata.read("annotations").ok().flatten().unwrap_or_default()
    }

    fn kind(&self) -> String {
        #[derive(Deserialize)]
        struct Named {
            kind: String,
        }
        serde_json::from_str::<Named>(self.json())
            .map_or_else(|_| "object".to_owned(), |it| it.kind)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("header", &self.header).finish_non_exhaustive()
    }
}

/// How the objects of one informer are written down.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    /// Items of a list come without version and kind; readers should not have to know.
    beginning: String,
    keep_managed_fields: bool,
}

impl Form {
    pub(crate) fn new(kind: &Kind, keep_managed_fields: bool) -> Self {
        let mut beginning = String::from("{");
        push_field(&mut beginning, "apiVersion", &quoted(&kind.api_version()));
        push_field(&mut beginning, "kind", &quoted(kind.kind()));
        beginning.push_str(",\"metadata\":{");
        Self { beginning, keep_managed_fields }
    }
}

/// The JSON that is kept.
fn body(form: &Form, scan: &Scan<'_>) -> Box<str> {
    let kept = |field: &str| form.keep_managed_fields || field != "managedFields";
    let named = |field: &str| field == "apiVersion" || field == "kind";
    let mut body = String::with_capacity(
        form.beginning.len() + size(&scan.metadata, kept) + size(&scan.fields, |f| !named(f)),
    );
    body.push_str(&form.beginning);
    push_all(&mut body, &scan.metadata, kept);
    body.push('}');
    for (field, value) in scan.fields.0.iter().filter(|(field, _)| !named(field)) {
        push_field(&mut body, field, value.get());
    }
    body.push('}');
    body.into_boxed_str()
}

/// Room for the fields: quotes, colon and comma of each, and the bracket after them.
fn size(fields: &Fields<'_>, kept: impl Fn(&str) -> bool) -> usize {
    let each = fields.0.iter().filter(|(field, _)| kept(field));
    each.map(|(field, value)| field.len() + value.get().len() + 4).sum::<usize>() + 1
}

fn push_all(object: &mut String, fields: &Fields<'_>, kept: impl Fn(&str) -> bool) {
    for (field, value) in fields.0.iter().filter(|(field, _)| kept(field)) {
        push_field(object, field, value.get());
    }
}

fn push_field(object: &mut String, name: &str, value: &str) {
    if !object.ends_with('{') {
        object.push(',');
    }
    if name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\') {
        object.push('"');
        object.push_str(name);
        object.push('"');
    } else {
        object.push_str(&quoted(name));
    }
    object.push(':');
    object.push_str(value);
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
