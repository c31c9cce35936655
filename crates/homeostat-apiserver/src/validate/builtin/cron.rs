//! CronJobs: when Jobs are made, in which time zone, and what they are made of.

use serde_json::Value;

use super::job::job_spec;
use super::report::{Report, at, text};
use super::{cron_schedule, workload};
use crate::go::internal::form;

/// The longest name: that of a Job has the time besides.
const LONGEST_NAME: usize = 52;
/// The longest part of a time zone's name.
const LONGEST_ZONE: usize = 14;

pub(super) fn cron_job(value: &Value, old: Option<&Value>, report: &mut Report) {
    let schedule = text(value, "/spec/schedule");
    if schedule.is_empty() {
        report.required("spec.schedule", "");
    } else {
        if let Err(why) = cron_schedule::read(schedule) {
            report.invalid("spec.schedule", schedule, why);
        }
        zone_in_schedule(value, old, report);
    }
    let zone = at(value, "/spec/timeZone");
    if old.is_none_or(|old| at(old, "/spec/timeZone") != zone) {
        time_zone(zone.as_str(), report);
    }
    let policy = text(value, "/spec/concurrencyPolicy");
    report.one_of("spec.concurrencyPolicy", policy, &["Allow", "Forbid", "Replace"]);
    made_jobs(at(value, "/spec/jobTemplate/spec"), "spec.jobTemplate.spec", report);
    for pointer in [
        "/spec/startingDeadlineSeconds",
        "/spec/successfulJobsHistoryLimit",
        "/spec/failedJobsHistoryLimit",
    ] {
        report.not_negative(value, pointer);
    }
    let name = text(value, "/metadata/name");
    if old.is_none() && name.len() > LONGEST_NAME {
        let detail = format!("must be no more than {LONGEST_NAME} characters");
        report.invalid("metadata.name", name, detail);
    }
}

/// A Job is told apart from others when it is made.
fn made_jobs(spec: &Value, path: &str, report: &mut Report) {
    job_spec(spec, path, report);
    if let Some(selector) = spec.get("selector").filter(|selector| selector.is_object()) {
        let why = "`selector` will be auto-generated";
        report.invalid(format!("{path}.selector"), form(workload::SELECTOR, selector), why);
    }
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        let path = format!("{path}.manualSelector");
        report.unsupported(&path, &Value::Bool(true), &["nil", "false"]);
    }
}

/// A schedule that names its own zone is one of old.
fn zone_in_schedule(value: &Value, old: Option<&Value>, report: &mut Report) {
    let schedule = text(value, "/spec/schedule");
    if !schedule.contains("TZ") {
        return;
    }
    let is_old = old.is_some_and(|old| text(old, "/spec/schedule").contains("TZ"));
    let why = match (is_old, at(value, "/spec/timeZone").is_null()) {
        (true, true) => return,
        (true, false) => "cannot use both timeZone field and TZ or CRON_TZ in schedule",
        (false, _) => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
    };
    report.invalid("spec.schedule", schedule, why);
}

fn time_zone(zone: Option<&str>, report: &mut Report) {
    let (Some(zone), path) = (zone, "spec.timeZone") else { return };
    if zone.is_empty() {
        report.invalid(path, zone, "timeZone must be nil or non-empty string");
        return;
    }
    let is_name = |part: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
        (1..=LONGEST_ZONE).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.chars().all(fits)
    };
    let can_be = zone.split('/').all(is_name);
    if can_be && zone.eq_ignore_ascii_case("Local") {
        let why = "timeZone must be an explicit time zone as defined in \
                   https://www.iana.org/time-zones";
        report.invalid(path, zone, why);
        // By this name it is the server's own.
        if zone == "Local" {
            return;
        }
    }
    if !can_be || !cron_schedule::is_zone(zone) {
        report.invalid(path, zone, format!("unknown time zone {zone}"));
    }
}
