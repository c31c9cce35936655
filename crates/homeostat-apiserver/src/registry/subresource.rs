//! Subresources that are verbs rather than views: binding, eviction, finalize and the like.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::Tracking;
use super::delete::Deleted;
use super::options::{DeleteOptions, FieldValidation, WriteOptions};
use super::update::{Area, Update};
use super::{Body, Patch, Registry, Target, Written, metadata, rules, seconds};
use crate::admission::Inquiry;
use crate::status::Status;

/// A write through a subresource that shows the whole object.
#[derive(Debug)]
pub(crate) enum PartWrite {
    Replace(Body),
    Patch(Patch),
}

/// 409 that names the subresource.
fn unbindable(target: &Target, why: &str) -> Status {
    let mut status = Status::conflict(&target.kind, &target.name, why);
    status.message =
        format!("Operation cannot be fulfilled on pods/binding {:?}: {why}", target.name);
    if let Some(details) = &mut status.details {
        details["kind"] = "pods/binding".into();
    }
    status
}

impl Registry {
    /// `POST pods/binding`: puts a Pod on a node.
    ///
    /// # Errors
    /// 409 when the Pod is on a node already or is being deleted.
    pub fn bind(
        &self,
        target: &Target,
        binding: &Value,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        let node = binding.pointer("/target/name").and_then(Value::as_str).unwrap_or("");
        if node.is_empty() {
            return Err(Status::bad_request("target.name is required"));
        }
        let now = self.env.now();
        let update =
            Update { area: Area::Part("binding"), tracking: Tracking::Done, unconditional: true };
        self.writer_at(&options.inquiry).update(target, update, options, |live| {
            let bound = live.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or("");
            if metadata::is_deleting(live) {
                let why =
                    format!("pod {} is being deleted, cannot be assigned to a host", target.name);
                return Err(unbindable(target, &why));
            }
            if !bound.is_empty() {
                let why = format!("pod {} is already assigned to node {bound:?}", target.name);
                return Err(unbindable(target, &why));
            }
            let mut pod = live.clone();
            pod["spec"]["nodeName"] = node.into();
            let conditions = pod["status"]
                .as_object_mut()
                .map(|status| status.entry("conditions").or_insert_with(|| json!([])));
            if let Some(Value::Array(conditions)) = conditions {
                conditions.retain(|condition| condition["type"] != "PodScheduled");
                conditions.push(json!({
                    "type": "PodScheduled",
                    "status": "True",
                    "lastProbeTime": null,
                    "lastTransitionTime": seconds(now),
                }));
            }
            let annotations = binding.pointer("/metadata/annotations").and_then(Value::as_object);
            for (name, value) in annotations.into_iter().flatten() {
                pod["metadata"]["annotations"][name] = value.as_str().unwrap_or("").into();
            }
            Ok(pod)
        })?;
        let mut status = Status::new(201, "", "").to_value();
        status["code"] = 201.into();
        Ok(status)
    }

    /// `POST pods/eviction`: deletes a Pod unless a disruption budget forbids it.
    ///
    /// # Errors
    /// 429 when the budget is used up.
    pub fn evict(
        &self,
        target: &Target,
        eviction: &Value,
        inquiry: &Arc<Inquiry>,
    ) -> Result<Value, Status> {
        let pod = self.get(target)?.value();
        let budgets =
            super::Range { namespace: Some(target.namespace.clone()), ..Default::default() };
        let budgets = self.store.list("poddisruptionbudgets.policy", &budgets);
        for budget in budgets.map(|page| page.items).unwrap_or_default() {
            let budget = budget.value();
            let selector = budget.pointer("/spec/selector").unwrap_or(&Value::Null);
            let allowed = budget.pointer("/status/disruptionsAllowed").and_then(Value::as_i64);
            if selects(selector, &pod) && allowed.unwrap_or(0) <= 0 {
                let mut status = Status::new(
                    429,
                    "TooManyRequests",
                    "Cannot evict pod as it would violate the pod's disruption budget.",
                );
                status.details = Some(Box::new(json!({"causes": [{
                    "reason": "DisruptionBudget",
                    "message": format!("The disruption budget {} needs more healthy pods", metadata::name(&budget)),
                }]})));
                return Err(status);
            }
        }
        let options =
            DeleteOptions::parse(&super::options::Query::new(), eviction.get("deleteOptions"))?;
        let options = DeleteOptions { inquiry: Arc::clone(inquiry), ..options };
        match self.delete(target, &options)? {
            Deleted::Gone(_) | Deleted::Pending(_) => {
                let mut status = Status::new(201, "", "").to_value();
                status["code"] = 201.into();
                Ok(status)
            }
        }
    }

    /// `PUT namespaces/finalize`: takes `spec.finalizers`, and nothing else.
    ///
    /// # Errors
    /// As any update.
    pub fn finalize(
        &self,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let new =
            rules::shape(&target.kind, body.clone(), FieldValidation::Ignore, &mut Vec::new())?;
        self.replace_part(target, "finalize", options, |live| {
            let mut object = live.clone();
            metadata::copy(&mut object, &new, "resourceVersion");
            let finalizers = new.pointer("/spec/finalizers").cloned();
            let spec = match finalizers {
                Some(Value::Array(list)) if !list.is_empty() => json!({"finalizers": list}),
                _ => json!({}),
            };
            metadata::set_top(&mut object, "spec", Some(spec));
            Ok(object)
        })
    }

    /// A write through a subresource that shows the whole object and takes one part of it: the new
    /// form is read as strictly as any object, and `take` copies what may change into the live one.
    pub(crate) fn write_part(
        &self,
        target: &Target,
        subresource: &'static str,
        write: &PartWrite,
        options: &WriteOptions,
        take: fn(&Value, &mut Value),
    ) -> Result<Written, Status> {
        let kind = &target.kind;
        self.replace_part(target, subresource, options, |live| {
            let body = match write {
                PartWrite::Replace(body) => body.clone(),
                PartWrite::Patch(patch) => {
                    Body { value: rules::patched(kind, live, patch)?, duplicates: Vec::new() }
                }
            };
            rules::check_type(kind, &body.value)?;
            let new = rules::shape(kind, body, options.validation, &mut Vec::new())?;
            let mut object = live.clone();
            metadata::copy(&mut object, &new, "resourceVersion");
            take(&new, &mut object);
            Ok(object)
        })
    }

    /// A write of the part of the object that `subresource` stands for.
    fn replace_part(
        &self,
        target: &Target,
        subresource: &'static str,
        options: &WriteOptions,
        change: impl FnOnce(&Value) -> Result<Value, Status>,
    ) -> Result<Written, Status> {
        let area = Area::Part(subresource);
        let update = Update { area, tracking: Tracking::Update, unconditional: true };
        self.writer_at(&options.inquiry).update(target, update, options, change)
    }
}

/// Whether a `LabelSelector` selects the object; an empty one selects everything.
fn selects(selector: &Value, object: &Value) -> bool {
    let labels = metadata::labels(object);
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key.as_str()).copied() == value.as_str())
}
