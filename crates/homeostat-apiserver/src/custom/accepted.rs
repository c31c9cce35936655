//! The names that a definition gets of those it asks for: what another one of its group has is refused,
//! the rest is accepted.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{list, text};

/// The names that the definitions of a group have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamesInUse {
    /// Plural, singular and short ones.
    pub resources: BTreeSet<String>,
    /// Of objects and of lists.
    pub kinds: BTreeSet<String>,
}

impl NamesInUse {
    /// The names that a definition was given.
    pub(crate) fn of(definition: &Value) -> Self {
        let name = |field: &str| text(definition, &format!("/status/acceptedNames/{field}"));
        let short = list(definition, "/status/acceptedNames/shortNames").filter_map(Value::as_str);
        let given = |names: &mut dyn Iterator<Item = &str>| {
            names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        Self {
            resources: given(&mut [name("plural"), name("singular")].into_iter().chain(short)),
            kinds: given(&mut [name("kind"), name("listKind")].into_iter()),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.resources.extend(other.resources.iter().cloned());
        self.kinds.extend(other.kinds.iter().cloned());
    }
}

/// What came of the names that a definition asks for.
pub(super) struct Outcome {
    /// Those it has now.
    pub(super) accepted: Value,
    /// Reason and message of the last refusal.
    pub(super) refusal: Option<(&'static str, String)>,
}

/// Looks at the names that a definition asks for.
pub(super) fn examine(definition: &Value, used: &NamesInUse) -> Outcome {
    let wanted = |field: &str| text(definition, &format!("/spec/names/{field}"));
    let given = |field: &str| text(definition, &format!("/status/acceptedNames/{field}"));
    let fresh = |name: &str, given: &str, used: &BTreeSet<String>| {
        if name == given || !used.contains(name) {
            return Ok(());
        }
        Err(format!("{name:?} is already in use"))
    };
    let mut refusal = None;
    let mut accepted = Map::new();
    let mut decide = |field: &str, reason: &'static str, used: &BTreeSet<String>| {
        let name = match fresh(wanted(field), given(field), used) {
            Ok(()) => wanted(field),
            Err(message) => {
                refusal = Some((reason, message));
                given(field)
            }
        };
        // These two are always there.
        if !name.is_empty() || matches!(field, "plural" | "kind") {
            accepted.insert(field.to_owned(), name.into());
        }
    };
    decide("plural", "PluralConflict", &used.resources);
    decide("singular", "SingularConflict", &used.resources);
    let (wanted_short, given_short) =
        (short_names(definition, "/spec/names"), short_names(definition, "/status/acceptedNames"));
    let refused: Vec<String> = wanted_short
        .iter()
        .filter(|name| !given_short.contains(name))
        .filter_map(|name| fresh(name, "", &used.resources).err())
        .collect();
    let short_refusal = joined(&refused).map(|message| ("ShortNamesConflict", message));
    let short = if short_refusal.is_none() { wanted_short } else { given_short };
    // Whatever is refused last is told.
    let early = short_refusal.or_else(|| refusal.take());
    let mut decide = |field: &str, reason: &'static str| {
        let name = match fresh(wanted(field), given(field), &used.kinds) {
            Ok(()) => wanted(field),
            Err(message) => {
                refusal = Some((reason, message));
                given(field)
            }
        };
        if !name.is_empty() || field == "kind" {
            accepted.insert(field.to_owned(), name.into());
        }
    };
    decide("kind", "KindConflict");
    decide("listKind", "ListKindConflict");
    if !short.is_empty() {
        accepted.insert("shortNames".to_owned(), short.into());
    }
    let categories: Vec<Value> = list(definition, "/spec/names/categories").cloned().collect();
    if !categories.is_empty() {
        accepted.insert("categories".to_owned(), categories.into());
    }
    Outcome { accepted: Value::Object(accepted), refusal: refusal.or(early) }
}

fn short_names<'a>(definition: &'a Value, names: &str) -> Vec<&'a str> {
    let all = definition.pointer(&format!("{names}/shortNames")).and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Several complaints as one: each said once, in brackets if there are more.
fn joined(complaints: &[String]) -> Option<String> {
    let mut said: Vec<&str> = Vec::new();
    for complaint in complaints {
        if !said.contains(&complaint.as_str()) {
            said.push(complaint);
        }
    }
    match said[..] {
        [] => None,
        [one] => Some(one.to_owned()),
        _ => Some(format!("[{}]", said.join(", "))),
    }
}
