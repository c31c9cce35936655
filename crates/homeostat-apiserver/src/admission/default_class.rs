//! `DefaultStorageClass` and `DefaultIngressClass`: whoever names no class gets the default one.

use serde_json::{Value, json};

use super::{Operation, Review};
use crate::registry::metadata;
use crate::status::Status;

pub(super) fn of_claim(review: &mut Review<'_>) -> Result<(), Status> {
    let old = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
    if review.operation != Operation::Create
        || !review.is_for("persistentvolumeclaims")
        || review.object.pointer(old).is_some()
        || is_named(review, "/spec/storageClassName")
    {
        return Ok(());
    }
    let marks = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ];
    let mut classes = marked(review, "storageclasses.storage.k8s.io", &marks);
    // The newest wins, and of equally new ones the first by name.
    classes.sort_by(|a, b| {
        let age = |class: &Value| metadata::text(class, "creationTimestamp").to_owned();
        age(b).cmp(&age(a)).then_with(|| metadata::name(a).cmp(metadata::name(b)))
    });
    set(review, "storageClassName", classes.first());
    Ok(())
}

pub(super) fn of_ingress(review: &mut Review<'_>) -> Result<(), Status> {
    let old = "/metadata/annotations/kubernetes.io~1ingress.class";
    if review.operation != Operation::Create
        || !review.is_for("ingresses.networking.k8s.io")
        || review.object.pointer(old).is_some()
        || is_named(review, "/spec/ingressClassName")
    {
        return Ok(());
    }
    let marks = ["ingressclass.kubernetes.io/is-default-class"];
    let classes = marked(review, "ingressclasses.networking.k8s.io", &marks);
    if classes.len() > 1 {
        return Err(review.forbid(&format!(
            "{} default IngressClasses were found, only 1 allowed",
            classes.len()
        )));
    }
    set(review, "ingressClassName", classes.first());
    Ok(())
}

fn is_named(review: &Review<'_>, pointer: &str) -> bool {
    review.object.pointer(pointer).is_some_and(|name| !name.is_null())
}

/// The classes that carry one of the marks.
fn marked(review: &Review<'_>, resource: &str, marks: &[&str]) -> Vec<Value> {
    let classes = review.list(resource, "").into_iter();
    classes
        .filter(|class| {
            let annotations = class.pointer("/metadata/annotations");
            marks
                .iter()
                .any(|mark| annotations.and_then(|all| all.get(mark)) == Some(&json!("true")))
        })
        .collect()
}

fn set(review: &mut Review<'_>, field: &str, class: Option<&Value>) {
    if let (Some(class), true) = (class, review.object.get("spec").is_some_and(Value::is_object)) {
        review.object["spec"][field] = metadata::name(class).into();
    }
}
