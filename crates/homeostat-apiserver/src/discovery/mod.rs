//! What the server says it serves, rendered from rows of the table of kinds.
//!
//! Pure: a slice of rows in, a document out. Caching, negotiation and etags belong to the HTTP
//! layer.

mod aggregated;
mod legacy;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use aggregated::{aggregated_core, aggregated_groups};
pub use legacy::{core_versions, group, groups, resources};

use crate::kinds::Kind;

/// The kinds of one version.
#[derive(Debug)]
struct Version<'a> {
    name: &'a str,
    kinds: Vec<&'a Kind>,
}

/// One group, its preferred version first.
#[derive(Debug)]
struct Group<'a> {
    name: &'a str,
    versions: Vec<Version<'a>>,
}

/// Sorts rows into groups: built-in groups in the order of the table, then the groups of custom
/// resources by name. Versions of a built-in group keep the table's order; versions that only
/// custom resources have follow, the most stable and newest first.
fn arrange(kinds: &[Arc<Kind>]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut place = BTreeMap::new();
    let (builtin, custom): (Vec<_>, Vec<_>) =
        kinds.iter().map(Arc::as_ref).partition(|kind| kind.custom.is_none());
    let mut custom = custom;
    custom.sort_by_key(|kind| {
        (
            kind.group.as_str(),
            Reverse(stability(&kind.version)),
            kind.version.as_str(),
            &kind.plural,
        )
    });
    for kind in builtin.into_iter().chain(custom) {
        let index = *place.entry(kind.group.as_str()).or_insert_with(|| {
            groups.push(Group { name: &kind.group, versions: Vec::new() });
            groups.len() - 1
        });
        let versions = &mut groups[index].versions;
        match versions.iter_mut().find(|version| version.name == kind.version) {
            Some(version) => version.kinds.push(kind),
            None => versions.push(Version { name: &kind.version, kinds: vec![kind] }),
        }
    }
    groups
}

/// How Kubernetes ranks a version: `v2` over `v1` over `v1beta2` over `v1alpha1`, and any of them
/// over a name of another form.
#[must_use]
pub fn stability(version: &str) -> (u8, u64, u64) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..end].parse().ok()?;
        let (rank, minor) = match &rest[end..] {
            "" => (3, ""),
            suffix => match (suffix.strip_prefix("beta"), suffix.strip_prefix("alpha")) {
                (Some(minor), _) => (2, minor),
                (None, Some(minor)) => (1, minor),
                (None, None) => return None,
            },
        };
        let minor = if rank == 3 { 0 } else { minor.parse().ok()? };
        Some((rank, major, minor))
    };
    parse().unwrap_or((0, 0, 0))
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

#[cfg(test)]
mod tests {
    use super::stability;

    #[test]
    fn versions_rank_by_stability_before_age() {
        let mut versions = ["v1alpha1", "foo", "v1", "v10", "v2beta1", "v1beta2", "v2"];
        versions.sort_by_key(|version| std::cmp::Reverse(stability(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]);
    }
}
