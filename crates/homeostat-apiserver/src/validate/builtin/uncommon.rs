//! Kinds that few people write by hand: limits of namespaces, runtimes, drivers and attachments of
//! volumes, and servers of more groups.

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

/// The highest priorities of a group and of a version.
const MOST_OF_GROUPS: i64 = 20_000;
const MOST_OF_VERSIONS: i64 = 1000;

pub(super) fn api_service(value: &Value, _: Option<&Value>, report: &mut Report) {
    let (group, version) = (text(value, "/spec/group"), text(value, "/spec/version"));
    let (given, wanted) = (text(value, "/metadata/name"), format!("{version}.{group}"));
    if given != wanted && name::path_segment(given).is_empty() {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        report.invalid("metadata.name", given, detail);
    }
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        report.required("spec.group", detail);
    }
    for problem in name::dns_subdomain(group).iter().filter(|_| !group.is_empty()) {
        report.invalid("spec.group", group, problem.as_str());
    }
    for problem in name::dns_label_1035(version) {
        report.invalid("spec.version", version, problem);
    }
    for (field, most) in
        [("groupPriorityMinimum", MOST_OF_GROUPS), ("versionPriority", MOST_OF_VERSIONS)]
    {
        let number = at(value, &format!("/spec/{field}")).as_i64().unwrap_or_default();
        if !(1..=most).contains(&number) {
            let detail = format!("must be positive and less than {most}");
            report.invalid(format!("spec.{field}"), number, detail);
        }
    }
    let bundle = text(value, "/spec/caBundle");
    let insecure = at(value, "/spec/insecureSkipTLSVerify") == &Value::Bool(true);
    let Some(service) = value.pointer("/spec/service").filter(|service| service.is_object()) else {
        if !bundle.is_empty() {
            // Four letters stand for three bytes, the last ones for fewer.
            let bytes = bundle.len() / 4 * 3 - bundle.matches('=').count();
            let detail = "local APIServices may not have a caBundle";
            report.invalid("spec.caBundle", format!("{bytes} bytes"), detail);
        }
        if insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            report.invalid("spec.insecureSkipTLSVerify", true, detail);
        }
        return;
    };
    for field in ["namespace", "name"] {
        if text(service, &format!("/{field}")).is_empty() {
            report.required(format!("spec.service.{field}"), "");
        }
    }
    let port = at(service, "/port").as_i64().unwrap_or_default();
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        report.invalid("spec.service.port", port, detail);
    }
    if insecure && !bundle.is_empty() {
        let detail = "may not be true if caBundle is present";
        report.invalid("spec.insecureSkipTLSVerify", true, detail);
    }
}
