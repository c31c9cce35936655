//! How a Job finds its Pods: by labels that nobody else can have, unless a user insists on others.

use serde_json::{Value, json};

use super::report::{Report, at, text};
use super::workload::{selector, selects};

const UID: &str = "batch.kubernetes.io/controller-uid";
const NAME: &str = "batch.kubernetes.io/job-name";

pub(super) fn of_job(job: &Value, old: Option<&Value>, report: &mut Report) {
    let (given, path) = (at(job, "/spec/selector"), "spec.selector");
    let manual = at(job, "/spec/manualSelector") == &Value::Bool(true);
    if given.is_null() {
        report.required(path, "");
        // What selects nothing at all does not fit, either.
        not_matching(job, report);
        return;
    }
    let before = report.errors.len();
    selector(given, path, report);
    let is_right = report.errors.len() == before;
    if !manual {
        generated(job, old, is_right, report);
    }
    if is_right && !selects(given, at(job, "/spec/template/metadata/labels")) {
        not_matching(job, report);
    }
}

fn not_matching(job: &Value, report: &mut Report) {
    let labels = sorted(at(job, "/spec/template/metadata/labels"));
    let why = "`selector` does not match template `labels`";
    report.invalid("spec.template.metadata.labels", labels, why);
}

/// The labels that were given to the Pods are there.
fn generated(job: &Value, old: Option<&Value>, is_right: bool, report: &mut Report) {
    let (uid, name) = (text(job, "/metadata/uid"), text(job, "/metadata/name"));
    let had = |label: &str| {
        let labels = old.map(|old| at(old, "/spec/template/metadata/labels"));
        labels.is_none_or(|labels| labels.get(label).is_some())
    };
    // Jobs of old have the two without a prefix only.
    let prefixed = had(UID) && had(NAME);
    let mut expected = vec![("controller-uid", uid), ("job-name", name)];
    if prefixed {
        expected.extend([(UID, uid), (NAME, name)]);
    }
    let labels = at(job, "/spec/template/metadata/labels");
    for (label, value) in &expected {
        let (path, why) =
            (format!("spec.template.metadata.labels[{label}]"), format!("must be '{value}'"));
        match labels.get(label) {
            None => report.required(path, &why),
            Some(found) if found != value => report.invalid(path, sorted(labels), why),
            Some(_) => {}
        }
    }
    let expected: Value =
        expected.into_iter().map(|(label, value)| (label, json!(value))).collect();
    if is_right && !selects(at(job, "/spec/selector"), &expected) {
        let shown = sorted(at(job, "/spec/selector"));
        report.invalid("spec.selector", shown, "`selector` not auto-generated");
    }
}

/// As it is shown: in the order of the keys.
fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort_all_objects();
    value
}
