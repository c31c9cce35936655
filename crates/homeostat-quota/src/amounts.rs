//! A list of resources with how much of each, as `requests`, `limits`, `hard` and `used` are.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::Quantity;

/// Amounts by the name of their resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, Quantity>);

impl Amounts {
    /// Reads a resource list; what is no amount is left out.
    #[must_use]
    pub fn read(list: Option<&Value>) -> Self {
        let entries = list.and_then(Value::as_object).into_iter().flatten();
        Self(entries.filter_map(|(name, value)| Some((name.clone(), amount(value)?))).collect())
    }

    /// The list as JSON, each amount in its canonical form.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let entries = self.0.iter().map(|(name, amount)| (name.clone(), amount.to_string().into()));
        Value::Object(entries.collect::<Map<_, _>>())
    }

    /// How much of one resource.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.0.get(name).copied()
    }

    /// Sets how much of one resource.
    pub fn set(&mut self, name: impl Into<String>, amount: Quantity) {
        self.0.insert(name.into(), amount);
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The amounts, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the amounts of another list.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            let sum = self.get(name).map_or(amount, |own| own.plus(amount));
            self.set(name, sum);
        }
    }

    /// Raises every amount to that of another list, where that is more.
    pub fn raise(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            if self.get(name).is_none_or(|own| own < amount) {
                self.set(name, amount);
            }
        }
    }

    /// What is left of each amount without those of another list, never less than nothing.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let left = self.iter().map(|(name, amount)| {
            let rest = other.get(name).map_or(amount, |other| amount.minus(other));
            (name.to_owned(), if rest.is_negative() { Quantity::ZERO } else { rest })
        });
        Self(left.collect())
    }

    /// Only the amounts whose name passes.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&str, Quantity) -> bool) -> Self {
        let kept = self.iter().filter(|(name, amount)| keep(name, *amount));
        Self(kept.map(|(name, amount)| (name.to_owned(), amount)).collect())
    }
}

fn amount(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// `cpu=1,memory=2Gi`, as refusals show them.
impl fmt::Display for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (name, amount)) in self.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{name}={amount}")?;
        }
        Ok(())
    }
}
