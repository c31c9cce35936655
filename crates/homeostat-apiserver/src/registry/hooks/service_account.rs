//! The account of a Pod: which one, and a token of it in every container.

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::registry::{Writer, metadata, names};
use crate::status::Status;

/// Where programs look for the token, the authority and the namespace.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME: &str = "kube-api-access-";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Pods run as an account of their namespace, which must exist if the server is told to insist.
pub(super) fn admit(writer: &Writer<'_>, kind: &Kind, pod: &mut Value) -> Result<(), Status> {
    if !writer.registry.config.service_account_admission
        || !pod.get("spec").is_some_and(Value::is_object)
    {
        return Ok(());
    }
    let name = pod.pointer("/spec/serviceAccountName").and_then(Value::as_str).unwrap_or("");
    if pod["metadata"]["annotations"].get(MIRROR).is_some() {
        if name.is_empty() {
            return Ok(());
        }
        let why = "a mirror pod may not reference service accounts";
        return Err(Status::forbidden(kind, metadata::name(pod), why));
    }
    let account = if name.is_empty() { "default".to_owned() } else { name.to_owned() };
    let namespace = metadata::namespace(pod).to_owned();
    let Some(live) = writer.registry.peek("serviceaccounts", &namespace, &account) else {
        let why = format!(
            "error looking up service account {namespace}/{account}: serviceaccount {account:?} not found"
        );
        return Err(Status::forbidden(kind, metadata::name(pod), &why));
    };
    let spec = &mut pod["spec"];
    spec["serviceAccountName"] = account.clone().into();
    spec["serviceAccount"] = account.into();
    let field = "automountServiceAccountToken";
    let automount = spec.get(field).and_then(Value::as_bool).or(live[field].as_bool());
    if writer.registry.config.mount_tokens && automount.unwrap_or(true) {
        let fresh = names::generate(&writer.registry.env, VOLUME);
        mount_token(spec, &fresh);
    }
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    if is_empty(&spec["imagePullSecrets"]) && !is_empty(&live["imagePullSecrets"]) {
        spec["imagePullSecrets"] = live["imagePullSecrets"].clone();
    }
    Ok(())
}

/// Gives every container the token, unless it has something else in its place.
fn mount_token(spec: &mut Value, fresh: &str) {
    let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let mut known = volumes.filter_map(|volume| volume["name"].as_str());
    let present = known.find(|name| name.starts_with(VOLUME)).map(str::to_owned);
    let volume = present.as_deref().unwrap_or(fresh);
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
    if !needed || present.is_some() {
        return;
    }
    let token = json!({
        "name": fresh,
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
        mount_token(&mut spec, "kube-api-access-x");
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
        mount_token(&mut spec, "kube-api-access-x");
        assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], "kube-api-access-own");
        assert_eq!(spec["volumes"].as_array().map(Vec::len), Some(1));
    }
}
