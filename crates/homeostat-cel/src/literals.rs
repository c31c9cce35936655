//! Literals that a function will refuse whenever it is called, and lists and maps of more than one
//! type: told before they are ever used.

use std::collections::BTreeMap;

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use super::source::{Mistake, Source};
use super::types::Type;

/// Durations as Go writes them.
const DURATION: &str = r"^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$";
/// The function whose arguments may be of any types.
const FORMAT: &str = "format";

/// All literals that cannot be what they stand for.
pub(super) fn mistakes(source: &Source, types: &BTreeMap<u64, Type>) -> Vec<Mistake> {
    let mut found = Vec::new();
    walk(&source.root, false, &mut |node, in_format| {
        let mut tell = |id: u64, words: String| {
            found.push(Mistake { offset: source.offset(id), words });
        };
        match &node.expr {
            Expr::Call(call) => unreadable(call, &mut tell),
            Expr::List(_) | Expr::Map(_) if !in_format => mixed(node, types, &mut tell),
            _ => {}
        }
    });
    found
}

fn unreadable(call: &CallExpr, tell: &mut impl FnMut(u64, String)) {
    let (what, argument) = match (call.func_name.as_str(), &call.args[..]) {
        (name @ ("duration" | "timestamp" | "matches"), [only]) => (name, only),
        ("matches", [_, pattern]) if call.target.is_none() => ("matches", pattern),
        _ => return,
    };
    let Expr::Literal(LiteralValue::String(text)) = &argument.expr else { return };
    let text = text.inner();
    let readable = match what {
        "duration" => regex::Regex::new(DURATION).is_ok_and(|form| form.is_match(text)),
        "timestamp" => text.parse::<jiff::Timestamp>().is_ok(),
        _ => regex::Regex::new(text).is_ok(),
    };
    if !readable {
        tell(argument.id, format!("invalid {what} argument"));
    }
}

/// Elements that are of another type than the first one.
fn mixed(node: &IdedExpr, types: &BTreeMap<u64, Type>, tell: &mut impl FnMut(u64, String)) {
    let ty = |node: &IdedExpr, optional: bool| match types.get(&node.id) {
        Some(Type::Optional(inner)) if optional => (**inner).clone(),
        Some(ty) => ty.clone(),
        None => Type::Dyn,
    };
    let mut differs = |first: &Type, id: u64, next: &Type| {
        if first != next {
            tell(id, format!("expected type '{first}' but found '{next}'"));
        }
        first != next
    };
    match &node.expr {
        Expr::List(list) => {
            let is_optional = |at: usize| list.optional_indices.contains(&at);
            let mut elements = list.elements.iter().enumerate();
            let Some((_, first)) = elements.next() else { return };
            let first = ty(first, is_optional(0));
            for (at, element) in elements {
                if differs(&first, element.id, &ty(element, is_optional(at))) {
                    return;
                }
            }
        }
        Expr::Map(map) => {
            let mut first: Option<(Type, Type)> = None;
            for entry in &map.entries {
                let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                let (key, value) = (ty(&entry.key, false), ty(&entry.value, entry.optional));
                match &first {
                    None => first = Some((key, value)),
                    Some((keys, values)) => {
                        differs(keys, entry.key.id, &key);
                        differs(values, entry.value.id, &value);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Shows every node, and whether it is somewhere within the arguments of [`FORMAT`].
fn walk(node: &IdedExpr, in_format: bool, visit: &mut impl FnMut(&IdedExpr, bool)) {
    visit(node, in_format);
    match &node.expr {
        Expr::Call(call) => {
            let in_format = in_format || call.func_name == FORMAT;
            if let Some(target) = &call.target {
                walk(target, in_format, visit);
            }
            for argument in &call.args {
                walk(argument, in_format, visit);
            }
        }
        Expr::Select(select) => walk(&select.operand, in_format, visit),
        Expr::List(list) => {
            list.elements.iter().for_each(|element| walk(element, in_format, visit));
        }
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    walk(&entry.key, in_format, visit);
                    walk(&entry.value, in_format, visit);
                }
            }
        }
        Expr::Struct(object) => {
            for entry in &object.entries {
                if let EntryExpr::StructField(field) = &entry.expr {
                    walk(&field.value, in_format, visit);
                }
            }
        }
        Expr::Comprehension(comprehension) => {
            let parts = [
                &comprehension.iter_range,
                &comprehension.accu_init,
                &comprehension.loop_cond,
                &comprehension.loop_step,
                &comprehension.result,
            ];
            parts.into_iter().for_each(|part| walk(part, in_format, visit));
        }
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
    }
}
