//! What one call cost that was carried out: cel-go's count with the prices of Kubernetes'
//! libraries. The estimate before the fact is in `price`.

use kube_cel::cel::Value;

use super::price::{CHECK, COMPARISONS, LIST, REGEX, STRUCT, TRAVERSAL};
use super::values::{in_order, size};

/// The longest patterns behind named formats.
const FORMATS: &[(&str, u64)] = &[
    ("subdomain", 60),
    ("qualifiedname", 60),
    ("dns1", 30),
    ("labelvalue", 40),
    ("uri", 1103),
    ("uuid", 70),
    ("byte", 84),
    ("date", 71),
];

/// The cost of a call on values of these `sizes`, without that of its arguments. Where it is not
/// known before which `overload` is meant, there is none.
pub(super) fn of(
    name: &str,
    overload: &str,
    given: &[Value],
    sizes: &[u64],
    result: Option<&Value>,
) -> u64 {
    of_list(overload, given, sizes, result)
        .or_else(|| of_library(name, overload, given, sizes, result))
        .unwrap_or_else(|| of_standard(overload, sizes))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "costs are rounded; sizes are far below what a float holds"
)]
fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

fn regex(text: u64, pattern: u64) -> u64 {
    scaled(text.saturating_add(1), TRAVERSAL).saturating_mul(scaled(pattern, REGEX))
}

/// Functions of the language.
fn of_standard(overload: &str, sizes: &[u64]) -> u64 {
    match (overload, sizes) {
        (
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
            | "strings_quote" | "string_format",
            [text, ..],
        ) => scaled(*text, TRAVERSAL),
        ("in_list", [_, list]) => *list,
        (overload, [left, right]) if COMPARISONS.contains(&overload) => {
            scaled(*left.min(right), TRAVERSAL)
        }
        ("add_string" | "add_bytes", [left, right]) => scaled(left + right, TRAVERSAL),
        ("matches_string", [text, pattern]) => regex(*text, *pattern),
        ("contains_string", [text, part]) => {
            scaled(*text, TRAVERSAL).saturating_mul(scaled(*part, TRAVERSAL))
        }
        _ => 1,
    }
}

/// The list and set functions that come with cel-go.
fn of_list(overload: &str, given: &[Value], sizes: &[u64], result: Option<&Value>) -> Option<u64> {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded down, as cel-go does"
    )]
    let allocating = |factor: f64, size: u64| Some((size as f64 * factor) as u64 + 1 + LIST);
    let compared = |list: usize| {
        let items = match given.get(list) {
            Some(Value::List(items)) => items.as_slice(),
            _ => &[],
        };
        let is_text = matches!(items.first(), Some(Value::String(_) | Value::Bytes(_)));
        let count = items.len() as u64;
        allocating(if is_text { 2.0 + TRAVERSAL } else { 2.0 }, count.saturating_mul(count))
    };
    match (overload, sizes) {
        ("list_slice" | "lists_range" | "list_reverse", _) => {
            allocating(1.0, result.map_or(1, size))
        }
        ("list_flatten" | "list_flatten_int", [list, ..]) => {
            let depth = match given.get(1) {
                Some(Value::Int(depth)) => i32::try_from(*depth).unwrap_or(i32::MAX),
                _ => 1,
            };
            allocating(f64::from(depth), *list)
        }
        ("list_distinct", _) => compared(0),
        ("list_sets_contains_list" | "list_sets_intersects_list", [left, right]) => {
            Some(left.saturating_mul(*right) + 1)
        }
        ("list_sets_equivalent_list", [left, right]) => {
            Some(left.saturating_mul(*right).saturating_mul(2) + 1)
        }
        _ if overload.ends_with("_sort") => compared(0),
        _ if overload.ends_with("_sortByAssociatedKeys") => compared(1),
        _ => None,
    }
}

/// Functions of Kubernetes' libraries.
fn of_library(
    name: &str,
    overload: &str,
    given: &[Value],
    sizes: &[u64],
    result: Option<&Value>,
) -> Option<u64> {
    let first = sizes.first().copied();
    match name {
        "check" => Some(CHECK),
        "fieldSelector" | "labelSelector" => {
            let length = *sizes.get(1)?;
            // A list of requirements, each a structure with a list of its own.
            let requirements = scaled(length, 0.5).saturating_mul(LIST + STRUCT);
            Some(LIST + scaled(length, TRAVERSAL) + requirements)
        }
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            Some(given.first().map_or(0, walked))
        }
        "ip" if overload == "cidr_ip" => Some(1),
        "url"
        | "ip"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "jsonpatch.escapeKey"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => Some(scaled(first?, TRAVERSAL)),
        "replace" | "split" | "ip.isCanonical" => Some(scaled(first?, 2.0 * TRAVERSAL)),
        "join" => Some(scaled(result.map_or(1, size), 2.0 * TRAVERSAL)),
        "find" | "findAll" => Some(regex(first?, *sizes.get(1)?)),
        "containsIP" | "containsCIDR" => {
            let mut cost = scaled(2 * first?, TRAVERSAL);
            if name == "containsCIDR" {
                cost += scaled(first?, TRAVERSAL) + 1;
            }
            if overload.ends_with("_string") {
                cost += scaled(*sizes.get(1)?, TRAVERSAL);
            }
            Some(cost)
        }
        "validate" => {
            let Some(Value::Opaque(format)) = given.first() else { return None };
            let shown = format!("{:?}", format.as_debug()).to_lowercase();
            let (_, pattern) = FORMATS.iter().find(|(name, _)| shown.contains(name))?;
            Some(regex(*sizes.get(1)?, *pattern))
        }
        "_==_" => match given.first()? {
            Value::Opaque(left) if left.runtime_type_name().contains('.') => Some(1),
            _ => None,
        },
        _ => None,
    }
}

/// The cost of going through everything there is in a value.
fn walked(value: &Value) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded down, as kube-apiserver does"
    )]
    let text = |length: usize| (length as f64 * TRAVERSAL) as u64;
    match value {
        Value::String(given) => text(given.len()),
        Value::Bytes(bytes) => text(bytes.len()),
        Value::List(items) => items.iter().map(walked).sum(),
        Value::Map(map) => {
            let entries = in_order(map);
            entries.iter().map(|(key, value)| walked(&key.clone().into()) + walked(value)).sum()
        }
        _ => 1,
    }
}
