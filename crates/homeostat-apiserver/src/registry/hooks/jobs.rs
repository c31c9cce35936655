//! Jobs: unless a user insists, their Pods are found by a selector nobody else can have.

use serde_json::{Value, json};

use super::{Hooks, NONE};
use crate::registry::metadata;

const UID: &str = "batch.kubernetes.io/controller-uid";
const NAME: &str = "batch.kubernetes.io/job-name";

pub(super) const HOOKS: Hooks = Hooks {
    create: |_, _, job| {
        let manual = job.pointer("/spec/manualSelector") == Some(&Value::Bool(true));
        if manual || !job.get("spec").is_some_and(Value::is_object) {
            return Ok(());
        }
        // A Job that says nothing about its own labels has those of its Pods.
        let like_template = job.pointer("/metadata/labels").is_none()
            || job.pointer("/metadata/labels") == job.pointer("/spec/template/metadata/labels");
        let (uid, name) = (metadata::uid(job).to_owned(), metadata::name(job).to_owned());
        let template = &mut job["spec"]["template"];
        // The two without a prefix are older; Pods carry both.
        for (label, value) in
            [(UID, &uid), (NAME, &name), ("controller-uid", &uid), ("job-name", &name)]
        {
            // What a user wrote there is judged later.
            if !metadata::labels(template).contains_key(label) {
                metadata::set_label(template, label, value);
            }
        }
        let labels = template.pointer("/metadata/labels").cloned();
        if like_template {
            metadata::set(job, "labels", labels.unwrap_or_default());
        }
        let mut selector = job["spec"].get("selector").cloned().unwrap_or_else(|| json!({}));
        if selector["matchLabels"].get(UID).is_none() {
            selector["matchLabels"][UID] = uid.into();
        }
        job["spec"]["selector"] = selector;
        Ok(())
    },
    ..NONE
};
