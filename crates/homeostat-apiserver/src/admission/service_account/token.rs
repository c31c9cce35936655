//! The volume with the token of a Pod's account, mounted in every container.

use homeostat_env::Env;
use serde_json::{Value, json};

use crate::registry::names;

/// Where programs look for the token, the authority and the namespace.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME: &str = "kube-api-access-";

/// A fresh name for the volume.
pub(super) fn volume_name(env: &Env) -> String {
    names::generate(env, VOLUME)
}

/// Whether a volume of the Pod holds a token.
pub(super) fn is_projected(spec: &Value) -> bool {
    let list = |value: &Value, field: &str| value[field].as_array().cloned().unwrap_or_default();
    list(spec, "volumes")
        .iter()
        .flat_map(|volume| list(&volume["projected"], "sources"))
        .any(|source| source.get("serviceAccountToken").is_some())
}

/// Gives every container the token, unless it has something else in its place.
pub(super) fn mount(spec: &mut Value, draw: impl FnOnce() -> String) {
    let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let mut known = volumes.filter_map(|volume| volume["name"].as_str());
    let present = known.find(|name| name.starts_with(VOLUME)).map(str::to_owned);
    let is_present = present.is_some();
    let volume = present.unwrap_or_else(draw);
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(container) = container.as_object_mut() else { continue };
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if mounts.iter().all(|mount| mount["mountPath"] != MOUNT_PATH) {
                needed = true;
                mounts.push(json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH}));
            }
        }
    }
    if !needed || is_present {
        return;
    }
    let token = json!({
        "name": volume,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
            "defaultMode": 420,
        },
    });
    match spec.get_mut("volumes").and_then(Value::as_array_mut) {
        Some(volumes) => volumes.push(token),
        None => spec["volumes"] = json!([token]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_with_something_in_the_place_of_the_token_keeps_it() {
        let own = json!({"name": "mine", "mountPath": MOUNT_PATH});
        let mut spec = json!({
            "containers": [{"name": "a", "volumeMounts": [own]}, {"name": "b"}],
            "volumes": [{"name": "mine", "emptyDir": {}}],
        });
        mount(&mut spec, || "kube-api-access-x".to_owned());
        assert_eq!(spec["containers"][0]["volumeMounts"], json!([own]));
        assert_eq!(spec["containers"][1]["volumeMounts"][0]["name"], "kube-api-access-x");
        assert_eq!(spec["volumes"][1]["name"], "kube-api-access-x");
    }

    #[test]
    fn a_pod_that_brings_the_volume_gets_no_second_one() {
        let mut spec = json!({
            "containers": [{"name": "a"}],
            "volumes": [{"name": "kube-api-access-own", "emptyDir": {}}],
        });
        mount(&mut spec, || "kube-api-access-x".to_owned());
        assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], "kube-api-access-own");
        assert_eq!(spec["volumes"].as_array().map(Vec::len), Some(1));
    }
}
