//! What `pods/resize` may change: how much CPU and memory containers, and the Pod, ask for.

use homeostat_quota::Amounts;
use serde_json::{Value, json};

use super::report::{Report, at, list, text};
use crate::quality;

/// The write leaves everything but sizes as it is, and takes no size away.
pub(super) fn change(value: &Value, old: &Value, report: &mut Report) {
    if old.pointer("/metadata/annotations/kubernetes.io~1config.mirror").is_some() {
        report.forbidden("[]", "static pods cannot be resized");
        return;
    }
    if text(old, "/spec/os/name") == "windows" {
        report.forbidden("[]", "windows pods cannot be resized");
        return;
    }
    let (spec, before) = (at(value, "/spec"), at(old, "/spec"));
    let class = match text(old, "/status/qosClass") {
        "" => quality::of_pod(before),
        class => class,
    };
    if class != quality::of_pod(spec) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        report.invalid("spec", text(value, "/status/qosClass"), detail);
    }
    let mut statuses = list(old, "/status/containerStatuses").iter();
    if statuses
        .find(|status| status.pointer("/state/running").is_some())
        .is_some_and(|status| status.get("resources").is_none())
    {
        report.forbidden("spec", "Pod running on node without support for resize");
    }
    whole_pod(at(spec, "/resources"), at(before, "/resources"), report);
    if are_in_order(spec, before, report) {
        init_containers(spec, before, report);
        containers(spec, before, report);
    }
    let (resources, had) = (at(spec, "/resources"), at(before, "/resources"));
    let is_new = resources.is_object() && !had.is_object();
    // Claims are refused with the rest of a Pod.
    let says_nothing = !is_set(resources) && resources.get("claims").is_none();
    if report.errors.is_empty() && is_new && says_nothing {
        report.forbidden("spec", "only cpu and memory resources are mutable");
    }
}

fn is_set(resources: &Value) -> bool {
    ["requests", "limits"].iter().any(|field| !amounts(resources, field).is_empty())
}

fn amounts(resources: &Value, field: &str) -> Amounts {
    Amounts::read(resources.get(field))
}

/// What the Pod asks for as a whole.
fn whole_pod(new: &Value, old: &Value, report: &mut Report) {
    if !is_set(new) && !is_set(old) {
        return;
    }
    if old.is_object() && !new.is_object() {
        report.forbidden("spec.resources", "pod-level resources cannot be removed");
        return;
    }
    for field in ["requests", "limits"] {
        if old.is_object() && loses(new, old, field) {
            let detail = format!("pod-level resource {field} cannot be removed");
            report.forbidden(format!("spec.resources.{field}"), &detail);
        }
    }
    if fixed(new) != fixed(old) {
        report.forbidden("spec", "only cpu and memory resources are mutable at pod-level");
    }
}

fn are_in_order(spec: &Value, old: &Value, report: &mut Report) -> bool {
    let known = report.errors.len();
    for field in ["containers", "initContainers"] {
        let (new, old) = (list(spec, &format!("/{field}")), list(old, &format!("/{field}")));
        if new.len() != old.len() {
            let detail = format!("{field} may not be added or removed on resize");
            report.forbidden(format!("spec.{field}"), &detail);
            continue;
        }
        for (index, _) in
            new.iter().zip(old).enumerate().filter(|(_, (a, b))| a["name"] != b["name"])
        {
            let detail = format!("{field} may not be renamed or reordered on resize");
            report.forbidden(format!("spec.{field}[{index}].name"), &detail);
        }
    }
    report.errors.len() == known
}

fn init_containers(spec: &Value, old: &Value, report: &mut Report) {
    let pairs = list(spec, "/initContainers").iter().zip(list(old, "/initContainers"));
    for (index, (new, old)) in pairs.enumerate() {
        let path = format!("spec.initContainers[{index}]");
        keeps_sizes(new, old, &path, report);
        if !differs_in_size_only(new, old) {
            let detail = "only cpu and memory resources for init or sidecar containers are mutable";
            report.forbidden(path.as_str(), detail);
        }
        let restarts = list(new, "/resizePolicy")
            .iter()
            .any(|policy| policy["restartPolicy"] == "RestartContainer");
        if new != old && new["restartPolicy"] != "Always" && restarts {
            let detail = "non-sidecar init containers with a resize policy of RestartContainer \
                          cannot be resized";
            report.forbidden(path, detail);
        }
    }
}

fn containers(spec: &Value, old: &Value, report: &mut Report) {
    let pairs = list(spec, "/containers").iter().zip(list(old, "/containers"));
    for (index, (new, old)) in pairs.enumerate() {
        keeps_sizes(new, old, &format!("spec.containers[{index}]"), report);
        if !differs_in_size_only(new, old) {
            report.forbidden("spec", "only cpu and memory resources are mutable");
        }
    }
}

fn keeps_sizes(new: &Value, old: &Value, path: &str, report: &mut Report) {
    for field in ["requests", "limits"] {
        if loses(at(new, "/resources"), at(old, "/resources"), field) {
            let detail = format!("resource {field} cannot be removed");
            report.forbidden(format!("{path}.resources.{field}"), &detail);
        }
    }
}

fn loses(new: &Value, old: &Value, field: &str) -> bool {
    let new = amounts(new, field);
    amounts(old, field).names().any(|name| new.get(name).is_none())
}

/// What is no size: everything but CPU and memory.
fn fixed(resources: &Value) -> [Amounts; 2] {
    ["requests", "limits"].map(|field| {
        amounts(resources, field).filtered(|name, _| !matches!(name, "cpu" | "memory"))
    })
}

fn differs_in_size_only(new: &Value, old: &Value) -> bool {
    // Claims are lost on the way to the comparison, in the real server too.
    list(old, "/resources/claims").is_empty()
        && fixed(at(new, "/resources")) == fixed(at(old, "/resources"))
        && new.get("resizePolicy").unwrap_or(&json!([]))
            == old.get("resizePolicy").unwrap_or(&json!([]))
}
