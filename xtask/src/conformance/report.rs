//! What the suite says about every spec, from the report that Ginkgo writes.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;

/// How one spec ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// With the first failure's words.
    Failed(String),
    Skipped,
}

/// Outcomes by the full name of the spec.
#[derive(Debug)]
pub(super) struct Report {
    outcomes: BTreeMap<String, Outcome>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    #[serde(default)]
    spec_reports: Option<Vec<Spec>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    #[serde(default)]
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    #[serde(default)]
    leaf_node_text: String,
    state: String,
    #[serde(default)]
    failure: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    #[serde(default)]
    message: String,
}

impl Report {
    pub(super) fn read(path: &Path) -> Result<Self> {
        Self::parse(&std::fs::read_to_string(path)?)
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let suites: Vec<Suite> = serde_json::from_str(text)?;
        let specs = suites.into_iter().flat_map(|suite| suite.spec_reports.unwrap_or_default());
        let outcomes = specs
            .filter(|spec| spec.leaf_node_type == "It")
            .map(|spec| {
                let mut words = spec.container_hierarchy_texts.unwrap_or_default();
                words.push(spec.leaf_node_text);
                let outcome = match spec.state.as_str() {
                    "passed" => Outcome::Passed,
                    "skipped" | "pending" => Outcome::Skipped,
                    state => {
                        let why = spec.failure.map(|failure| failure.message).unwrap_or_default();
                        Outcome::Failed(format!("{state}: {why}"))
                    }
                };
                (words.join(" "), outcome)
            })
            .collect();
        Ok(Self { outcomes })
    }

    pub(super) fn outcome(&self, name: &str) -> Option<&Outcome> {
        self.outcomes.get(name)
    }
}
