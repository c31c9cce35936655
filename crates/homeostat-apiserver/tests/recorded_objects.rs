//! Replays what kube-apiserver 1.36.4 answered to creations: `recorded/objects.json` holds the
//! objects sent and what was stored or refused. Objects are shaped, defaulted and validated here
//! without a server; fields that only the server gives (uid, times, addresses) are left out.

#![expect(clippy::unwrap_used, reason = "a test stops where its data is not what it must be")]

use homeostat_apiserver::field::FieldError;
use homeostat_apiserver::kinds::{Kind, builtin};
use homeostat_apiserver::{custom, decode, default, validate};
use serde_json::{Value, json};

/// Where the real answer shows the internals of its implementation, or runs a check that is left
/// out here on purpose. Each must still be refused.
const WORDED_OTHERWISE: &[&str] = &[
    "bad finalizer",
    "bad hpa",
    "both budgets",
    "crd pattern",
    "crd rule",
    "crd bad names",
    "half",
];

fn recorded() -> Value {
    serde_json::from_str(include_str!("recorded/objects.json")).unwrap()
}

enum Outcome {
    Stored(Value),
    Unreadable(String),
    Refused(Vec<FieldError>),
}

fn create(kind: &Kind, mut object: Value) -> Outcome {
    if kind.namespaced {
        object["metadata"]["namespace"] = json!("default");
    }
    if let Err(error) = decode::typed(kind, &mut object) {
        return Outcome::Unreadable(error.to_string());
    }
    if kind.custom.is_some() {
        default::apply_defaults(kind.schema.root(), &mut object);
    } else {
        default::builtin(kind, &mut object);
    }
    if kind.kind == "Pod" && object["spec"].get("serviceAccountName").is_none() {
        // Admission gives every Pod an account before it is judged.
        object["spec"]["serviceAccountName"] = json!("default");
    }
    if kind.kind == "Job" && object["spec"].get("selector").is_none() {
        // As does every Job a selector that nobody else has, and its Pods the labels for it.
        let (uid, name) = (json!("u"), object["metadata"]["name"].clone());
        object["metadata"]["uid"] = uid.clone();
        let labels = &mut object["spec"]["template"]["metadata"]["labels"];
        for (old, new, value) in [
            ("controller-uid", "batch.kubernetes.io/controller-uid", &uid),
            ("job-name", "batch.kubernetes.io/job-name", &name),
        ] {
            labels[old] = value.clone();
            labels[new] = value.clone();
        }
        let own = json!({"batch.kubernetes.io/controller-uid": uid});
        object["spec"]["selector"] = json!({"matchLabels": own});
    }
    let errors = validate::object(kind, &object, None);
    if errors.is_empty() { Outcome::Stored(object) } else { Outcome::Refused(errors) }
}

/// Removes what admission, allocation and controllers add on the real server.
fn without_the_servers_part(mut object: Value) -> Value {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let drop = |object: &mut Value, pointer: &str| {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.shift_remove(name);
        }
    };
    let pointers: &[&str] = match kind.as_str() {
        "Pod" => &[
            "/spec/tolerations",
            "/spec/priority",
            "/spec/preemptionPolicy",
            "/spec/serviceAccount",
            "/spec/serviceAccountName",
            "/status",
        ],
        "Service" => &["/spec/clusterIPs", "/spec/ipFamilies", "/spec/ipFamilyPolicy"],
        "Namespace" => &["/spec"],
        "Job" => &["/spec/template/metadata/labels", "/metadata/labels", "/metadata/annotations"],
        "PersistentVolume" | "PersistentVolumeClaim" => &["/metadata/finalizers", "/status"],
        "DaemonSet" => &["/metadata/annotations"],
        "CustomResourceDefinition" => &["/status"],
        _ => &[],
    };
    for pointer in pointers {
        drop(&mut object, pointer);
    }
    object
}

fn causes(errors: &[FieldError]) -> Vec<Value> {
    let cause = |error: &FieldError| json!({"reason": error.reason.cause(), "message": error.message(), "field": error.path});
    let mut causes: Vec<Value> = errors.iter().map(cause).collect();
    causes.sort_by_key(Value::to_string);
    causes
}

fn check(kind: &Kind, case: &Value, mistakes: &mut Vec<String>) {
    let name = case["name"].as_str().unwrap();
    let sent = decode::json(case["object"].to_string().as_bytes()).unwrap();
    match create(kind, sent.value) {
        Outcome::Stored(object) => {
            let (ours, theirs) = (
                without_the_servers_part(object),
                without_the_servers_part(case["stored"].clone()),
            );
            if ours != theirs {
                mistakes.push(format!("{name}\n  ours   {ours}\n  theirs {theirs}"));
            }
        }
        Outcome::Unreadable(message) => {
            if case["message"] != message {
                mistakes.push(format!("{name}\n  ours   {message}\n  theirs {}", case["message"]));
            }
        }
        Outcome::Refused(errors) => {
            let ours = Value::from(causes(&errors));
            let mut theirs = case["causes"].as_array().cloned().unwrap_or_default();
            theirs.sort_by_key(Value::to_string);
            let theirs = Value::from(theirs);
            let same =
                if WORDED_OTHERWISE.contains(&name) { case["code"] == 422 } else { ours == theirs };
            if !same {
                mistakes.push(format!("{name}\n  ours   {ours}\n  theirs {theirs}"));
            }
        }
    }
}

#[test]
fn built_in_objects_are_stored_and_refused_as_kube_apiserver_does() {
    let mut mistakes = Vec::new();
    for case in recorded()["builtin"].as_array().unwrap() {
        let version = case["object"]["apiVersion"].as_str().unwrap();
        let kind = case["object"]["kind"].as_str().unwrap();
        let kind = builtin().iter().find(|row| row.kind == kind && row.api_version() == version);
        check(kind.unwrap(), case, &mut mistakes);
    }
    assert!(mistakes.is_empty(), "{} differ\n{}", mistakes.len(), mistakes.join("\n"));
}

#[test]
fn custom_objects_are_stored_and_refused_as_kube_apiserver_does() {
    let recorded = recorded();
    let mut definition = recorded["definition"].clone();
    custom::defaults(&mut definition);
    let kind = custom::rows(&definition).remove(0);
    let mut mistakes = Vec::new();
    for case in recorded["custom"].as_array().unwrap() {
        check(&kind, case, &mut mistakes);
    }
    assert!(mistakes.is_empty(), "{} differ\n{}", mistakes.len(), mistakes.join("\n"));
}
