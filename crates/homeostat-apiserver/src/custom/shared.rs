//! What the versions of a definition say, and what of it they all say alike: kube-apiserver lifts
//! that above the versions, judges it once and reports it there.

use serde_json::Value;

use super::list;

/// The parts of a version that can be shared.
const PARTS: [&str; 4] = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

/// The versions of a definition, part by part.
pub(super) struct Stanzas<'a> {
    pub(super) all: Vec<&'a Value>,
    is_shared: [bool; PARTS.len()],
}

impl<'a> Stanzas<'a> {
    pub(super) fn of(definition: &'a Value) -> Self {
        let all: Vec<&Value> = list(definition, "/spec/versions").collect();
        let is_shared =
            PARTS.map(|name| all.windows(2).all(|pair| part(pair[0], name) == part(pair[1], name)));
        Self { all, is_shared }
    }

    /// Whether all versions say the same.
    pub(super) fn share(&self, name: &str) -> bool {
        PARTS.iter().zip(self.is_shared).any(|(part, is_shared)| *part == name && is_shared)
    }

    /// The versions with what is their own alone.
    pub(super) fn apart(&self) -> Value {
        let mut apart: Vec<Value> = self.all.iter().copied().cloned().collect();
        for version in apart.iter_mut().filter_map(Value::as_object_mut) {
            version.retain(|name, _| !self.share(name));
        }
        apart.into()
    }

    /// What all versions say.
    pub(super) fn shared(&self, name: &str) -> Option<&'a Value> {
        self.all.first().and_then(|version| part(version, name)).filter(|_| self.share(name))
    }

    /// What one version says for itself alone.
    pub(super) fn own(&self, version: &'a Value, name: &str) -> Option<&'a Value> {
        part(version, name).filter(|_| !self.share(name))
    }
}

/// A part of a version; an empty list is none.
fn part<'a>(version: &'a Value, name: &str) -> Option<&'a Value> {
    version.get(name).filter(|part| !part.as_array().is_some_and(Vec::is_empty))
}
