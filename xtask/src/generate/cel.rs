//! What CEL expressions know and cost, printed by Kubernetes' own environment.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;

use super::{Output, printed};

/// Where the data lies, from the API server's.
const DATA: &str = "../../homeostat-cel/data";
const HEADER: &str = "\
# The functions that expressions know in Kubernetes 1.36, as its CEL environment lists them:
# name(arguments) result | overload. A dot in front marks functions of their first argument.
# Printed by oracle/kubernetes/cel-functions.
";

/// The table of functions, and the expressions of `costs.json` with their values and costs.
pub(super) fn tables(root: &Path) -> anyhow::Result<Vec<Output>> {
    let functions = printed(root, "./cel-functions", Stdio::null())?;
    let asked = root.join("crates/homeostat-cel/data/costs.json");
    let asked = File::open(&asked).with_context(|| format!("reading {}", asked.display()))?;
    let costs = printed(root, "./cel-costs", asked.into())?;
    Ok(vec![
        (format!("{DATA}/functions.txt"), [HEADER.as_bytes(), &functions].concat()),
        (format!("{DATA}/costs.json"), costs),
    ])
}
