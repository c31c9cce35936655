//! One cached object: its parsed header and its JSON with what nobody reads cut out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::body::Body;
use super::header::Header;
use super::intern::Interner;
use super::maker::Form;
use super::scan::Scan;
use crate::error::{Error, Result};
use crate::kind::Kind;

/// An object in the cache: never changed in place, shared by everybody who reads it.
pub struct Entry {
    /// The parsed metadata.
    pub header: Header,
    pub(super) body: Body,
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
        let scan = Scan::of(json)?;
        let header = Header::parse(&scan.metadata, &mut Interner::default())?;
        let mut text = String::new();
        Form::new(kind, keep_managed_fields).write(&scan, &mut text);
        Ok(Self { header, body: Body::plain(&text) })
    }

    /// The object as JSON, `apiVersion` and `kind` always present; `managedFields` are cut out
    /// unless the caches were told to keep them.
    #[must_use]
    pub fn json(&self) -> Cow<'_, str> {
        self.body.text()
    }

    /// The object as type `K`, decoded anew; [`super::Informer::get`] keeps what was read lately.
    ///
    /// # Errors
    /// [`Error::Decode`] when the JSON does not fit the type.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<K> {
        self.read(|json| serde_json::from_str(json))
    }

    /// The same, shared. A typed object is large, so it is moved where it stays as soon as it is one.
    pub(crate) fn decode_shared<K: DeserializeOwned>(&self) -> Result<Arc<K>> {
        self.read(|json| {
            let mut reader = serde_json::Deserializer::from_str(json);
            let typed = Arc::new(K::deserialize(&mut reader)?);
            reader.end().map(|()| typed)
        })
    }

    fn read<T>(&self, decode: impl FnOnce(&str) -> serde_json::Result<T>) -> Result<T> {
        self.body.with_text(decode).map_err(|source| Error::Decode {
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
        let json = self.json();
        let scan = Scan::of(&json).unwrap_or_default();
        scan.metadata.read("annotations").ok().flatten().unwrap_or_default()
    }

    /// Whether a condition may be in it that the runtime has written; `false` is certain.
    pub(crate) fn may_be_marked(&self) -> bool {
        self.body.may_be_marked()
    }

    fn kind(&self) -> String {
        #[derive(Deserialize)]
        struct Named {
            kind: String,
        }
        serde_json::from_str::<Named>(&self.json())
            .map_or_else(|_| "object".to_owned(), |it| it.kind)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("header", &self.header).finish_non_exhaustive()
    }
}
