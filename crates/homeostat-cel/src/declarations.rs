//! The functions that expressions may call: a table, printed by Kubernetes' own environment.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::types::Type;

/// What only policies have.
const ADDED: &str = "jsonpatch.escapeKey(string) string | jsonpatch_escapeKey_string";

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    pub(super) id: &'static str,
    /// Whether it is called on its first argument: `a.f(b)`.
    pub(super) member: bool,
    pub(super) arguments: Vec<Type>,
    pub(super) result: Type,
}

/// All ways to call the function of that name.
pub(super) fn overloads(name: &str) -> impl Iterator<Item = &'static Overload> {
    static TABLE: OnceLock<BTreeMap<&'static str, Vec<Overload>>> = OnceLock::new();
    TABLE.get_or_init(read).get(name).into_iter().flatten()
}

fn read() -> BTreeMap<&'static str, Vec<Overload>> {
    let mut table: BTreeMap<&'static str, Vec<Overload>> = BTreeMap::new();
    let lines = include_str!("../data/functions.txt").lines().chain(ADDED.lines());
    for line in lines.filter(|line| !line.starts_with('#')) {
        if let Some((name, overload)) = row(line) {
            table.entry(name).or_default().push(overload);
        }
    }
    table
}

/// `.name(argument, …) result | id`
fn row(line: &'static str) -> Option<(&'static str, Overload)> {
    let (signature, id) = line.split_once(" | ")?;
    // Names of operators have brackets of their own.
    let open = signature.rfind(") ").and_then(|close| matching(signature, close))?;
    let (name, rest) = signature.split_at(open);
    let mut rest = &rest[1..];
    let mut arguments = Vec::new();
    while !rest.starts_with(')') {
        let (argument, after) = ty(rest)?;
        arguments.push(argument);
        rest = after.strip_prefix(", ").unwrap_or(after);
    }
    let (result, _) = ty(rest.strip_prefix(") ")?)?;
    let member = name.strip_prefix('.');
    let overload = Overload { id, member: member.is_some(), arguments, result };
    Some((member.unwrap_or(name), overload))
}

/// Where the bracket opens that closes at `close`.
fn matching(text: &str, close: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, char) in text[..=close].char_indices().rev() {
        match char {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The type at the beginning of a text, and the rest.
fn ty(text: &'static str) -> Option<(Type, &'static str)> {
    let end = text.find(['(', ')', ',']).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let mut parameters = Vec::new();
    if let Some(inner) = rest.strip_prefix('(') {
        rest = inner;
        loop {
            let (parameter, after) = ty(rest)?;
            parameters.push(parameter);
            match after.strip_prefix(", ") {
                Some(next) => rest = next,
                None => break rest = after.strip_prefix(')')?,
            }
        }
    }
    let mut parameters = parameters.into_iter();
    let mut next = || parameters.next().unwrap_or(Type::Dyn);
    let found = match name {
        "list" => Type::list(next()),
        "map" => Type::map(next(), next()),
        "optional_type" => Type::optional(next()),
        "type" => Type::Meta(Arc::new(next())),
        _ if name.len() == 1 => Type::Param(name),
        _ => Type::named(name).unwrap_or(Type::Opaque(name)),
    };
    Some((found, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_read() {
        let table = include_str!("../data/functions.txt");
        let rows = table.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(read().values().map(Vec::len).sum::<usize>(), rows + 1);
        let add: Vec<_> = overloads("_+_").map(|overload| overload.id).collect();
        assert!(add.contains(&"add_list") && add.contains(&"add_int64"));
        let or_value = overloads("orValue").next().unwrap();
        assert_eq!(or_value.arguments[0], Type::optional(Type::Param("V")));
        assert!(or_value.member && or_value.result == Type::Param("V"));
    }
}
