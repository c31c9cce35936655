//! Lists that a schema makes sets or maps: what is equal to what, and what `+` makes of two.
//!
//! Values do not say so themselves. A list is known by where it lies in memory, and is kept alive
//! for as long as somebody may ask.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube_cel::cel::Value;
use kube_cel::cel::common::ast::operators as named;
use kube_cel::cel::objects::Key;

use super::values;

/// What tells the items of a list apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Listing {
    /// Their place.
    #[default]
    Ordered,
    /// They themselves.
    Set,
    /// These fields of theirs; `None` for one that nobody can read under its name.
    Keyed(Vec<Option<String>>),
}

/// The sets and maps among some lists. Empty by default.
#[derive(Debug, Clone, Default)]
pub struct Lists(BTreeMap<usize, (Arc<Vec<Value>>, Listing)>);

fn place(list: &Arc<Vec<Value>>) -> usize {
    Arc::as_ptr(list) as usize
}

impl Lists {
    pub(super) fn note(&mut self, list: &Arc<Vec<Value>>, listing: &Listing) {
        if *listing != Listing::Ordered {
            self.0.insert(place(list), (Arc::clone(list), listing.clone()));
        }
    }

    fn of(&self, list: &Arc<Vec<Value>>) -> Option<&Listing> {
        self.0.get(&place(list)).map(|(_, listing)| listing)
    }
}

/// The lists that one run knows: those it was given, and those it made.
pub(super) struct Known<'a> {
    given: Option<&'a Lists>,
    made: Lists,
}

impl<'a> Known<'a> {
    pub(super) fn new(given: Option<&'a Lists>) -> Self {
        Self { given: given.filter(|lists| !lists.0.is_empty()), made: Lists::default() }
    }

    /// The result of an operator, where lists make a difference to it.
    pub(super) fn apply(&mut self, name: &str, given: &[Value]) -> Option<Value> {
        let ([left, right], Some(_)) = (given, self.given) else { return None };
        match (name, left, right) {
            (named::EQUALS, ..) => Some(Value::Bool(self.equal(left, right))),
            (named::NOT_EQUALS, ..) => Some(Value::Bool(!self.equal(left, right))),
            (named::IN, part, Value::List(items)) => {
                Some(Value::Bool(items.iter().any(|item| self.equal(item, part))))
            }
            (named::ADD, Value::List(left), Value::List(right)) => {
                let listing = self.of(left)?.clone();
                let sum = Arc::new(sum(&listing, left, right));
                self.made.note(&sum, &listing);
                Some(Value::List(sum))
            }
            _ => None,
        }
    }

    fn of(&self, list: &Arc<Vec<Value>>) -> Option<&Listing> {
        self.made.of(list).or_else(|| self.given?.of(list))
    }

    /// Whether two values are the same; what a list is, the left one says.
    fn equal(&self, left: &Value, right: &Value) -> bool {
        match (left, right) {
            (Value::List(left), Value::List(right)) if left.len() != right.len() => false,
            (Value::List(left), Value::List(right)) => match self.of(left) {
                None | Some(Listing::Ordered) => {
                    left.iter().zip(right.iter()).all(|(left, right)| self.equal(left, right))
                }
                Some(Listing::Set) => {
                    let set: BTreeSet<Scalar> = left.iter().map(scalar).collect();
                    right.iter().map(scalar).all(|item| item.is_plain() && set.contains(&item))
                }
                Some(Listing::Keyed(fields)) => {
                    let items: BTreeMap<Vec<Scalar>, &Value> =
                        left.iter().map(|item| (identity(item, fields), item)).collect();
                    right.iter().all(|item| {
                        let same = items.get(&identity(item, fields));
                        same.is_some_and(|same| self.equal(same, item))
                    })
                }
            },
            (Value::Map(left), Value::Map(right)) => {
                left.map.len() == right.map.len()
                    && left.map.iter().all(|(name, left)| {
                        right.map.get(name).is_some_and(|right| self.equal(left, right))
                    })
            }
            _ => match (values::optional(left), values::optional(right)) {
                (Some(Some(left)), Some(Some(right))) => self.equal(left, right),
                _ => left == right,
            },
        }
    }
}

