//! The operators of the language on values, with cel-go's words for what cannot be done.

use std::cmp::Ordering;
use std::sync::Arc;

use kube_cel::cel::Value;
use kube_cel::cel::common::ast::operators as named;

use super::functions;
use super::values::{self, key, optional};

pub(super) const NO_OVERLOAD: &str = "no such overload";
const OVERFLOW: &str = "integer overflow";
const UNSIGNED_OVERFLOW: &str = "unsigned integer overflow";

fn no_overload<T>() -> Result<T, String> {
    Err(NO_OVERLOAD.to_owned())
}

/// Whether a function is an operator that [`apply`] knows.
pub(super) fn is_operator(name: &str) -> bool {
    const KNOWN: &[&str] = &[
        named::ADD,
        named::SUBSTRACT,
        named::MULTIPLY,
        named::DIVIDE,
        named::MODULO,
        named::LESS,
        named::LESS_EQUALS,
        named::GREATER,
        named::GREATER_EQUALS,
        named::EQUALS,
        named::NOT_EQUALS,
        named::IN,
        named::LOGICAL_NOT,
        named::NEGATE,
    ];
    KNOWN.contains(&name)
}

/// The result of an operator.
pub(super) fn apply(name: &str, given: Vec<Value>) -> Result<Value, String> {
    let mut given = given.into_iter();
    match (given.next(), given.next()) {
        (Some(left), Some(right)) => binary(name, left, right),
        (Some(only), None) => match (name, only) {
            (named::LOGICAL_NOT, Value::Bool(flag)) => Ok(Value::Bool(!flag)),
            (named::NEGATE, Value::Int(number)) => {
                number.checked_neg().map(Value::Int).ok_or_else(|| OVERFLOW.to_owned())
            }
            (named::NEGATE, Value::Float(number)) => Ok(Value::Float(-number)),
            (named::NEGATE, other) => functions::delegate(named::NEGATE, None, vec![other]),
            _ => no_overload(),
        },
        _ => no_overload(),
    }
}

fn binary(name: &str, left: Value, right: Value) -> Result<Value, String> {
    let ordered = |holds: fn(Ordering) -> bool| match comparable(&left, &right) {
        // What is not a number is neither less nor more.
        true => Ok(Value::Bool(order(&left, &right).is_some_and(holds))),
        false => no_overload(),
    };
    match name {
        named::EQUALS => Ok(Value::Bool(left == right)),
        named::NOT_EQUALS => Ok(Value::Bool(left != right)),
        named::LESS => ordered(Ordering::is_lt),
        named::LESS_EQUALS => ordered(Ordering::is_le),
        named::GREATER => ordered(Ordering::is_gt),
        named::GREATER_EQUALS => ordered(Ordering::is_ge),
        named::IN => contains(&right, &left),
        _ => arithmetic(name, left, right),
    }
}

fn comparable(left: &Value, right: &Value) -> bool {
    let is_number =
        |value: &Value| matches!(value, Value::Int(_) | Value::UInt(_) | Value::Float(_));
    let has_order = matches!(
        left,
        Value::Bool(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::Timestamp(_)
            | Value::Duration(_)
    );
    (is_number(left) && is_number(right))
        || (has_order && std::mem::discriminant(left) == std::mem::discriminant(right))
}

/// Which of two values comes first.
pub(super) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        _ => left.partial_cmp(right),
    }
}

fn contains(whole: &Value, part: &Value) -> Result<Value, String> {
    match whole {
        Value::List(items) => Ok(Value::Bool(items.contains(part))),
        Value::Map(map) => Ok(Value::Bool(key(part).is_some_and(|key| map.map.contains_key(&key)))),
        _ => no_overload(),
    }
}

fn arithmetic(name: &str, left: Value, right: Value) -> Result<Value, String> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => whole(name, left, right).map(Value::Int),
        (Value::UInt(left), Value::UInt(right)) => {
            let result = match name {
                named::ADD => left.checked_add(right),
                named::SUBSTRACT => left.checked_sub(right),
                named::MULTIPLY => left.checked_mul(right),
                _ if right == 0 => return Err(by_zero(name).to_owned()),
                named::DIVIDE => Some(left / right),
                _ => Some(left % right),
            };
            result.map(Value::UInt).ok_or_else(|| UNSIGNED_OVERFLOW.to_owned())
        }
        (Value::Float(left), Value::Float(right)) => Ok(Value::Float(match name {
            named::ADD => left + right,
            named::SUBSTRACT => left - right,
            named::MULTIPLY => left * right,
            named::DIVIDE => left / right,
            _ => return no_overload(),
        })),
        (Value::List(mut left), Value::List(right)) if name == named::ADD => {
            Arc::make_mut(&mut left).extend(right.iter().cloned());
            Ok(Value::List(left))
        }
        (Value::String(mut left), Value::String(right)) if name == named::ADD => {
            Arc::make_mut(&mut left).push_str(&right);
            Ok(Value::String(left))
        }
        (Value::Bytes(mut left), Value::Bytes(right)) if name == named::ADD => {
            Arc::make_mut(&mut left).extend_from_slice(&right);
            Ok(Value::Bytes(left))
        }
        (left, right) => functions::delegate(name, None, vec![left, right]),
    }
}

fn whole(name: &str, left: i64, right: i64) -> Result<i64, String> {
    let result = match name {
        named::ADD => left.checked_add(right),
        named::SUBSTRACT => left.checked_sub(right),
        named::MULTIPLY => left.checked_mul(right),
        _ if right == 0 => return Err(by_zero(name).to_owned()),
        named::DIVIDE => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    result.ok_or_else(|| OVERFLOW.to_owned())
}

fn by_zero(name: &str) -> &'static str {
    if name == named::DIVIDE { "division by zero" } else { "modulus by zero" }
}

/// What is at a place: `a.b` and `a[b]`.
pub(super) fn at(whole: &Value, place: &Value) -> Result<Value, String> {
    match (whole, place) {
        (Value::Map(map), _) => {
            let key = key(place).ok_or_else(|| "unsupported key type".to_owned())?;
            map.map.get(&key).cloned().ok_or_else(|| format!("no such key: {key}"))
        }
        (Value::List(items), Value::Int(_) | Value::UInt(_) | Value::Float(_)) => {
            let number = match key(place) {
                Some(kube_cel::cel::objects::Key::Int(number)) => usize::try_from(number).ok(),
                Some(kube_cel::cel::objects::Key::Uint(number)) => usize::try_from(number).ok(),
                _ => None,
            };
            let shown = match place {
                Value::Int(number) => number.to_string(),
                Value::UInt(number) => number.to_string(),
                Value::Float(number) => number.to_string(),
                _ => String::new(),
            };
            let found = number.and_then(|number| items.get(number));
            found.cloned().ok_or_else(|| format!("index out of bounds: {shown}"))
        }
        (Value::List(_), other) => {
            Err(format!("unsupported index type '{}' in list", values::type_name(other)))
        }
        (_, place) => match key(place) {
            Some(key) => Err(format!("no such key: {key}")),
            None => no_overload(),
        },
    }
}

/// What may be at a place: nothing is no mistake.
pub(super) fn maybe_at(whole: &Value, place: &Value) -> Option<Value> {
    match optional(whole) {
        Some(None) => None,
        Some(Some(inner)) => maybe_at(inner, place),
        None => at(whole, place).ok(),
    }
}
