//! Defaults that depend on other fields, where a row of data cannot say it.

use serde_json::{Map, Value, json};

use crate::kinds::Kind;

type Object = Map<String, Value>;

/// Defaults of one type wherever it is used; called before its fields are walked.
pub(super) fn of_type(ty: &str, object: &mut Object) {
    match ty {
        "core.v1.Container" | "core.v1.EphemeralContainer" => {
            pull_policy(object, "image", "imagePullPolicy");
        }
        "core.v1.ImageVolumeSource" => pull_policy(object, "reference", "pullPolicy"),
        "core.v1.Volume" if object.keys().all(|field| field == "name") => {
            set(object, "emptyDir", json!({}));
        }
        "core.v1.ServiceSpec" => service(object),
        // Two names of one field; the newer one is right where they differ.
        "core.v1.PodSpec" => {
            let named = ["serviceAccountName", "serviceAccount"]
                .map(|field| text(object, field).to_owned())
                .into_iter()
                .find(|name| !name.is_empty());
            if let Some(name) = named {
                object.insert("serviceAccountName".to_owned(), name.clone().into());
                object.insert("serviceAccount".to_owned(), name.into());
            }
        }
        "apps.v1.DeploymentStrategy" | "apps.v1.DaemonSetUpdateStrategy" => rolling(object),
        "apps.v1.StatefulSetUpdateStrategy" if text(object, "type").is_empty() => {
            set(object, "type", json!("RollingUpdate"));
            set(object, "rollingUpdate", json!({}));
        }
        "networking.v1.NetworkPolicySpec" if is_empty(object.get("policyTypes")) => {
            let egress = !is_empty(object.get("egress"));
            let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            object.insert("policyTypes".to_owned(), types);
        }
        "rbac.v1.Subject" if matches!(text(object, "kind"), "User" | "Group") => {
            set(object, "apiGroup", json!("rbac.authorization.k8s.io"));
        }
        "autoscaling.v2.HorizontalPodAutoscalerSpec" if is_empty(object.get("metrics")) => {
            let target = json!({"type": "Utilization", "averageUtilization": 80});
            let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
            object.insert("metrics".to_owned(), json!([metric]));
        }
        "autoscaling.v2.HorizontalPodAutoscalerBehavior" => scaling(object),
        "resource.v1.ExactDeviceRequest" | "resource.v1.DeviceSubRequest"
            if text(object, "allocationMode") == "ExactCount"
                && object.get("count").and_then(Value::as_i64).unwrap_or(0) == 0 =>
        {
            object.insert("count".to_owned(), json!(1));
        }
        "core.v1.LoadBalancerIngress" if !text(object, "ip").is_empty() => {
            object.entry("ipMode").or_insert_with(|| json!("VIP"));
        }
        "core.v1.LimitRangeItem" if text(object, "type") == "Container" => limit_range(object),
        "core.v1.NodeStatus" => {
            if let Some(capacity) = object.get("capacity").cloned() {
                set(object, "allocatable", capacity);
            }
        }
        _ => {}
    }
}

/// How many Pods are replaced at a time: some if they are replaced so, and none where it does not matter.
fn rolling(strategy: &mut Object) {
    if text(strategy, "type") == "RollingUpdate" {
        set(strategy, "rollingUpdate", json!({}));
    } else if let Some(Value::Object(amounts)) = strategy.get_mut("rollingUpdate") {
        for field in ["maxUnavailable", "maxSurge"] {
            amounts.entry(field).or_insert_with(|| json!(0));
        }
    }
}

/// How fast an autoscaler may go in either direction, once anything is said about it.
fn scaling(behavior: &mut Map<String, Value>) {
    let policy = |ty: &str, value: u32| json!({"type": ty, "value": value, "periodSeconds": 15});
    let up = json!({
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [policy("Pods", 4), policy("Percent", 100)],
    });
    let down = json!({"selectPolicy": "Max", "policies": [policy("Percent", 100)]});
    for (direction, defaults) in [("scaleUp", up), ("scaleDown", down)] {
        set(behavior, direction, json!({}));
        let rules = behavior.get_mut(direction).and_then(Value::as_object_mut);
        let Some((rules, Value::Object(defaults))) = rules.zip(Some(defaults)) else { continue };
        // A word that is empty was said.
        for (field, value) in defaults {
            if rules.get(&field).is_none_or(Value::is_null) {
                rules.insert(field, value);
            }
        }
    }
}

/// Defaults that belong to the object as a whole.
pub(super) fn of_kind(kind: &Kind, value: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => super::pod::pod(value),
        ("", "Namespace") => {
            if let Some(name) =
                value.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned)
                && !name.is_empty()
            {
                value["metadata"]["labels"]["kubernetes.io/metadata.name"] = Value::String(name);
            }
        }
        // Not of one that only its attachment knows.
        ("", "PersistentVolume") => {
            if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
                set(spec, "persistentVolumeReclaimPolicy", json!("Retain"));
                spec.entry("volumeMode").or_insert_with(|| json!("Filesystem"));
            }
        }
        ("", "ReplicationController") => {
            let labels = value.pointer("/spec/template/metadata/labels").cloned();
            if let (Some(labels), Some(spec)) = (labels, value["spec"].as_object_mut()) {
                set(spec, "selector", labels.clone());
                label_like_template(value, labels);
            }
        }
        ("apiregistration.k8s.io", "APIService") => {
            let service = value.pointer_mut("/spec/service").and_then(Value::as_object_mut);
            service.into_iter().for_each(|service| set(service, "port", json!(443)));
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crate::custom::defaults(value),
        ("apps", "StatefulSet") => {
            let claims = value.pointer_mut("/spec/volumeClaimTemplates");
            for claim in claims.and_then(Value::as_array_mut).into_iter().flatten() {
                // Whatever they are said to be.
                if let Some(claim) = claim.as_object_mut() {
                    claim.insert("kind".to_owned(), json!("PersistentVolumeClaim"));
                    claim.insert("apiVersion".to_owned(), json!("v1"));
                }
            }
        }
        ("batch", "Job") => {
            // not in the template of a CronJob: there the Job is still to be made
            if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
                job(spec);
            }
            if let Some(labels) = value.pointer("/spec/template/metadata/labels").cloned() {
                label_like_template(value, labels);
            }
        }
        _ => {}
    }
}