/// What `+` makes: items of the right one take the place of those they are the same as, or follow.
fn sum(listing: &Listing, left: &[Value], right: &[Value]) -> Vec<Value> {
    let mut items = left.to_vec();
    match listing {
        Listing::Ordered => items.extend(right.iter().cloned()),
        Listing::Set => {
            let mut set: BTreeSet<Scalar> = left.iter().map(scalar).collect();
            items.extend(right.iter().filter(|item| set.insert(scalar(item))).cloned());
        }
        Listing::Keyed(fields) => {
            let places: BTreeMap<Vec<Scalar>, usize> =
                left.iter().zip(0..).map(|(item, at)| (identity(item, fields), at)).collect();
            for item in right {
                match places.get(&identity(item, fields)) {
                    Some(at) => items[*at] = item.clone(),
                    None => items.push(item.clone()),
                }
            }
        }
    }
    items
}

/// A value that can be looked up.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Scalar {
    Absent,
    Plain(Key),
    /// A number with a point.
    Bits(u64),
    /// What is written as a text and is something else in expressions.
    Read(String),
}

impl Scalar {
    /// Kubernetes looks up what was read among what was written, and never finds it.
    fn is_plain(&self) -> bool {
        !matches!(self, Self::Read(_))
    }
}

fn scalar(value: &Value) -> Scalar {
    match value {
        Value::Float(number) => Scalar::Bits(number.to_bits()),
        other => {
            values::key(other).map_or_else(|| Scalar::Read(format!("{other:?}")), Scalar::Plain)
        }
    }
}

fn identity(item: &Value, fields: &[Option<String>]) -> Vec<Scalar> {
    let Value::Map(map) = item else { return Vec::new() };
    let field = |name: &String| map.map.get(&Key::String(Arc::new(name.clone())));
    let fields = fields.iter().map(|name| name.as_ref().and_then(field));
    fields.map(|found| found.map_or(Scalar::Absent, scalar)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Decl, Program, Scope, typed};

    struct Own(Value, Lists);

    impl Scope for Own {
        fn variable(&self, name: &str) -> Option<Value> {
            (name == "self").then(|| self.0.clone())
        }

        fn lists(&self) -> Option<&Lists> {
            Some(&self.1)
        }
    }

    #[test]
    fn sets_and_maps_have_no_order_and_nothing_twice() {
        let texts = |kind: &str| json!({"type": "array", "x-kubernetes-list-type": kind, "items": {"type": "string"}});
        let ports = json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["p"],
            "items": {"type": "object", "properties": {
                "p": {"type": "integer"}, "n": texts("set"),
            }},
        });
        let decl = json!({"type": "object", "properties": {
            "a": texts("set"), "b": texts("set"), "c": texts("atomic"), "d": texts("atomic"),
            "x": {"type": "array", "items": ports},
            "places": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["namespace"],
                "items": {"type": "object", "properties": {"namespace": {"type": "string"}}},
            },
            "times": {"type": "array", "x-kubernetes-list-type": "set",
                "items": {"type": "string", "format": "date-time"}},
        }});
        let decl = Decl::of(&decl, false, "selfType").unwrap();
        let object = json!({
            "a": ["1", "2"], "b": ["2", "1"], "c": ["1", "2"], "d": ["2", "1"],
            // Two of them: structures are of one type only with themselves.
            "x": [
                [{"p": 1, "n": ["a", "b"]}, {"p": 2}],
                [{"p": 2}, {"p": 1, "n": ["b", "a"]}],
            ],
            "places": [{"namespace": "a"}, {"namespace": "b"}],
            "times": ["2020-01-01T00:00:00Z"],
        });
        let mut lists = Lists::default();
        let own = typed(&object, &decl, &mut lists);
        let own = Own(own, lists);
        for expression in [
            "self.a == self.b",
            "self.c != self.d",
            "self.a == self.d",
            "self.d != self.a",
            "self.a + ['3', '1'] == ['3', '2', '1']",
            "['3', '2', '1'] != self.a + ['3', '1']",
            "size(self.a + self.b) == 2",
            "size(self.c + self.d) == 4",
            "self.x[0] == self.x[1]",
            "!(self.x[0] != self.x[1])",
            "self.x[0][0] in self.x[1]",
            "(self.x[0] + self.x[1]).map(i, i.p) == [1, 2]",
            "self.x[0] + self.x[1] == self.x[0]",
            "[self.a] == [self.b]",
            // So it is in Kubernetes.
            "self.places != self.places",
            "self.times != self.times",
        ] {
            let program = Program::compile(expression, &[("self", decl.ty.clone())]);
            let result = program.unwrap().run(&own).result;
            assert_eq!(result, Ok(Value::Bool(true)), "{expression}");
        }
    }
}
