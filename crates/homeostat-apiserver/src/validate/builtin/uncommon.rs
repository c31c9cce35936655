//! Kinds that few people write by hand: limits of namespaces, runtimes, drivers of volumes,
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

/// The shortest and the longest life of a token, in seconds.
const LIFE_OF_TOKENS: [i64; 2] = [600, 1 << 32];

pub(super) fn csi_driver(value: &Value, old: Option<&Value>, report: &mut Report) {
    let policy = at(value, "/spec/fsGroupPolicy");
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    if policy.as_str().is_some_and(|policy| !policies.contains(&policy)) {
        report.unsupported("spec.fsGroupPolicy", policy, &policies);
    }
    let requests = list(value, "/spec/tokenRequests");
    for (index, request) in requests.iter().enumerate() {
        let path = format!("spec.tokenRequests[{index}]");
        let audience = text(request, "/audience");
        if requests[..index].iter().any(|other| text(other, "/audience") == audience) {
            report.duplicate(format!("{path}.audience"), audience);
            continue;
        }
        let Some(seconds) = at(request, "/expirationSeconds").as_i64() else { continue };
        let path = format!("{path}.expirationSeconds");
        if seconds < LIFE_OF_TOKENS[0] {
            report.invalid(path, seconds, "may not specify a duration less than 10 minutes");
        } else if seconds > LIFE_OF_TOKENS[1] {
            report.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds");
        }
    }
    for mode in list(value, "/spec/volumeLifecycleModes") {
        if !matches!(mode.as_str(), Some("Persistent" | "Ephemeral")) {
            report.unsupported("spec.volumeLifecycleModes", mode, &["Persistent", "Ephemeral"]);
        }
    }
    let period = at(value, "/spec/nodeAllocatableUpdatePeriodSeconds").as_i64();
    if let Some(period) = period.filter(|period| *period < 10) {
        let detail = "must be greater than or equal to 10 seconds";
        report.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, detail);
    }
    let in_secrets = at(value, "/spec/serviceAccountTokenInSecrets");
    if in_secrets.is_boolean() && requests.is_empty() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        report.invalid("spec.serviceAccountTokenInSecrets", in_secrets.clone(), detail);
    }
    let Some(old) = old else { return };
    // The path of the first one is misspelt there.
    for (field, path) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        let (now, before) =
            (at(value, &format!("/spec/{field}")), at(old, &format!("/spec/{field}")));
        if now != before {
            report.invalid(format!("spec.{path}"), now.clone(), "field is immutable");
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
