//! `PersistentVolumeClaimResize`: a claim grows only where its class allows it.

use homeostat_quota::{Amounts, Quantity};
use serde_json::{Value, json};

use super::{Operation, Review};
use crate::status::Status;

pub(super) fn check(review: &Review<'_>) -> Result<(), Status> {
    let (Operation::Update, Some(old)) = (review.operation, review.old) else { return Ok(()) };
    if !review.is_for("persistentvolumeclaims") {
        return Ok(());
    }
    let size = |claim: &Value| {
        let asked = Amounts::read(claim.pointer("/spec/resources/requests"));
        asked.get("storage").unwrap_or(Quantity::ZERO)
    };
    if size(&review.object) <= size(old) {
        return Ok(());
    }
    if old.pointer("/status/phase") != Some(&json!("Bound")) {
        return Err(review.forbid("Only bound persistent volume claims can be expanded"));
    }
    let class = |claim: &Value| {
        let annotated = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
        let named = claim.pointer(annotated).or_else(|| claim.pointer("/spec/storageClassName"));
        named.and_then(Value::as_str).unwrap_or("").to_owned()
    };
    let name = class(&review.object);
    let grows = !name.is_empty()
        && name == class(old)
        && review
            .writer
            .registry
            .peek("storageclasses.storage.k8s.io", "", &name)
            .is_some_and(|class| class["allowVolumeExpansion"] == json!(true));
    if grows {
        return Ok(());
    }
    Err(review.forbid(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the \
         pvc must support resize",
    ))
}
