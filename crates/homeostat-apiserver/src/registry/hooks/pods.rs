//! Pods: a phase from the start, a service account, and a quality of service.

use serde_json::{Value, json};

use super::{Hooks, NONE};
use crate::kinds::Kind;
use crate::registry::{Writer, metadata};
use crate::status::Status;

pub(super) const HOOKS: Hooks = Hooks {
    create: |writer, kind, object| {
        admit_service_account(writer, kind, object)?;
        let quality = quality_of_service(object.get("spec").unwrap_or(&Value::Null));
        let status = json!({"phase": "Pending", "qosClass": quality});
        metadata::set_top(object, "status", Some(status));
        Ok(())
    },
    ..NONE
};

/// Pods run as an account of their namespace, which must exist if the server is told to insist.
fn admit_service_account(writer: &Writer<'_>, kind: &Kind, pod: &mut Value) -> Result<(), Status> {
    if !writer.registry.config.service_account_admission {
        return Ok(());
    }
    let name = pod.pointer("/spec/serviceAccountName").and_then(Value::as_str).unwrap_or("");
    let account = if name.is_empty() { "default".to_owned() } else { name.to_owned() };
    let namespace = metadata::namespace(pod).to_owned();
    if writer.registry.peek("serviceaccounts", &namespace, &account).is_none() {
        let why = format!(
            "error looking up service account {namespace}/{account}: serviceaccount {account:?} not found"
        );
        return Err(Status::forbidden(kind, metadata::name(pod), &why));
    }
    if pod.get("spec").is_some_and(Value::is_object) {
        pod["spec"]["serviceAccountName"] = account.clone().into();
        pod["spec"]["serviceAccount"] = account.into();
    }
    Ok(())
}

/// Guaranteed when every container's requests are its limits, for both resources; best effort when
/// there are none at all; burstable otherwise.
fn quality_of_service(spec: &Value) -> &'static str {
    let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
    let (mut any, mut guaranteed) = (false, true);
    for container in list("containers").chain(list("initContainers")) {
        for resource in ["cpu", "memory"] {
            let amount = |which: &str| {
                container
                    .pointer(&format!("/resources/{which}/{resource}"))
                    .filter(|v| !v.is_null())
            };
            any |= amount("requests").is_some() || amount("limits").is_some();
            guaranteed &= amount("limits").is_some() && amount("limits") == amount("requests");
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
