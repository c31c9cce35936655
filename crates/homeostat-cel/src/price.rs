//! What one call of a function costs at most, and how large its result can be.

use kube_cel::cel::common::ast::{Expr, LiteralValue};

use super::amount::Amount;
use super::cost::Path;
use super::types::Type;

/// Making a list, a map, a structure.
pub(super) const LIST: u64 = 10;
pub(super) const MAP: u64 = 30;
pub(super) const STRUCT: u64 = 40;
/// Going through a string, per character.
pub(super) const TRAVERSAL: f64 = 0.1;
/// A regular expression, per character.
pub(super) const REGEX: f64 = 0.25;
/// The longest pattern behind a named format.
const FORMAT_PATTERN: f64 = 128.0;
/// An authorization check: two of them fit into an expression.
pub(super) const CHECK: u64 = 350_000;

/// An argument.
pub(super) struct Node<'a> {
    pub(super) expr: &'a Expr,
    pub(super) path: Path,
    pub(super) ty: Type,
    pub(super) size: Option<Amount>,
}

/// A call of one overload.
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) overload: &'static str,
    pub(super) target: Option<&'a Node<'a>>,
    pub(super) arguments: &'a [Node<'a>],
}

/// The cost, arguments included, and the size of the result where it is known.
pub(super) struct Price {
    pub(super) cost: Amount,
    pub(super) size: Option<Amount>,
}

fn costs(cost: Amount) -> Option<Price> {
    Some(Price { cost, size: None })
}

fn makes(cost: Amount, size: Amount) -> Option<Price> {
    Some(Price { cost, size: Some(size) })
}

/// The price of a call whose arguments cost `costs`; `declared` knows what the schema says.
pub(super) fn of(
    call: &Call<'_>,
    argument_costs: &[Amount],
    declared: &dyn Fn(&[String]) -> Option<Amount>,
) -> Price {
    let sum = argument_costs.iter().fold(Amount::fixed(0), |sum, cost| sum.plus(*cost));
    let priced = of_list_extension(call).or_else(|| of_library(call, declared));
    if let Some(price) = priced {
        return Price { cost: price.cost.plus(sum), ..price };
    }
    match (call.overload, call.arguments) {
        ("logical_or" | "logical_and", [_, _]) => {
            let most = argument_costs[0].plus(argument_costs[1]).max;
            Price { cost: Amount { min: argument_costs[0].min, max: most }, size: None }
        }
        ("conditional", [_, then, otherwise]) => {
            let either = argument_costs[1].union(argument_costs[2]);
            let size = size_of(then).union(size_of(otherwise));
            Price { cost: argument_costs[0].plus(either), size: Some(size) }
        }
        _ => {
            let price = of_standard(call).unwrap_or(Price { cost: Amount::fixed(1), size: None });
            Price { cost: price.cost.plus(sum), ..price }
        }
    }
}

fn size_of(node: &Node<'_>) -> Amount {
    node.size.unwrap_or(Amount::UNKNOWN)
}

/// What compares two values as far as the shorter goes.
pub(super) const COMPARISONS: &[&str] = &[
    "less_string",
    "greater_string",
    "less_equals_string",
    "greater_equals_string",
    "less_bytes",
    "greater_bytes",
    "less_equals_bytes",
    "greater_equals_bytes",
    "equals",
    "not_equals",
];

