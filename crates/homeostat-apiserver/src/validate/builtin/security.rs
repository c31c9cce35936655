//! The security context of a Pod: today, the names of its kernel parameters.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::report::{Report, list, text};

/// The longest name of a kernel parameter.
const LONGEST: usize = 253;
const FORM: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(FORM).ok());

/// Kernel parameters have well-formed names, each given once.
pub(super) fn kernel_parameters(spec: &Value, path: &str, report: &mut Report) {
    let mut names: Vec<&str> = Vec::new();
    for (index, parameter) in list(spec, "/securityContext/sysctls").iter().enumerate() {
        let path = format!("{path}.securityContext.sysctls[{index}].name");
        let name = text(parameter, "/name");
        let fits = || NAME.as_ref().is_none_or(|form| form.is_match(name));
        if name.is_empty() {
            report.required(path, "");
        } else if name.len() > LONGEST || !fits() {
            let detail = format!("must have at most {LONGEST} characters and match regex {FORM}");
            report.invalid(path, name, detail);
        } else if names.contains(&name) {
            report.duplicate(path, name);
        }
        names.push(name);
    }
}
