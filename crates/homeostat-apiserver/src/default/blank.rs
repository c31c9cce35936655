//! What an object of a built-in kind shows before anybody has written anything: fields that are
//! never left out. Nobody owns them as long as they are blank.

use serde_json::Value;

use crate::kinds::Kind;

/// `(resource, blank object)`
const BLANK: &[(&str, &str)] = &[
    ("clusterroles.rbac.authorization.k8s.io", r#"{"rules": null}"#),
    ("roles.rbac.authorization.k8s.io", r#"{"rules": null}"#),
    ("endpointslices.discovery.k8s.io", r#"{"endpoints": null, "ports": null}"#),
    ("priorityclasses.scheduling.k8s.io", r#"{"value": 0}"#),
    ("statefulsets.apps", r#"{"spec": {"serviceName": ""}}"#),
    ("token.authentication.k8s.io", r#"{"spec": {"boundObjectRef": null}}"#),
    ("resourceclaims.resource.k8s.io", r#"{"spec": {"devices": {"requests": null}}}"#),
    (
        "resourceclaimtemplates.resource.k8s.io",
        r#"{"spec": {"spec": {"devices": {"requests": null}}}}"#,
    ),
    (
        "nodes",
        r#"{"status": {"nodeInfo": {"machineID": "", "systemUUID": "", "bootID": "",
            "kernelVersion": "", "osImage": "", "containerRuntimeVersion": "",
            "kubeletVersion": "", "kubeProxyVersion": "", "operatingSystem": "",
            "architecture": ""}}}"#,
    ),
    (
        "events",
        r#"{"involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null,
            "eventTime": null, "reportingComponent": "", "reportingInstance": ""}"#,
    ),
    (
        "events.events.k8s.io",
        r#"{"regarding": {}, "deprecatedSource": {}, "deprecatedFirstTimestamp": null,
            "deprecatedLastTimestamp": null, "eventTime": null}"#,
    ),
];

/// The blank object of a kind; empty for most.
pub(crate) fn blank(kind: &Kind) -> Value {
    let row = BLANK.iter().find(|(name, _)| kind.custom.is_none() && kind.is(name));
    row.and_then(|(_, text)| serde_json::from_str(text).ok())
        .unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

/// Fills in what is never left out.
pub(crate) fn always_shown(kind: &Kind, object: &mut Value) {
    for (name, shown) in blank(kind).as_object().into_iter().flatten() {
        if let (Some(fields), false) = (object.as_object_mut(), shown.is_object()) {
            fields.entry(name).or_insert_with(|| shown.clone());
        }
    }
}

/// Lists that are never left out are `null` when they are empty.
pub(crate) fn empty_lists(kind: &Kind, object: &mut Value) {
    for (name, shown) in blank(kind).as_object().into_iter().flatten() {
        if let Some(value) = object.get_mut(name)
            && shown.is_null()
            && value.as_array().is_some_and(Vec::is_empty)
        {
            *value = Value::Null;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_json() {
        for (name, text) in BLANK {
            assert!(serde_json::from_str::<Value>(text).is_ok_and(|row| row.is_object()), "{name}");
        }
    }
}
