//! `columns.json.gz`: what is said about the columns of tables, printed by Kubernetes' own printers.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use serde_json::Value;

use super::{Output, gzip, printed};

/// Descriptions by kind and heading.
pub(super) fn descriptions(root: &Path) -> anyhow::Result<Output> {
    let text = printed(root, "./columns", Stdio::null())?;
    let all: Value = serde_json::from_slice(&text).context("reading what ./columns printed")?;
    Ok(("columns.json.gz".to_owned(), gzip(&serde_json::to_vec(&all)?)?))
}
