//! A JSON value read through serde, from any format, with the path of every repeated key.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::MAX_DEPTH;

/// Whole numbers below this one have one representation as a float.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads one value and everything in it.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    path: String,
    depth: usize,
    duplicates: &'a mut Vec<String>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(duplicates: &'a mut Vec<String>) -> Self {
        Self { path: String::new(), depth: 0, duplicates }
    }

    fn child(&mut self, path: String) -> Tree<'_> {
        Tree { path, depth: self.depth + 1, duplicates: self.duplicates }
    }

    fn check_depth<E: de::Error>(&self) -> Result<(), E> {
        if self.depth < MAX_DEPTH { Ok(()) } else { Err(E::custom("exceeded max depth")) }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        // the API writes 2.0 as 2
        if value.fract() == 0.0 && value.abs() < EXACT {
            #[expect(clippy::cast_possible_truncation, reason = "whole and within bounds")]
            return Ok(Value::from(value as i64));
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut list = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, list.len());
            match items.next_element_seed(self.child(path))? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path =
                if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            if object.contains_key(&key) && !self.duplicates.contains(&path) {
                self.duplicates.push(path.clone());
            }
            let value = entries.next_value_seed(self.child(path))?;
            // A repeated key stands where it is repeated, which is where strict readers complain.
            object.shift_remove(&key);
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
