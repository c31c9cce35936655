//! The columns of kinds that are seldom looked at: policies, flow control, devices, drivers.

use serde_json::{Value, json};

use super::cells::{count, flag, int_at, list_at, or, str_at, string};
use super::columns::{AGE, NAME, column, number, text};
use super::{Column, Row};

/// The columns of a kind, if it is one of these.
pub(super) fn of(group: &str, kind: &str) -> Option<&'static [Column]> {
    Some(match (group, kind) {
        ("", "ComponentStatus") => COMPONENT_STATUS,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => MUTATING_POLICY,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => VALIDATING_POLICY,
        (
            "admissionregistration.k8s.io",
            "MutatingAdmissionPolicyBinding" | "ValidatingAdmissionPolicyBinding",
        ) => POLICY_BINDING,
        ("apiregistration.k8s.io", "APIService") => API_SERVICE,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => FLOW_SCHEMA,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => PRIORITY_LEVEL,
        ("resource.k8s.io", "ResourceClaim") => RESOURCE_CLAIM,
        ("resource.k8s.io", "ResourceSlice") => RESOURCE_SLICE,
        ("storage.k8s.io", "CSIDriver") => CSI_DRIVER,
        ("storage.k8s.io", "VolumeAttributesClass") => VOLUME_ATTRIBUTES_CLASS,
        _ => return None,
    })
}

const COMPONENT_STATUS: &[Column] = &[
    NAME,
    text("Status", |row| {
        json!(match healthy(row).map(|condition| str_at(condition, "/status")) {
            None => "Unknown",
            Some("True") => "Healthy",
            Some(_) => "Unhealthy",
        })
    }),
    text("Message", |row| json!(healthy(row).map_or("", |found| str_at(found, "/message")))),
    text("Error", |row| json!(healthy(row).map_or("", |found| str_at(found, "/error")))),
];

fn healthy<'a>(row: &Row<'a>) -> Option<&'a Value> {
    let mut conditions = list_at(row.object, "/conditions").iter();
    conditions.find(|condition| str_at(condition, "/type") == "Healthy")
}

const MUTATING_POLICY: &[Column] =
    &[NAME, number("Mutations", |row| count(row, "/spec/mutations")), PARAM_KIND, AGE];
const VALIDATING_POLICY: &[Column] =
    &[NAME, number("Validations", |row| count(row, "/spec/validations")), PARAM_KIND, AGE];
const PARAM_KIND: Column = text("ParamKind", |row| {
    let Some(kind) = row.object.pointer("/spec/paramKind") else { return json!("<unset>") };
    json!(format!("{}/{}", str_at(kind, "/apiVersion"), str_at(kind, "/kind")))
});

const POLICY_BINDING: &[Column] = &[
    NAME,
    text("PolicyName", |row| string(row, "/spec/policyName")),
    text("ParamRef", |row| json!(params(row.object.pointer("/spec/paramRef")))),
    AGE,
];

/// Which parameters are meant: by name, or by labels in the form Go has for them.
fn params(reference: Option<&Value>) -> String {
    let Some(reference) = reference else { return "<unset>".to_owned() };
    let (space, name) = (str_at(reference, "/namespace"), str_at(reference, "/name"));
    if !name.is_empty() {
        return format!("{}/{name}", if space.is_empty() { "*" } else { space });
    }
    let Some(selector) = reference.get("selector") else { return "<unset>".to_owned() };
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()))
        .collect();
    labels.sort();
    let rules = list_at(selector, "/matchExpressions").iter().map(|rule| {
        let values: Vec<&str> = list_at(rule, "/values").iter().filter_map(Value::as_str).collect();
        let (key, operator) = (str_at(rule, "/key"), str_at(rule, "/operator"));
        format!(
            "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},",
            values.join(" ")
        )
    });
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.concat(),
        rules.collect::<String>()
    )
}

