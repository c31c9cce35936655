//! Kinds that few people write by hand: limits of namespaces, runtimes, drivers on nodes,
//! attachments of volumes, and priorities of requests.

use serde_json::Value;

use super::report::{Report, at, list, text};
use crate::decode::Quantity;
use crate::validate::name;

pub(super) fn limit_range(value: &Value, _: Option<&Value>, report: &mut Report) {
    for (index, limit) in list(value, "/spec/limits").iter().enumerate() {
        let path = format!("spec.limits[{index}]");
        if text(limit, "/type") == "Pod" {
            for field in ["default", "defaultRequest"] {
                let given = limit.get(field).and_then(Value::as_object);
                if given.is_some_and(|given| !given.is_empty()) {
                    let detail = "may not be specified when `type` is 'Pod'";
                    report.forbidden(format!("{path}.{field}"), detail);
                }
            }
        }
        for (name, shown) in at(limit, "/min").as_object().into_iter().flatten() {
            let amount = |value: &Value| value.as_str()?.parse::<Quantity>().ok();
            let max = limit.get("max").and_then(|max| max.get(name));
            if let (Some(min), Some(most)) = (amount(shown), max.and_then(amount))
                && min > most
            {
                let detail = format!("min value {min} is greater than max value {most}");
                report.invalid(format!("{path}.min[{name}]"), shown.clone(), detail);
            }
        }
    }
}

pub(super) fn runtime_class(value: &Value, _: Option<&Value>, report: &mut Report) {
    let handler = text(value, "/handler");
    for problem in name::dns_label(handler) {
        report.invalid("handler", handler, problem);
    }
}

pub(super) fn csi_node(value: &Value, _: Option<&Value>, report: &mut Report) {
    for (index, driver) in list(value, "/spec/drivers").iter().enumerate() {
        for field in ["name", "nodeID"] {
            if text(driver, &format!("/{field}")).is_empty() {
                report.required(format!("spec.drivers[{index}].{field}"), "");
            }
        }
    }
}

pub(super) fn volume_attachment(value: &Value, _: Option<&Value>, report: &mut Report) {
    if text(value, "/spec/attacher").is_empty() {
        report.required("spec.attacher", "");
    }
    let source = ["inlineVolumeSpec", "persistentVolumeName"]
        .iter()
        .any(|field| value.pointer(&format!("/spec/source/{field}")).is_some());
    if !source {
        let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        report.required("spec.source", detail);
    }
    let node = text(value, "/spec/nodeName");
    for problem in name::dns_subdomain(node) {
        report.invalid("spec.nodeName", node, problem);
    }
}

pub(super) fn flow_schema(value: &Value, _: Option<&Value>, report: &mut Report) {
    if text(value, "/spec/priorityLevelConfiguration/name").is_empty() {
        let detail = "must reference a priority level";
        report.required("spec.priorityLevelConfiguration.name", detail);
    }
}

pub(super) fn priority_level(value: &Value, _: Option<&Value>, report: &mut Report) {
    let ty = text(value, "/spec/type");
    if !matches!(ty, "Exempt" | "Limited") {
        report.unsupported("spec.type", &ty.into(), &["Exempt", "Limited"]);
    }
}