/// Functions of the language.
fn of_standard(call: &Call<'_>) -> Option<Price> {
    let first = call.arguments.first();
    match (call.overload, call.target, first) {
        ("string_format", Some(target), _) => costs(size_of(target).scaled(TRAVERSAL)),
        ("string_to_bytes", _, Some(text)) => {
            let size = size_of(text);
            let most = Amount { min: size.min, max: size.max.saturating_mul(4) };
            makes(size.scaled(TRAVERSAL), most)
        }
        ("bytes_to_string", _, Some(bytes)) => {
            let size = size_of(bytes);
            makes(size.scaled(TRAVERSAL), Amount { min: size.min / 4, max: size.max })
        }
        ("strings_quote", _, Some(text)) => {
            let size = size_of(text);
            let most = size.max.saturating_mul(2).saturating_add(2);
            makes(size.scaled(TRAVERSAL), Amount { min: size.min.saturating_add(2), max: most })
        }
        ("starts_with_string" | "ends_with_string", _, Some(part)) => {
            costs(size_of(part).scaled(TRAVERSAL))
        }
        ("in_list", _, _) => costs(size_of(call.arguments.get(1)?)),
        ("matches_string", Some(target), Some(pattern)) => costs(regex(target, pattern)),
        ("contains_string", Some(target), Some(part)) => {
            costs(size_of(target).scaled(TRAVERSAL).times(size_of(part).scaled(TRAVERSAL)))
        }
        ("add_string" | "add_bytes" | "add_list", _, Some(left)) => {
            let size = size_of(left).plus(size_of(call.arguments.get(1)?));
            let is_list = call.overload == "add_list";
            makes(if is_list { Amount::fixed(1) } else { size.scaled(TRAVERSAL) }, size)
        }
        (overload, _, Some(left)) if COMPARISONS.contains(&overload) => {
            let most = size_of(left).max.min(size_of(call.arguments.get(1)?).max);
            costs(Amount { min: u64::from(most > 0), max: most }.scaled(TRAVERSAL))
        }
        _ => None,
    }
}

fn regex(text: &Node<'_>, pattern: &Node<'_>) -> Amount {
    let text = size_of(text).plus(Amount::fixed(1)).scaled(TRAVERSAL);
    text.times(size_of(pattern).scaled(REGEX))
}

/// The list functions that come with cel-go.
fn of_list_extension(call: &Call<'_>) -> Option<Price> {
    let number = |node: Option<&Node<'_>>, otherwise: u64| match node.map(|node| node.expr) {
        Some(Expr::Literal(LiteralValue::Int(number))) => {
            u64::try_from(*number.inner()).unwrap_or(otherwise)
        }
        _ => otherwise,
    };
    let allocating = |factor: f64, size: Amount| {
        makes(size.scaled(factor).plus(Amount::fixed(1)).plus(Amount::fixed(LIST)), size)
    };
    match call.overload {
        "list_slice" => {
            let size = size_of(call.target?);
            let (start, end) = (call.arguments.first(), call.arguments.get(1));
            let length = number(end, size.max).saturating_sub(number(start, 0));
            allocating(1.0, Amount::fixed(length))
        }
        "list_flatten" | "list_reverse" => allocating(1.0, size_of(call.target?)),
        "list_flatten_int" => {
            let depth = u32::try_from(number(call.arguments.first(), 1)).unwrap_or(u32::MAX);
            allocating(f64::from(depth), size_of(call.target?))
        }
        "lists_range" => allocating(1.0, Amount::fixed(number(call.arguments.first(), u64::MAX))),
        "list_distinct" => {
            let size = size_of(call.target?);
            allocating(2.0, size.times(size))
        }
        overload if overload.ends_with("_sort") || overload.ends_with("_sortByAssociatedKeys") => {
            let by_key = overload.ends_with("Keys");
            let sorted = if by_key { call.arguments.first()? } else { call.target? };
            let size = size_of(sorted);
            let texts = overload.starts_with("list_string") || overload.starts_with("list_bytes");
            allocating(if texts { 2.0 + TRAVERSAL } else { 2.0 }, size.times(size))
        }
        _ => None,
    }
}