const API_SERVICE: &[Column] = &[
    NAME,
    text("Service", |row| match row.object.pointer("/spec/service") {
        None | Some(Value::Null) => json!("Local"),
        Some(service) => {
            json!(format!("{}/{}", str_at(service, "/namespace"), str_at(service, "/name")))
        }
    }),
    text("Available", |row| {
        let mut conditions = list_at(row.object, "/status/conditions").iter();
        let found = conditions.find(|condition| str_at(condition, "/type") == "Available");
        let Some(found) = found else { return json!("Unknown") };
        match (str_at(found, "/status"), str_at(found, "/reason")) {
            ("True", _) => json!("True"),
            (status, "") => json!(status),
            (status, reason) => json!(format!("{status} ({reason})")),
        }
    }),
    AGE,
];

const FLOW_SCHEMA: &[Column] = &[
    NAME,
    text("PriorityLevel", |row| string(row, "/spec/priorityLevelConfiguration/name")),
    // A number, whatever its heading says.
    text("MatchingPrecedence", |row| json!(int_at(row.object, "/spec/matchingPrecedence"))),
    text("DistinguisherMethod", |row| or(string(row, "/spec/distinguisherMethod/type"), "<none>")),
    AGE,
    text("MissingPL", |row| {
        let mut conditions = list_at(row.object, "/status/conditions").iter();
        let found = conditions.find(|condition| str_at(condition, "/type") == "Dangling");
        json!(found.map_or("?", |condition| str_at(condition, "/status")))
    }),
];

const PRIORITY_LEVEL: &[Column] = &[
    NAME,
    text("Type", |row| string(row, "/spec/type")),
    text("NominalConcurrencyShares", |row| limit(row, "nominalConcurrencyShares")),
    text("Queues", |row| limit(row, "limitResponse/queuing/queues")),
    text("HandSize", |row| limit(row, "limitResponse/queuing/handSize")),
    text("QueueLengthLimit", |row| limit(row, "limitResponse/queuing/queueLengthLimit")),
    AGE,
];

fn limit(row: &Row<'_>, field: &str) -> Value {
    let found = row.object.pointer(&format!("/spec/limited/{field}"));
    found.cloned().unwrap_or_else(|| json!("<none>"))
}

const RESOURCE_CLAIM: &[Column] = &[
    NAME,
    text("State", |row| {
        let deleted = row.object.pointer("/metadata/deletionTimestamp").is_some();
        let allocated = row.object.pointer("/status/allocation").is_some();
        let reserved = allocated && !list_at(row.object, "/status/reservedFor").is_empty();
        let states = [
            ("deleted", deleted),
            ("pending", !allocated && !deleted),
            ("allocated", allocated),
            ("reserved", reserved),
        ];
        let states = states.iter().filter(|(_, holds)| *holds).map(|(state, _)| *state);
        json!(states.collect::<Vec<_>>().join(","))
    }),
    AGE,
];

const RESOURCE_SLICE: &[Column] = &[
    NAME,
    text("Node", |row| string(row, "/spec/nodeName")),
    text("Driver", |row| string(row, "/spec/driver")),
    text("Pool", |row| string(row, "/spec/pool/name")),
    AGE,
];

const CSI_DRIVER: &[Column] = &[
    NAME,
    column("AttachRequired", "boolean", |row| {
        json!(row.object.pointer("/spec/attachRequired") != Some(&Value::Bool(false)))
    }),
    column("PodInfoOnMount", "boolean", |row| flag(row, "/spec/podInfoOnMount")),
    column("StorageCapacity", "boolean", |row| flag(row, "/spec/storageCapacity")),
    text("TokenRequests", |row| {
        if row.object.pointer("/spec/tokenRequests").is_none() {
            return json!("<unset>");
        }
        let requests = list_at(row.object, "/spec/tokenRequests").iter();
        let audiences: Vec<&str> = requests.map(|request| str_at(request, "/audience")).collect();
        json!(audiences.join(","))
    }),
    column("RequiresRepublish", "boolean", |row| flag(row, "/spec/requiresRepublish")),
    text("Modes", |row| {
        let modes = list_at(row.object, "/spec/volumeLifecycleModes").iter();
        let modes: Vec<&str> = modes.filter_map(Value::as_str).collect();
        or(json!(modes.join(",")), "<none>")
    }),
    AGE,
];

const VOLUME_ATTRIBUTES_CLASS: &[Column] =
    &[NAME, text("DriverName", |row| string(row, "/driverName")), AGE];
