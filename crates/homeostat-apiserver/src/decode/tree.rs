//! A JSON value read through serde, from any format, with the path of every repeated key.

use std::fmt::{self, Write as _};

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{MAX_DEPTH, MOST_COMPLAINTS};

/// Whole numbers below this one have one representation as a float.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// What is known while a body is read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The way to the value that is read: written out only where somebody is told of it.
    path: Vec<Step>,
    /// The paths of repeated keys.
    pub(super) duplicates: Vec<String>,
    /// Whether a number was written with a fraction or an exponent, or is too large for others.
    pub(super) has_floats: bool,
}

#[derive(Debug)]
enum Step {
    Field(String),
    Item(usize),
}

impl Reading {
    /// Whether one more field that was there before is told of.
    fn has_room(&self) -> bool {
        self.duplicates.len() < MOST_COMPLAINTS
    }

    /// Notes that the field just entered was there before.
    fn repeated(&mut self) {
        let mut path = String::new();
        for step in &self.path {
            let dot = if path.is_empty() { "" } else { "." };
            let _ = match step {
                Step::Field(name) => write!(path, "{dot}{name}"),
                Step::Item(at) => write!(path, "[{at}]"),
            };
        }
        if !self.duplicates.contains(&path) {
            self.duplicates.push(path);
        }
    }
}

/// Reads one value and everything in it.
#[derive(Debug)]
pub(super) struct Tree<'a>(pub(super) &'a mut Reading);

impl Tree<'_> {
    fn check_depth<E: de::Error>(&self) -> Result<(), E> {
        if self.0.path.len() < MAX_DEPTH { Ok(()) } else { Err(E::custom("exceeded max depth")) }
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
        self.0.has_floats = true;
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut list = Vec::new();
        loop {
            self.0.path.push(Step::Item(list.len()));
            let item = items.next_element_seed(Tree(self.0))?;
            self.0.path.pop();
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut object = Map::new();
        // Once is enough: paths can be long, and a key can be repeated without end.
        let mut told: Vec<String> = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            let moves = object.contains_key(&key) && self.0.has_room();
            let is_news = moves && !told.contains(&key);
            if is_news {
                told.push(key.clone());
            }
            self.0.path.push(Step::Field(key));
            if is_news {
                self.0.repeated();
            }
            let value = entries.next_value_seed(Tree(self.0))?;
            let Some(Step::Field(key)) = self.0.path.pop() else { continue };
            // A repeated key stands where it is repeated, which is where strict readers complain.
            if moves {
                object.shift_remove(&key);
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
