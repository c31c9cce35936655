//! Jobs: how many Pods succeed, and how many may fail.

use serde_json::Value;

use super::report::{Report, at, text};
use super::{job_change, job_policy, job_selector, pod};
use crate::validate::name;

/// The most of Pods at a time, and of failures, in a Job whose Pods have indexes.
const MOST_INDEXES: i64 = 100_000;
/// The same for Jobs of more indexes than that.
const MOST_OF_MANY: i64 = 10_000;
const LONGEST_MANAGER: usize = 63;
/// What the name of a manager may have after its domain, besides letters and digits.
const PATH_SIGNS: &str = "/-._~%!$&'()*+,;=:";

pub(super) fn job(value: &Value, old: Option<&Value>, report: &mut Report) {
    job_spec(at(value, "/spec"), "spec", report);
    job_selector::of_job(value, old, report);
    indexed_names(value, report);
    if let Some(old) = old {
        job_change::check(value, old, report);
    }
}

/// The Pods of an indexed Job have its name and their number as their host name.
fn indexed_names(job: &Value, report: &mut Report) {
    let completions = at(job, "/spec/completions").as_i64().unwrap_or(0);
    if text(job, "/spec/completionMode") != "Indexed" || completions < 1 {
        return;
    }
    let name = text(job, "/metadata/name");
    let longest = format!("{name}-{}", completions - 1);
    if !name::dns_label(&longest).is_empty() {
        let why = format!("will not able to create pod with invalid DNS label: {longest}");
        report.invalid("metadata.name", name, why);
    }
}

/// The spec of a Job, or of the Jobs that a CronJob makes.
pub(super) fn job_spec(spec: &Value, path: &str, report: &mut Report) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        if let Some(number) = spec.get(field).and_then(Value::as_i64).filter(|number| *number < 0) {
            report.invalid(format!("{path}.{field}"), number, "must be greater than or equal to 0");
        }
    }
    if spec.get("maxFailedIndexes").is_some() && spec.get("backoffLimitPerIndex").is_none() {
        let path = format!("{path}.backoffLimitPerIndex");
        report.required(path, "when maxFailedIndexes is specified");
    }
    if let Some(manager) = spec.get("managedBy").and_then(Value::as_str) {
        managed_by(manager, &format!("{path}.managedBy"), report);
    }
    let mode = at(spec, "/completionMode");
    if !matches!(mode.as_str(), None | Some("NonIndexed" | "Indexed")) {
        let path = format!("{path}.completionMode");
        report.unsupported(&path, mode, &["NonIndexed", "Indexed"]);
    }
    match mode.as_str() {
        Some("Indexed") => indexed(spec, path, report),
        None | Some("NonIndexed") => {
            for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if let Some(number) = spec.get(field).and_then(Value::as_i64) {
                    let detail = "requires indexed completion mode";
                    report.invalid(format!("{path}.{field}"), number, detail);
                }
            }
        }
        Some(_) => {}
    }
    job_policy::failure(spec, path, report);
    job_policy::success(spec, path, report);
    job_policy::replacement(spec, path, report);
    pod::template(at(spec, "/template"), &format!("{path}.template"), report);
    let (policy, path) =
        (text(spec, "/template/spec/restartPolicy"), format!("{path}.template.spec.restartPolicy"));
    match policy {
        "" | "Always" => report.required(path, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.get("podFailurePolicy").is_some() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            report.invalid(path, policy, detail);
        }
        policy => report.known(&path, &policy.into(), &["OnFailure", "Never"]),
    }
}

/// The name of the controller that is in charge.
fn managed_by(manager: &str, path: &str, report: &mut Report) {
    match manager.split_once('/') {
        _ if manager.is_empty() => report.required(path, ""),
        None | Some(("", _) | (_, "")) => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            report.invalid(path, manager, detail);
        }
        Some((domain, rest)) => {
            report.problems(path, domain, name::dns_subdomain);
            let fits = |c: char| c.is_ascii_alphanumeric() || PATH_SIGNS.contains(c);
            if !rest.chars().all(fits) {
                let detail = "Invalid path (regex used for validation is \
                              '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                report.invalid(path, rest, detail);
            }
        }
    }
    if manager.len() > LONGEST_MANAGER {
        report.too_long(path, LONGEST_MANAGER);
    }
}

/// A Job whose Pods have indexes: not too many at once, and not too many failures to remember.
fn indexed(spec: &Value, path: &str, report: &mut Report) {
    let number = |field: &str| spec.get(field).and_then(Value::as_i64);
    let (completions, parallelism, failed) =
        (number("completions"), number("parallelism"), number("maxFailedIndexes"));
    let at_once = format!("{path}.parallelism");
    let failures = format!("{path}.maxFailedIndexes");
    if completions.is_none() {
        report.required(format!("{path}.completions"), "when completion mode is Indexed");
    }
    if let Some(parallelism) = parallelism.filter(|number| *number > MOST_INDEXES) {
        let detail =
            format!("must be less than or equal to {MOST_INDEXES} when completion mode is Indexed");
        report.invalid(at_once.as_str(), parallelism, detail);
    }
    if let (Some(completions), Some(failed)) = (completions, failed)
        && failed > completions
    {
        let detail = "must be less than or equal to completions";
        report.invalid(failures.as_str(), failed, detail);
    }
    if let Some(failed) = failed.filter(|number| *number > MOST_INDEXES) {
        let detail = format!("must be less than or equal to {MOST_INDEXES}");
        report.invalid(failures.as_str(), failed, detail);
    }
    let many = completions.is_some_and(|number| number > MOST_INDEXES);
    if !many || number("backoffLimitPerIndex").is_none() {
        return;
    }
    if failed.is_none() {
        let detail = format!("must be specified when completions is above {MOST_INDEXES}");
        report.required(failures.as_str(), &detail);
    }
    for (path, given) in [(at_once, parallelism), (failures, failed)] {
        if let Some(given) = given.filter(|number| *number > MOST_OF_MANY) {
            let detail = format!(
                "must be less than or equal to {MOST_OF_MANY} when completions are above \
                 {MOST_INDEXES} and used with backoff limit per index"
            );
            report.invalid(path, given, detail);
        }
    }
}
