//! Values from a schema: mostly what it asks for, now and then anything else.

use std::cell::Cell;

use homeostat_apiserver::schema::{Schema, Type};
use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::words;

/// An object has about so many values at most.
const LARGEST: usize = 250;

/// Makes values.
pub(crate) struct Values<'a> {
    pub(crate) dice: &'a Dice,
    /// How many times in a hundred a value is not what the schema asks for.
    pub(crate) odd: usize,
    left: Cell<usize>,
}

impl<'a> Values<'a> {
    pub(crate) fn new(dice: &'a Dice) -> Self {
        // Most objects should get past the first check; some should be wrong everywhere.
        let odd = *dice.pick(&[0, 0, 1, 2, 15]);
        Self { dice, odd, left: Cell::new(LARGEST) }
    }

    /// A value of that schema for a field of that name.
    pub(crate) fn of(&self, schema: Schema<'_>, field: &str, depth: usize) -> Value {
        self.left.set(self.left.get().saturating_sub(1));
        if self.dice.chance(self.odd) {
            return self.anything(3);
        }
        let node = schema.node();
        if !node.bounds.one_of_values.is_empty() && self.dice.chance(95) {
            return self.dice.pick(&node.bounds.one_of_values).clone();
        }
        match node.ty {
            Type::Object => self.object(schema, depth),
            Type::Array => self.array(schema, field, depth),
            Type::String => self.string(schema, field),
            Type::Integer => self.integer(),
            Type::Number => {
                if self.dice.chance(50) {
                    self.integer()
                } else {
                    json!(0.5)
                }
            }
            Type::Boolean => self.dice.chance(50).into(),
            Type::IntOrString if self.dice.chance(50) => self.integer(),
            Type::IntOrString => (*self.dice.pick(&["http", "50%", "", "101%", "-5%", "x"])).into(),
            Type::Any => self.anything(2),
        }
    }

    fn object(&self, schema: Schema<'_>, depth: usize) -> Value {
        let node = schema.node();
        let mut object = Map::new();
        // What lies deep is made rarely, or objects would never end.
        let likely = [70, 30, 18, 12, 8, 5].get(depth).copied().unwrap_or(2);
        for (name, id) in &node.properties {
            let required = node.required.contains(name);
            let wanted = if required { 98 } else { likely };
            if (self.left.get() == 0 && !required) || !self.dice.chance(wanted) || depth > 20 {
                continue;
            }
            object.insert(name.clone(), self.of(schema.sibling(*id), name, depth + 1));
        }
        if let Some(id) = node.additional {
            for _ in 0..self.dice.below(3) {
                let key = *self.dice.pick(words::of("key"));
                object.insert(key.to_owned(), self.of(schema.sibling(id), key, depth + 1));
            }
        }
        if node.preserve_unknown && self.dice.chance(50) {
            object.insert("any".to_owned(), self.anything(3));
        }
        object.into()
    }

    fn array(&self, schema: Schema<'_>, field: &str, depth: usize) -> Value {
        let Some(items) = schema.items() else { return self.anything(2) };
        let count = *self.dice.pick(&[0, 1, 1, 1, 2, 3]);
        let mut list: Vec<Value> = (0..count).map(|_| self.of(items, field, depth + 1)).collect();
        if self.dice.chance(8) && !list.is_empty() {
            list.push(list[0].clone());
        }
        list.into()
    }

    fn string(&self, schema: Schema<'_>, field: &str) -> Value {
        let node = schema.node();
        let words: &[&str] = match (node.name.as_str(), node.bounds.format.as_deref()) {
            (name, _) if name.ends_with("Quantity") => {
                &["1", "100m", "1Gi", "0", "-1", "1e3", "x", "", "0.000000001n", "1e99"]
            }
            (_, Some("date-time")) => &[
                "2020-01-01T00:00:00Z",
                "2020-01-01T00:00:00.123456Z",
                "2020-01-01T00:00:00+01:00",
                "x",
                "9999-12-31T23:59:60Z",
            ],
            (_, Some("byte")) => &["", "AAE=", "x", "AAE"],
            _ => words::of(field),
        };
        (*self.dice.pick(words)).into()
    }

