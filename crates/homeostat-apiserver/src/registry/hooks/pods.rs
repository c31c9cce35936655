//! Pods: a phase from the start, a service account, a priority, and a quality of service.

use serde_json::{Value, json};

use super::{Hooks, NONE};
use crate::kinds::Kind;
use crate::registry::{Writer, metadata};
use crate::status::Status;

pub(super) const HOOKS: Hooks = Hooks {
    create: |writer, kind, object| {
        admit_service_account(writer, kind, object)?;
        admit_priority(writer, kind, object)?;
        add_tolerations(object);
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

/// A priority class becomes its number.
fn admit_priority(writer: &Writer<'_>, kind: &Kind, pod: &mut Value) -> Result<(), Status> {
    let resource = "priorityclasses.scheduling.k8s.io";
    let name = pod.pointer("/spec/priorityClassName").and_then(Value::as_str).unwrap_or("");
    let class = if name.is_empty() {
        None
    } else {
        let Some(class) = writer.registry.peek(resource, "", name) else {
            let why = format!("no PriorityClass with name {name} was found");
            return Err(Status::forbidden(kind, metadata::name(pod), &why));
        };
        Some(class)
    };
    let field = |field: &str| class.as_ref().and_then(|class| class.get(field)).cloned();
    if pod.get("spec").is_some_and(Value::is_object) {
        pod["spec"]["priority"] = field("value").unwrap_or(json!(0));
        pod["spec"]["preemptionPolicy"] =
            field("preemptionPolicy").unwrap_or(json!("PreemptLowerPriority"));
    }
    Ok(())
}

/// Pods stay five minutes on a node that cannot be reached, unless they say otherwise.
fn add_tolerations(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or("");
            let effect = text("effect");
            (text("key") == key || (text("key").is_empty() && text("operator") == "Exists"))
                && (effect.is_empty() || effect == "NoExecute")
        });
        if !tolerated {
            tolerations.push(json!({
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }));
        }
    }
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