/// Sets the field unless it has a value; an empty string is none, but a zero is one.
pub(super) fn set(object: &mut Object, field: &str, value: Value) {
    let present = object.get(field);
    if present.is_none_or(|present| present.is_null() || present == "") {
        object.insert(field.to_owned(), value);
    }
}

fn text<'a>(object: &'a Object, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn is_empty(list: Option<&Value>) -> bool {
    list.and_then(Value::as_array).is_none_or(Vec::is_empty)
}

fn label_like_template(value: &mut Value, labels: Value) {
    let own = value.pointer("/metadata/labels").and_then(Value::as_object);
    if own.is_none_or(Map::is_empty) {
        value["metadata"]["labels"] = labels;
    }
}

/// `latest`, said or implied, is pulled always; anything else only when it is missing.
/// Whether the text can name an image at all, as far as letters and length tell.
fn is_image(image: &str) -> bool {
    const LONGEST: usize = 255;
    let path = image.split_once('/').map_or(image, |(_, path)| path);
    let name = path.split(':').next().unwrap_or_default();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/".contains(c);
    !name.is_empty() && name.chars().all(plain) && !name.ends_with('/') && name.len() <= LONGEST
}

fn pull_policy(object: &mut Object, image: &str, policy: &str) {
    let image = text(object, image);
    let name = image.rsplit('/').next().unwrap_or_default();
    let latest = !image.contains('@')
        && is_image(image)
        && name.rsplit_once(':').is_none_or(|(_, tag)| tag == "latest");
    set(object, policy, json!(if latest { "Always" } else { "IfNotPresent" }));
}

fn service(spec: &mut Object) {
    match text(spec, "sessionAffinity") {
        "ClientIP" => {
            let config = spec.get("sessionAffinityConfig");
            if config.is_none_or(|config| config.pointer("/clientIP/timeoutSeconds").is_none()) {
                let config = json!({"clientIP": {"timeoutSeconds": 10800}});
                spec.insert("sessionAffinityConfig".to_owned(), config);
            }
        }
        "None" => drop(spec.shift_remove("sessionAffinityConfig")),
        _ => {}
    }
    let ty = text(spec, "type").to_owned();
    if matches!(ty.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        spec.entry("internalTrafficPolicy").or_insert_with(|| json!("Cluster"));
    }
    let external = !is_empty(spec.get("externalIPs"));
    if matches!(ty.as_str(), "NodePort" | "LoadBalancer") || (ty == "ClusterIP" && external) {
        set(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if ty == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(port) = port.as_object_mut() else { continue };
        if let Some(number) = port.get("port").cloned()
            && super::is_zero(port.get("targetPort"))
        {
            port.insert("targetPort".to_owned(), number);
        }
    }
}

fn job(spec: &mut Object) {
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".to_owned(), json!(1));
    }
    let retries = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    let has_policy = spec.contains_key("podFailurePolicy");
    let replaced = if has_policy { "Failed" } else { "TerminatingOrFailed" };
    for (field, value) in [
        ("parallelism", json!(1)),
        ("backoffLimit", json!(retries)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("manualSelector", json!(false)),
        ("podReplacementPolicy", json!(replaced)),
    ] {
        // A word that is empty was said.
        spec.entry(field).or_insert(value);
    }
}

fn limit_range(item: &mut Object) {
    let get = |item: &Object, field: &str| -> Object {
        item.get(field).and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let mut limits = get(item, "default");
    let mut requests = get(item, "defaultRequest");
    for (name, amount) in get(item, "max") {
        limits.entry(name).or_insert(amount);
    }
    for (name, amount) in limits.clone().into_iter().chain(get(item, "min")) {
        requests.entry(name).or_insert(amount);
    }
    for (field, amounts) in [("default", limits), ("defaultRequest", requests)] {
        if !amounts.is_empty() {
            item.insert(field.to_owned(), Value::Object(amounts));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_fixed_tag_is_pulled_always() {
        for (image, policy) in [
            ("busybox", "Always"),
            ("busybox:latest", "Always"),
            ("host:5000/busybox", "Always"),
            ("busybox:1.36", "IfNotPresent"),
            ("host:5000/busybox:1", "IfNotPresent"),
            ("busybox@sha256:0", "IfNotPresent"),
        ] {
            let mut object = json!({"image": image}).as_object().cloned().unwrap();
            of_type("core.v1.Container", &mut object);
            assert_eq!(object["imagePullPolicy"], policy, "{image}");
        }
    }

    #[test]
    fn a_service_port_targets_itself_and_a_named_target_is_kept() {
        let mut spec =
            json!({"type": "ClusterIP", "ports": [{"port": 80}, {"port": 1, "targetPort": "web"}]})
                .as_object()
                .cloned()
                .unwrap();
        of_type("core.v1.ServiceSpec", &mut spec);
        assert_eq!(spec["ports"][0]["targetPort"], 80);
        assert_eq!(spec["ports"][1]["targetPort"], "web");
        assert_eq!(spec["internalTrafficPolicy"], "Cluster");
    }
}
