//! One cached object: its parsed header and its JSON with what nobody reads cut out.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::header::Header;
use crate::error::{Error, Result};
use crate::kind::{Kind, Object};

/// A typed object behind a pointer that forgets the type.
pub(crate) type Decoded = Arc<dyn Any + Send + Sync>;

/// An object in the cache: never changed in place, shared by everybody who reads it.
pub struct Entry {
    /// The parsed metadata.
    pub header: Header,
    /// The object as JSON, `apiVersion` and `kind` always present; `managedFields` are cut out
    /// unless the caches were told to keep them.
    pub body: Bytes,
    /// The last typed view, for as long as somebody holds it.
    memo: Mutex<Option<(TypeId, Weak<dyn Any + Send + Sync>)>>,
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
        let fields: Fields<'_> = serde_json::from_str(json)?;
        let metadata = fields.get("metadata").unwrap_or("{}");
        let header = Header::parse(metadata)?;
        let mut body = String::with_capacity(json.len());
        body.push('{');
        // Items of a list come without them; readers of the body should not have to know.
        let api_version = quoted(&kind.api_version());
        push_field(&mut body, "apiVersion", fields.get("apiVersion").unwrap_or(&api_version));
        let name = quoted(kind.kind());
        push_field(&mut body, "kind", fields.get("kind").unwrap_or(&name));
        for (field, value) in &fields.0 {
            match &**field {
                "apiVersion" | "kind" => {}
                "metadata" if !keep_managed_fields => {
                    let pruned = without_managed_fields(value.get())?;
                    push_field(&mut body, field, &pruned);
                }
                _ => push_field(&mut body, field, value.get()),
            }
        }
        body.push('}');
        body.shrink_to_fit();
        Ok(Self { header, body: Bytes::from(body), memo: Mutex::default() })
    }

    /// The object as type `K`; the same `Arc` while somebody holds it.
    ///
    /// # Errors
    /// [`Error::Decode`] when the JSON does not fit the type.
    pub fn decode<K: Object>(&self) -> Result<Arc<K>> {
        let mut memo = self.memo.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((type_id, weak)) = &*memo
            && *type_id == TypeId::of::<K>()
            && let Some(held) = weak.upgrade()
            && let Ok(typed) = held.downcast::<K>()
        {
            return Ok(typed);
        }
        let typed: Arc<K> = Arc::new(self.decode_as(K::kind(&()).as_ref())?);
        let held: Decoded = Arc::clone(&typed) as Decoded;
        *memo = Some((TypeId::of::<K>(), Arc::downgrade(&held)));
        Ok(typed)
    }

    /// The object as plain JSON.
    ///
    /// # Errors
    /// [`Error::Decode`] when the body is damaged beyond its first level.
    pub fn value(&self) -> Result<Value> {
        self.decode_as("object")
    }

    /// The annotations, read from the body; empty when there are none.
    #[must_use]
    pub fn annotations(&self) -> BTreeMap<String, String> {
        #[derive(Deserialize)]
        struct Annotated {
            metadata: Annotations,
        }
        #[derive(Deserialize)]
        struct Annotations {
            #[serde(default)]
            annotations: Option<BTreeMap<String, String>>,
        }
        serde_json::from_slice::<Annotated>(&self.body)
            .ok()
            .and_then(|object| object.metadata.annotations)
            .unwrap_or_default()
    }

    fn decode_as<T: for<'de> Deserialize<'de>>(&self, kind: &str) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|source| Error::Decode {
            object: format!("{kind} {}", self.header.key),
            source,
        })
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("header", &self.header).finish_non_exhaustive()
    }
}

/// The fields of a JSON object in their order, values untouched.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.get())
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                #[derive(Deserialize)]
                struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
                let mut fields = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

fn without_managed_fields(metadata: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    let fields: Fields<'_> = serde_json::from_str(metadata)?;
    if fields.get("managedFields").is_none() {
        return Ok(Cow::Borrowed(metadata));
    }
    let mut pruned = String::with_capacity(metadata.len());
    pruned.push('{');
    for (field, value) in fields.0.iter().filter(|(field, _)| field != "managedFields") {
        push_field(&mut pruned, field, value.get());
    }
    pruned.push('}');
    Ok(Cow::Owned(pruned))
}

fn push_field(object: &mut String, name: &str, value: &str) {
    if !object.ends_with('{') {
        object.push(',');
    }
    object.push_str(&quoted(name));
    object.push(':');
    object.push_str(value);
}

fn quoted<T: Serialize + ?Sized>(text: &T) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
