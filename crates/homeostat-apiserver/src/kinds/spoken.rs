//! The kinds that subresources speak and nothing stores: `Scale`, `Binding`, `Eviction` and the
//! like. They are rows as any other, so that their bodies are read and completed alike.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::{Kind, Strategy, Subresource, builtin};
use crate::schema::{KindSchema, builtin::schemas};

/// Group, version and kind.
type Name = (String, String, String);

/// The kind that a subresource speaks, if it is another one than its resource's. The options of a
/// connect are no such kind: they are query parameters and have no schema.
#[must_use]
pub(crate) fn spoken(part: &Subresource) -> Option<&'static Arc<Kind>> {
    static KINDS: OnceLock<BTreeMap<Name, Arc<Kind>>> = OnceLock::new();
    let kinds = KINDS.get_or_init(|| {
        let rows = builtin().iter();
        let parts = rows.flat_map(|row| row.subresources.iter().map(move |part| (row, part)));
        parts
            .filter(|(row, part)| row.kind != part.kind)
            .filter_map(|(_, part)| Some((name(part), Arc::new(kind(part)?))))
            .collect()
    });
    kinds.get(&name(part))
}

fn name(part: &Subresource) -> Name {
    (part.group.clone(), part.version.clone(), part.kind.clone())
}

fn kind(part: &Subresource) -> Option<Kind> {
    let group = part.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    let published = format!("io.k8s.api.{group}.{}.{}", part.version, part.kind);
    let root = schemas().named(&published)?.id();
    Some(Kind {
        group: part.group.clone(),
        version: part.version.clone(),
        kind: part.kind.clone(),
        list_kind: String::new(),
        plural: part.name.clone(),
        singular: String::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: part.verbs.clone(),
        subresources: Vec::new(),
        schema: KindSchema { schemas: Arc::clone(schemas()), root },
        strategy: Strategy::default(),
        custom: None,
    })
}

#[cfg(test)]
mod tests {
    use super::spoken;
    use crate::kinds::builtin;

    #[test]
    fn what_is_written_below_an_object_has_a_schema() {
        for row in builtin() {
            for part in row.subresources.iter().filter(|part| part.kind != row.kind) {
                let is_options = part.kind.ends_with("Options");
                assert_eq!(spoken(part).is_none(), is_options, "{}/{}", row.plural, part.name);
            }
        }
    }
}
