//! Calls of functions whose arguments are known.
//!
//! Most of them are `kube-cel`'s; here are those it lacks, and those where a copy of a large
//! argument would cost more than the call.

use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr};
use kube_cel::cel::{Context, ExecutionError, Value};

use super::complaints;
use super::operators::{self, NO_OVERLOAD};
use super::texts;
use super::values::{self, key, string};

/// The names that arguments have for [`delegate`].
const ARGUMENTS: [&str; 5] = ["@0", "@1", "@2", "@3", "@4"];

const NO_QUANTITY: &str = "quantities must match the regular expression \
                           '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const NO_SUFFIX: &str = "unable to parse quantity's suffix";

thread_local! {
    /// The functions of `kube-cel`; a table that is the same everywhere, but cannot be shared.
    static FUNCTIONS: Context<'static> = Context::default().with_all();
}

/// The result of a call, or why there is none. `member` tells `a.f(b)` from `f(a, b)`.
pub(super) fn call(name: &str, member: bool, mut given: Vec<Value>) -> Result<Value, String> {
    if let Some(complaint) = complaints::about(name, &given) {
        return Err(complaint);
    }
    match (name, &given[..]) {
        ("size", [value]) => match value {
            Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => {
                i64::try_from(values::size(value)).map(Value::Int).map_err(|e| e.to_string())
            }
            _ => Err(format!("{NO_OVERLOAD}: size")),
        },
        ("int", [Value::Float(number)]) if number.is_nan() => Err("integer overflow".to_owned()),
        ("asInteger", [_]) => {
            let target = given.remove(0);
            let whole = delegate(name, Some(target), given);
            whole.map_err(|_| "cannot convert value to integer".to_owned())
        }
        ("dyn", [_]) => Ok(given.remove(0)),
        ("type", [value]) => Ok(values::type_of(value)),
        ("bool", [Value::Bool(flag)]) => Ok(Value::Bool(*flag)),
        ("bool", [Value::String(text)]) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(unconverted(name)),
        },
        ("string", [value]) if texts::of(value).is_some() => {
            Ok(texts::of(value).map_or(Value::Null, |text| string(&text)))
        }
        ("format", [template, Value::List(arguments)]) => {
            let arguments = arguments.iter().map(texts::plain).collect();
            delegate(name, Some(template.clone()), vec![Value::List(Arc::new(arguments))])
        }
        ("format.named", [_]) => {
            Ok(delegate(name, None, given).map_or_else(|_| values::none(), named_format))
        }
        (_, [Value::Timestamp(_), Value::String(zone)]) if name.starts_with("get") => {
            texts::in_zone(name, &given[0], zone)
        }
        ("startsWith", [Value::String(text), Value::String(part)]) => {
            Ok(Value::Bool(text.starts_with(part.as_str())))
        }
        ("endsWith", [Value::String(text), Value::String(part)]) => {
            Ok(Value::Bool(text.ends_with(part.as_str())))
        }
        ("contains", [Value::String(text), Value::String(part)]) => {
            Ok(Value::Bool(text.contains(part.as_str())))
        }
        ("startsWith" | "endsWith" | "contains", _) => Err(NO_OVERLOAD.to_owned()),
        ("optional.none", []) => Ok(values::none()),
        ("optional.of", [_]) => Ok(values::some(given.remove(0))),
        ("hasValue", [value]) => match values::optional(value) {
            Some(inner) => Ok(Value::Bool(inner.is_some())),
            None => Err(NO_OVERLOAD.to_owned()),
        },
        ("value", [value]) => match values::optional(value) {
            Some(Some(inner)) => Ok(inner.clone()),
            Some(None) => Err("optional.none() dereference".to_owned()),
            None => Err(NO_OVERLOAD.to_owned()),
        },
        (super::expand::INSERT, _) => insert(given),
        ("int" | "uint" | "double" | "duration" | "timestamp", [Value::String(_)]) => {
            delegate(name, None, given).map_err(|_| unconverted(name))
        }
        ("quantity" | "isQuantity", [Value::String(text)]) => {
            let (number, suffix) = amount(text);
            let why = if is_suffix(suffix) { NO_SUFFIX } else { NO_QUANTITY };
            let written = if text.is_empty() { String::new() } else { number + suffix };
            delegate(name, None, vec![Value::String(written.into())]).map_err(|_| why.to_owned())
        }
        ("slice", [Value::List(items), Value::Int(from), Value::Int(to)])
            if part(items, *from, *to).is_some() =>
        {
            Ok(part(items, *from, *to)
                .map_or(Value::Null, |part| Value::List(part.to_vec().into())))
        }
        ("@sortByAssociatedKeys", [Value::List(items), Value::List(keys)]) => sorted(items, keys),
        _ => {
            let target = (member && !given.is_empty()).then(|| given.remove(0));
            delegate(name, target, given)
        }
    }
}