/// Functions of Kubernetes' libraries.
fn of_library(call: &Call<'_>, declared: &dyn Fn(&[String]) -> Option<Amount>) -> Option<Price> {
    let sized =
        |node: &Node<'_>| node.size.or_else(|| declared(&node.path)).unwrap_or(Amount::UNKNOWN);
    // What is in a list, with its size.
    let item = |list: &Node<'_>| match &list.ty {
        Type::List(item) => {
            let mut path = list.path.clone();
            path.push("@items".to_owned());
            let known = (!list.path.is_empty()).then(|| declared(&path)).flatten();
            Some(((**item).clone(), known.unwrap_or(Amount::UNKNOWN)))
        }
        _ => None,
    };
    let first = call.arguments.first();
    match call.name {
        "check" => costs(Amount::fixed(CHECK)),
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            let target = call.target?;
            let Some((ty, size)) = item(target) else {
                return costs(sized(target).scaled(TRAVERSAL));
            };
            let is_text = matches!(ty, Type::String | Type::Bytes);
            let each = Amount::fixed(1);
            let each = if is_text { each.plus(size.scaled(TRAVERSAL)) } else { each };
            costs(sized(target).times(each))
        }
        "url" | "jsonpatch.escapeKey" => {
            let size = sized(first?);
            makes(size.scaled(TRAVERSAL), size)
        }
        "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            let size = sized(call.target?);
            makes(size.scaled(TRAVERSAL), size)
        }
        "replace" => {
            let size = sized(call.target?);
            let by = sized(call.arguments.get(1)?);
            makes(size.scaled(2.0 * TRAVERSAL), replaced(size, sized(first?), by))
        }
        "split" => {
            let size = sized(call.target?);
            let most = match call.arguments.get(1).map(|limit| limit.expr) {
                Some(Expr::Literal(LiteralValue::Int(limit))) => {
                    u64::try_from(*limit.inner()).unwrap_or(u64::MAX)
                }
                _ => size.max,
            };
            makes(size.scaled(2.0 * TRAVERSAL), Amount { min: 0, max: most })
        }
        "join" => {
            let target = call.target?;
            let count = sized(target);
            let mut size = item(target).map_or(Amount::fixed(0), |(_, each)| count.times(each));
            if let Some(separator) = first {
                let (least, most) = (count.min.saturating_sub(1), count.max.saturating_sub(1));
                size = size.plus(sized(separator).times(Amount { min: least, max: most }));
            }
            makes(size.scaled(TRAVERSAL), size)
        }
        "find" | "findAll" => {
            let size = sized(call.target?);
            let text = size.plus(Amount::fixed(1)).scaled(TRAVERSAL);
            let cost = text.times(sized(first?).scaled(REGEX));
            makes(cost, Amount { min: 0, max: size.max })
        }
        "ip" if call.overload == "cidr_ip" => costs(Amount::fixed(1)),
        "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            costs(sized(first?).scaled(TRAVERSAL))
        }
        "ip.isCanonical" => costs(sized(first?).scaled(2.0 * TRAVERSAL)),
        "containsIP" | "containsCIDR" => {
            let address = Amount { min: 4, max: 16 };
            let mut cost = address.plus(address).scaled(TRAVERSAL);
            if call.name == "containsCIDR" {
                cost = cost.plus(address.scaled(TRAVERSAL)).plus(Amount::fixed(1));
            }
            if call.overload.ends_with("_string") {
                cost = cost.plus(sized(first?).scaled(TRAVERSAL));
            }
            costs(cost)
        }
        "validate" => costs(sized(first?).scaled(TRAVERSAL).scaled(FORMAT_PATTERN * REGEX)),
        "_==_" => match (&first?.ty, &call.arguments.get(1)?.ty) {
            (Type::Opaque(left), Type::Opaque(right)) if left == right => costs(Amount::fixed(1)),
            _ => None,
        },
        _ => None,
    }
}

/// How long a text can be after every `old` in it became `new`.
fn replaced(size: Amount, old: Amount, new: Amount) -> Amount {
    let (mut count, mut kept) = (Amount::fixed(0), Amount::fixed(0));
    if old.min == 0 {
        // Nothing is found before and after every character.
        (count.max, kept.max) = (size.max.saturating_add(1), size.max);
    } else if new.max <= old.min {
        kept.max = size.max;
    } else {
        count.max = size.max.div_ceil(old.min);
    }
    if old.max == 0 {
        (count.min, kept.min) = (size.min.saturating_add(1), size.min);
    } else if old.max <= new.min {
        kept.min = size.min;
    } else {
        count.min = size.min.div_ceil(old.max);
    }
    count.times(new).plus(kept)
}
