//! Which definition has which names: kept beside the definitions, so that none of them is read to
//! judge another.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::metadata;
use crate::custom::NamesInUse;

/// What is known of one definition.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    group: String,
    names: NamesInUse,
    /// It asks for names that it does not have.
    waits: bool,
}

/// What is known of all, by their own names.
#[derive(Debug, Default)]
pub(super) struct DefinitionNames(Mutex<BTreeMap<String, Held>>);

impl DefinitionNames {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names that other definitions of the group have.
    pub(super) fn in_use_beside(&self, group: &str, name: &str) -> NamesInUse {
        let mut used = NamesInUse::default();
        let all = self.all();
        let others = all.iter().filter(|(other, held)| *other != name && held.group == group);
        others.for_each(|(_, held)| used.add(&held.names));
        used
    }

    /// Notes the names of a definition that was written; says whether others may get names now.
    pub(super) fn note(&self, definition: &Value) -> bool {
        let names = NamesInUse::of(definition);
        let of = |pointer: &str| definition.pointer(pointer);
        let held = Held {
            group: of("/spec/group").and_then(Value::as_str).unwrap_or_default().to_owned(),
            waits: of("/spec/names") != of("/status/acceptedNames"),
            names: names.clone(),
        };
        let before = self.all().insert(metadata::name(definition).to_owned(), held);
        before.is_some_and(|before| {
            !before.names.resources.is_subset(&names.resources)
                || !before.names.kinds.is_subset(&names.kinds)
        })
    }

    /// Forgets a definition that is gone.
    pub(super) fn forget(&self, name: &str) {
        self.all().remove(name);
    }

    /// The definitions of the group that wait for names.
    pub(super) fn waiting(&self, group: &str) -> Vec<String> {
        let all = self.all();
        let waiting = all.iter().filter(|(_, held)| held.group == group && held.waits);
        waiting.map(|(name, _)| name.clone()).collect()
    }
}