/// The number at the beginning of an amount, without what may be left out, and what comes after it.
/// No digits at all are a zero.
fn amount(text: &str) -> (String, &str) {
    let is_digit = |c: char| c.is_ascii_digit();
    let sign = if text.starts_with('-') { "-" } else { "" };
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let rest = unsigned.trim_start_matches(is_digit);
    let whole = &unsigned[..unsigned.len() - rest.len()];
    let whole = if whole.is_empty() { "0" } else { whole };
    let Some(below) = rest.strip_prefix('.') else { return (format!("{sign}{whole}"), rest) };
    let rest = below.trim_start_matches(is_digit);
    match &below[..below.len() - rest.len()] {
        "" => (format!("{sign}{whole}"), rest),
        fraction => (format!("{sign}{whole}.{fraction}"), rest),
    }
}

/// Whether it consists of what a suffix could have, though it may be none.
fn is_suffix(text: &str) -> bool {
    let letters = text.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let digits = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    !text.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The items between two places, if both are in the list.
fn part(items: &[Value], from: i64, to: i64) -> Option<&[Value]> {
    items.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
}

/// What is said of a text that is not what it should be.
fn unconverted(wanted: &str) -> String {
    let wanted = match wanted {
        "duration" => "google.protobuf.Duration",
        "timestamp" => "google.protobuf.Timestamp",
        other => other,
    };
    format!("type conversion error from 'string' to '{wanted}'")
}

/// `kube-cel` gives a format, or null.
fn named_format(found: Value) -> Value {
    if found == Value::Null { values::none() } else { values::some(found) }
}

/// Lets `kube-cel` carry out a call.
pub(super) fn delegate(
    name: &str,
    target: Option<Value>,
    given: Vec<Value>,
) -> Result<Value, String> {
    FUNCTIONS.with(|functions| {
        let mut context = functions.new_inner_scope();
        let mut names = ARGUMENTS.iter();
        let mut argument = |value: Value| {
            let name = names.next().copied().unwrap_or("@");
            context.add_variable_from_value(name, value);
            IdedExpr { id: 0, expr: Expr::Ident(name.to_owned()) }
        };
        let target = target.map(|target| Box::new(argument(target)));
        let args = given.into_iter().map(argument).collect();
        let call = Expr::Call(CallExpr { func_name: name.to_owned(), target, args });
        Value::resolve(&IdedExpr { id: 0, expr: call }, &context).map_err(words)
    })
}

/// An error of `kube-cel` in the words of cel-go, as far as it has any.
fn words(error: ExecutionError) -> String {
    match error {
        ExecutionError::FunctionError { message, .. } => message,
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::UnexpectedType { .. } => NO_OVERLOAD.to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        other => other.to_string(),
    }
}

/// A map with one more entry, or with all entries of another.
fn insert(given: Vec<Value>) -> Result<Value, String> {
    let mut given = given.into_iter();
    let (Some(Value::Map(mut map)), Some(first)) = (given.next(), given.next()) else {
        return Err(NO_OVERLOAD.to_owned());
    };
    let added = match (first, given.next()) {
        (name, Some(value)) => vec![(key(&name).ok_or("unsupported key type")?, value)],
        (Value::Map(other), None) => values::in_order(&other),
        _ => return Err(NO_OVERLOAD.to_owned()),
    };
    let entries = Arc::make_mut(&mut map.map);
    for (name, value) in added {
        if entries.contains_key(&name) {
            return Err(format!("insert failed: key {name} already exists"));
        }
        entries.insert(name, value);
    }
    Ok(Value::Map(map))
}

/// The items in the order of their keys; those with equal keys stay as they are.
fn sorted(items: &[Value], keys: &[Value]) -> Result<Value, String> {
    let mut paired: Vec<(&Value, &Value)> = keys.iter().zip(items).collect();
    let first = keys.first().map(std::mem::discriminant);
    if keys.iter().any(|key| Some(std::mem::discriminant(key)) != first) {
        return Err("list elements must have the same type".to_owned());
    }
    paired.sort_by(|(a, _), (b, _)| operators::order(a, b).unwrap_or(std::cmp::Ordering::Equal));
    Ok(Value::List(Arc::new(paired.into_iter().map(|(_, item)| item.clone()).collect())))
}
