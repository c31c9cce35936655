//! Literals that a function will refuse whenever it is called: told before it ever is.

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use super::source::{Mistake, Source};

/// Durations as Go writes them.
const DURATION: &str = r"^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$";

/// All literals that cannot be read as what they stand for.
pub(super) fn mistakes(source: &Source) -> Vec<Mistake> {
    let mut found = Vec::new();
    walk(&source.root, &mut |call| {
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
            let words = format!("invalid {what} argument");
            found.push(Mistake { offset: source.offset(argument.id), words });
        }
    });
    found
}

fn walk(node: &IdedExpr, visit: &mut impl FnMut(&CallExpr)) {
    match &node.expr {
        Expr::Call(call) => {
            visit(call);
            if let Some(target) = &call.target {
                walk(target, visit);
            }
            for argument in &call.args {
                walk(argument, visit);
            }
        }
        Expr::Select(select) => walk(&select.operand, visit),
        Expr::List(list) => list.elements.iter().for_each(|element| walk(element, visit)),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    walk(&entry.key, visit);
                    walk(&entry.value, visit);
                }
            }
        }
        Expr::Struct(object) => {
            for entry in &object.entries {
                if let EntryExpr::StructField(field) = &entry.expr {
                    walk(&field.value, visit);
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
            parts.into_iter().for_each(|part| walk(part, visit));
        }
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
    }
}
