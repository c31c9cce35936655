//! How Go reads and writes the fields of the published types, printed by `oracle/kubernetes/go-types`
//! from the types themselves.
//!
//! `go-types.txt.gz` has what is said of a value that does not fit, and the order in which fields are
//! written: below every published type, a line per field with the embedded structs around it and its
//! types, from the field down to what its lists and maps hold. What becomes of empty fields is laid
//! into the schemas.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use serde::Deserialize;

use super::openapi::Version;
use super::{Output, gzip, printed};

/// One field.
#[derive(Deserialize)]
pub(super) struct Field {
    types: Vec<String>,
    /// `drop`, `zero`, `null`; nothing for what is there when it is set.
    #[serde(default)]
    pub(super) empty: Option<String>,
    #[serde(default)]
    within: String,
    /// How many fields are written before it.
    place: usize,
}

/// By published type and name.
pub(super) type Fields = BTreeMap<String, BTreeMap<String, Field>>;

/// All fields of all types.
pub(super) fn read(root: &Path) -> anyhow::Result<Fields> {
    let text = printed(root, "./go-types", Stdio::null())?;
    serde_json::from_slice(&text).context("reading what ./go-types printed")
}

/// The table of the published types.
pub(super) fn table(fields: &Fields, versions: &[Version]) -> anyhow::Result<Output> {
    let types: BTreeSet<&String> =
        versions.iter().flat_map(Version::schemas).map(|(name, _)| name).collect();
    let mut text = String::new();
    for (name, fields) in types.into_iter().filter_map(|name| fields.get_key_value(name)) {
        writeln!(text, "{name}")?;
        let mut in_order: Vec<_> = fields.iter().collect();
        in_order.sort_by_key(|(_, field)| field.place);
        for (name, Field { types, within, .. }) in in_order {
            writeln!(text, "\t{name}\t{within}\t{}", types.join("\t"))?;
        }
    }
    Ok(("go-types.txt.gz".to_owned(), gzip(text.as_bytes())?))
}
