//! One borrowed pass over the JSON of an object: its fields, and those of its metadata, in order.
//! Nothing else is looked into, nothing is copied.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of a JSON object, values untouched.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// The text of a field's value; `null` counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.get()).filter(|text| *text != "null")
    }

    /// A field as a type that may borrow from it; `None` when it is absent.
    pub(crate) fn read<T: Deserialize<'a>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, serde_json::Error> {
        self.get(name).map(serde_json::from_str).transpose()
    }

    /// A field that is text; `None` when it is absent.
    pub(crate) fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, serde_json::Error> {
        Ok(self.read::<Text<'a>>(name)?.map(|Text(text)| text))
    }
}

/// An object opened two levels deep.
#[derive(Debug, Default)]
pub(crate) struct Scan<'a> {
    /// Everything but the metadata.
    pub(crate) fields: Fields<'a>,
    pub(crate) metadata: Fields<'a>,
}

/// Borrows where nothing is escaped; `Cow` alone would always copy.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(16);
                while let Some((Text(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scan<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Scan<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of the API")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scan<'de>, A::Error> {
                let mut scan = Scan::default();
                while let Some(Text(name)) = map.next_key()? {
                    if name == "metadata" {
                        scan.metadata = map.next_value()?;
                    } else {
                        scan.fields.0.push((name, map.next_value()?));
                    }
                }
                Ok(scan)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
