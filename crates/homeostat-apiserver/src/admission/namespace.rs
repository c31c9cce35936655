//! `NamespaceLifecycle`: nothing is made in a namespace that is missing or going away.

use serde_json::json;

use super::{Operation, Review};
use crate::status::Status;

pub(super) fn exists(review: &mut Review<'_>) -> Result<(), Status> {
    let is_write = matches!(review.operation, Operation::Create | Operation::Update);
    // Whether somebody could do something is asked of namespaces that are not there, too.
    let is_review = review.is_for("localsubjectaccessreviews.authorization.k8s.io");
    if review.namespace.is_empty() || !is_write || is_review {
        return Ok(());
    }
    let namespace = review.namespace;
    match review.writer.registry.namespace(namespace) {
        Some(found) if review.operation == Operation::Create && found.is_deleting() => {
            Err(Status::namespace_terminating(review.kind, review.shown_name(), namespace))
        }
        Some(_) => Ok(()),
        None => {
            let mut status =
                Status::new(404, "NotFound", format!("namespaces {namespace:?} not found"));
            status.details = Some(Box::new(json!({"name": namespace, "kind": "namespaces"})));
            Err(status)
        }
    }
}
