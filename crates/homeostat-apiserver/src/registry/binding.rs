//! `POST pods/binding`, and `POST bindings` as it was before: puts a Pod on a node.

use serde_json::{Value, json};

use super::create::Tracking;
use super::options::WriteOptions;
use super::update::{Area, Update};
use super::{Body, Registry, Target, Writer, metadata, posted, seconds};
use crate::admission::{self, Review};
use crate::status::Status;

impl Registry {
    /// Binds the Pod to the node that `body` names.
    ///
    /// # Errors
    /// 409 when the Pod is on a node already, waits for a gate or is being deleted.
    pub fn bind(
        &self,
        target: &Target,
        body: Body,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        let writer = self.writer_at(&options.inquiry);
        let review = writer.posted(target, "binding", body, options)?;
        posted::check_name(target, &review)?;
        put_on_node(&writer, target, review, options)
    }

    /// Binds the Pod that the posted object names.
    ///
    /// # Errors
    /// As `bind`, and 400 when it names none.
    pub fn bind_named(
        &self,
        target: &Target,
        body: Body,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        let writer = self.writer_at(&options.inquiry);
        let target = &Target { name: metadata::name(&body.value).to_owned(), ..target.clone() };
        let review = writer.posted_as(target, "", &target.kind, body, options)?;
        let name = metadata::name(&review.object).to_owned();
        if name.is_empty() {
            return Err(Status::bad_request("Name parameter required."));
        }
        let catalogue = self.catalogue();
        let pods = catalogue.find("", "v1", "pods").ok_or_else(Status::no_such_resource)?;
        let pod = Target { kind: pods.clone(), namespace: target.namespace.clone(), name };
        put_on_node(&writer, &pod, review, options)
    }
}

fn put_on_node(
    writer: &Writer<'_>,
    target: &Target,
    review: Review<'_>,
    options: &WriteOptions,
) -> Result<Value, Status> {
    check_target(&review.object)?;
    admission::validate(&review)?;
    let binding = review.object;
    let now = seconds(writer.time);
    let update = Update {
        area: Area::Part("binding"),
        tracking: Tracking::Done,
        unconditional: true,
        take: None,
    };
    let meant = metadata::uid(&binding);
    writer.update(target, update, options, |live| {
        if !meant.is_empty() {
            super::update::check_uid(target, metadata::uid(live), meant, options.dry_run)?;
        }
        check_pod(target, live)?;
        Ok(bound(live, &binding, &now))
    })?;
    Ok(posted::done())
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn check_target(binding: &Value) -> Result<(), Status> {
    let mut wrong = Vec::new();
    let kind = text(binding, "/target/kind");
    if !matches!(kind, "" | "Node") {
        let words = "supported values: \"Node\", \"<empty>\"";
        wrong.push(format!("target.kind: Unsupported value: {kind:?}: {words}"));
    }
    if text(binding, "/target/name").is_empty() {
        wrong.push("target.name: Required value".to_owned());
    }
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::unexplained(one.clone())),
        all => Err(Status::unexplained(format!("[{}]", all.join(", ")))),
    }
}

fn check_pod(target: &Target, pod: &Value) -> Result<(), Status> {
    let name = &target.name;
    let node = text(pod, "/spec/nodeName");
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    if metadata::is_deleting(pod) {
        Err(conflict(target, &format!("pod {name} is being deleted, cannot be assigned to a host")))
    } else if !node.is_empty() {
        Err(conflict(target, &format!("pod {name} is already assigned to node {node:?}")))
    } else if gates.is_some_and(|gates| !gates.is_empty()) {
        Err(conflict(target, &format!("pod {name} has non-empty .spec.schedulingGates")))
    } else {
        Ok(())
    }
}

/// 409 that names the subresource.
fn conflict(target: &Target, why: &str) -> Status {
    let mut status = Status::conflict(&target.kind, &target.name, why);
    status.message =
        format!("Operation cannot be fulfilled on pods/binding {:?}: {why}", target.name);
    if let Some(details) = &mut status.details {
        details["kind"] = "pods/binding".into();
    }
    status
}

/// The Pod on its node, with what the binding brings along.
fn bound(live: &Value, binding: &Value, now: &str) -> Value {
    let mut pod = live.clone();
    pod["spec"]["nodeName"] = text(binding, "/target/name").into();
    if let Some(status) = pod["status"].as_object_mut() {
        status.shift_remove("nominatedNodeName");
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Value::Array(conditions) = conditions {
            conditions.retain(|condition| condition["type"] != "PodScheduled");
            conditions.push(json!({
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": null,
                "lastTransitionTime": now,
            }));
        }
    }
    for part in ["annotations", "labels"] {
        let brought = binding["metadata"].get(part).and_then(Value::as_object);
        for (name, value) in brought.into_iter().flatten() {
            pod["metadata"][part][name] = value.as_str().unwrap_or("").into();
        }
    }
    pod
}