    fn integer(&self) -> Value {
        let numbers = [
            json!(0),
            json!(1),
            json!(1),
            json!(2),
            json!(3),
            json!(80),
            json!(443),
            json!(-1),
            json!(65536),
            json!(i32::MAX),
            json!(i64::from(i32::MAX) + 1),
            json!(i64::MAX),
            json!(i64::MIN),
            json!(u64::MAX),
            json!(1.5),
        ];
        self.dice.pick(&numbers).clone()
    }

    /// Any JSON at all, so deep at most.
    pub(crate) fn anything(&self, depth: usize) -> Value {
        let kinds = if depth == 0 { 5 } else { 8 };
        match self.dice.below(kinds) {
            0 => Value::Null,
            1 => self.dice.chance(50).into(),
            2 => self.integer(),
            3 => (*self.dice.pick(words::of(""))).into(),
            4 => json!(-1.0e300),
            5 => (0..self.dice.below(3)).map(|_| self.anything(depth - 1)).collect(),
            _ => {
                let keys = ["a", "b", "name", "kind", "apiVersion", "metadata", "$patch", ""];
                let fields = (0..self.dice.below(4))
                    .map(|_| ((*self.dice.pick(&keys)).to_owned(), self.anything(depth - 1)));
                Value::Object(fields.collect())
            }
        }
    }

    /// Makes one list or map inside very long.
    pub(crate) fn swell(&self, value: &mut Value) {
        const MANY: usize = 3000;
        match value {
            Value::Array(items) if !items.is_empty() && self.dice.chance(60) => {
                let same = self.dice.chance(30);
                let first = items[0].clone();
                for at in 0..MANY {
                    let mut item = first.clone();
                    match &mut item {
                        Value::String(text) if !same => *text = format!("{text}{at}"),
                        Value::Object(fields) if !same => {
                            for (_, value) in fields {
                                if let Value::String(text) = value {
                                    *text = format!("{text}{at}");
                                }
                            }
                        }
                        _ => {}
                    }
                    items.push(item);
                }
            }
            Value::Array(items) => {
                if let Some(first) = items.first_mut() {
                    self.swell(first);
                }
            }
            Value::Object(fields) if fields.is_empty() || self.dice.chance(10) => {
                for at in 0..MANY {
                    fields.insert(format!("k{at}"), "v".into());
                }
            }
            Value::Object(fields) => {
                let at = self.dice.below(fields.len());
                if let Some(value) = fields.values_mut().nth(at) {
                    self.swell(value);
                }
            }
            _ => {}
        }
    }

    /// Changes a value somewhere inside.
    pub(crate) fn change(&self, schema: Option<Schema<'_>>, field: &str, value: &mut Value) {
        let stop = self.dice.chance(15);
        match value {
            Value::Object(fields) if !stop && !fields.is_empty() => {
                let at = self.dice.below(fields.len());
                let Some(name) = fields.keys().nth(at).cloned() else { return };
                let below = schema.and_then(|schema| schema.field(&name));
                match self.dice.below(12) {
                    0 => drop(fields.shift_remove(&name)),
                    1 => {
                        let known = schema.map(|schema| &schema.node().properties);
                        let Some((name, id)) = known
                            .filter(|known| !known.is_empty())
                            .and_then(|known| known.iter().nth(self.dice.below(known.len())))
                        else {
                            return;
                        };
                        let made = schema.map(|schema| self.of(schema.sibling(*id), name, 2));
                        fields.insert(name.clone(), made.unwrap_or_default());
                    }
                    _ => {
                        if let Some(inner) = fields.get_mut(&name) {
                            self.change(below, &name, inner);
                        }
                    }
                }
            }
            Value::Array(items) if !stop && !items.is_empty() => {
                let at = self.dice.below(items.len());
                match self.dice.below(8) {
                    0 => drop(items.remove(at)),
                    1 => items.push(items[at].clone()),
                    2 => items.rotate_left(1),
                    _ => self.change(schema.and_then(Schema::items), field, &mut items[at]),
                }
            }
            _ if self.dice.chance(70) && schema.is_some() => {
                if let Some(schema) = schema {
                    *value = self.of(schema, field, 3);
                }
            }
            _ => *value = self.anything(3),
        }
    }
}
