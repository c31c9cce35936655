//! `internal-types.txt.gz`: how kube-apiserver's internal types are written, printed by
//! `oracle/kubernetes/internal-types` from the types themselves.
//!
//! Below every published type, a line per field of its internal counterpart: its name there, where
//! it comes from, its type, and whether it is left out when it is empty.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use serde::Deserialize;

use super::{Output, gzip, printed};

#[derive(Deserialize)]
struct Field {
    shown: String,
    from: String,
    #[serde(rename = "type")]
    ty: String,
    #[serde(default)]
    omitted: bool,
}

/// The table of the internal types.
pub(super) fn table(root: &Path) -> anyhow::Result<Output> {
    let text = printed(root, "./internal-types", Stdio::null())?;
    let types: BTreeMap<String, Vec<Field>> =
        serde_json::from_slice(&text).context("reading what ./internal-types printed")?;
    let mut text = String::new();
    for (name, fields) in types.into_iter().filter(|(name, _)| !name.ends_with("List")) {
        writeln!(text, "{name}")?;
        for Field { shown, from, ty, omitted } in fields {
            writeln!(text, "\t{shown}\t{from}\t{ty}{}", if omitted { "\tomitted" } else { "" })?;
        }
    }
    Ok(("internal-types.txt.gz".to_owned(), gzip(text.as_bytes())?))
}
