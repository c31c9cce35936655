//! CustomResourceDefinitions: served as soon as they are stored, and gone only after their objects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Hooks, NONE};
use crate::bootstrap::follow_definitions;
use crate::custom;
use crate::kinds::Kind;
use crate::registry::options::DeleteOptions;
use crate::registry::update::Area;
use crate::registry::{Target, Writer, metadata, rules, seconds};
use crate::status::Status;
use crate::store::{Expect, Key, Range, Stored};

const RESOURCE: &str = "customresourcedefinitions.apiextensions.k8s.io";
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) const HOOKS: Hooks = Hooks {
    compared: Some(custom::as_compared),
    create: |_, _, object| {
        custom::defaults(object);
        metadata::set_top(object, "status", Some(custom::new_status(object)));
        Ok(())
    },
    update: |_, _, _, object| {
        custom::defaults(object);
        custom::note_storage(object);
        Ok(())
    },
    // Empty lists in schemas are judged like any others, and then go.
    kept: custom::as_kept,
    delete: |writer, _, object| {
        let mut finalizers: Vec<String> =
            metadata::finalizers(object).into_iter().map(str::to_owned).collect();
        if !metadata::is_deleting(object) && !finalizers.iter().any(|name| name == CLEANUP) {
            finalizers.push(CLEANUP.to_owned());
            metadata::set_finalizers(object, &finalizers);
            let condition = json!({
                "type": "Terminating",
                "status": "True",
                "reason": "InstanceDeletionPending",
                "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
                "lastTransitionTime": seconds(writer.registry.env.now()),
            });
            if let Some(conditions) =
                object.pointer_mut("/status/conditions").and_then(Value::as_array_mut)
            {
                conditions.push(condition);
            }
        }
        Ok(())
    },
    committed: Some(|writer, kind, old, object| {
        let object = &establish(writer, kind, old, object);
        serve(writer, object);
        if writer.registry.definition_names.note(object) {
            look_again(writer, kind, group(object));
        }
        if metadata::is_deleting(object) {
            delete_instances(writer, object);
            finish(writer, kind, metadata::name(object));
        }
    }),
    removed: |writer, kind, object| {
        writer.registry.serve(metadata::name(object), Vec::new());
        follow_definitions(writer, group(object));
        writer.registry.definition_names.forget(metadata::name(object));
        look_again(writer, kind, group(object));
    },
    ..NONE
};

/// What custom resources owe their definition.
pub(super) const INSTANCE_HOOKS: Hooks = Hooks {
    create: |writer, kind, object| {
        let definition = kind.custom.as_ref().map_or("", |custom| custom.definition.as_str());
        let found = writer.registry.peek(RESOURCE, "", definition);
        if found.is_some_and(|found| metadata::is_deleting(&found)) {
            let words = "create not allowed while custom resource definition is terminating";
            let mut status = Status::method_not_allowed();
            status.message = format!("{} {:?}: {words}", kind.resource(), metadata::name(object));
            return Err(status);
        }
        Ok(())
    },
    removed: |writer, kind, _| {
        let catalogue = writer.registry.catalogue();
        let definitions = catalogue.find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        if let (Some(definitions), Some(custom)) = (definitions, &kind.custom) {
            finish(writer, definitions, &custom.definition);
        }
    },
    ..NONE
};

/// Sets the conditions of a definition that was written, with a commit of their own, and returns it
/// as it is then. What was looked at once stays as it is until somebody writes again.
fn establish(writer: &Writer<'_>, kind: &Kind, old: Option<&Value>, object: &Value) -> Value {
    let mut object = object.clone();
    if old.is_none() && custom::was_looked_at(&object) {
        return object;
    }
    let key = Key::new("", metadata::name(&object));
    let used = writer.registry.definition_names.in_use_beside(group(&object), &key.name);
    let status = custom::conditions(&object, &used, writer.registry.env.now());
    if object.get("status") == Some(&status) {
        return object;
    }
    let before = object.clone();
    metadata::set_top(&mut object, "status", Some(status));
    let tracked =
        rules::track(writer, kind, Some(&before), &mut object, "kube-apiserver", Area::Status);
    if let Err(status) = tracked {
        tracing::error!(%status, name = key.name, "nobody owns the conditions of a definition");
    }
    let Some(stored) = writer.registry.store.get(RESOURCE, &key) else { return object };
    let expect = Expect::Revision(stored.revision);
    if let Err(status) = writer.commit(kind, &key, expect, object.clone(), false) {
        tracing::error!(%status, name = key.name, "the conditions of a definition were not kept");
    }
    object
}

/// Looks again at the definitions of a group that wait for names, until no more of them get any.
fn look_again(writer: &Writer<'_>, kind: &Kind, group: &str) {
    let names = &writer.registry.definition_names;
    let mut freed = true;
    while std::mem::take(&mut freed) {
        for name in names.waiting(group) {
            let Some(definition) = writer.registry.peek(RESOURCE, "", &name) else { continue };
            let examined = establish(writer, kind, Some(&definition), &definition);
            if examined != definition {
                serve(writer, &examined);
                freed |= names.note(&examined);
            }
        }
    }
}

/// Serves the definition's kinds, if its names were accepted.
fn serve(writer: &Writer<'_>, object: &Value) {
    let rows = if custom::is_established(object) { custom::rows(object) } else { Vec::new() };
    writer.registry.serve(metadata::name(object), rows);
    follow_definitions(writer, group(object));
}

fn group(object: &Value) -> &str {
    object.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default()
}

fn delete_instances(writer: &Writer<'_>, definition: &Value) {
    let name = metadata::name(definition);
    let catalogue = writer.registry.catalogue();
    let Some(kind) = catalogue
        .all()
        .iter()
        .find(|kind| kind.custom.as_ref().is_some_and(|custom| custom.definition == name))
    else {
        return;
    };
    let instances = writer.registry.store.list(name, &Range::default());
    for instance in instances.map(|page| page.items).unwrap_or_default() {
        let target = Target {
            kind: as_stored(kind, &instance),
            namespace: instance.key.namespace.clone(),
            name: instance.key.name.clone(),
        };
        let value = instance.value();
        let options = DeleteOptions::default();
        if let Err(status) = writer.delete_admitted(&target, &options, instance, &value) {
            tracing::warn!(%status, definition = name, "an object of a deleted definition stays");
        }
    }
}

/// The kind in the form in which the object is stored: nobody has to be asked to delete it.
fn as_stored(kind: &Kind, instance: &Stored) -> Arc<Kind> {
    let mut kind = kind.clone();
    if let Some(custom) = kind.custom.as_mut().map(Arc::make_mut) {
        custom.versions = Arc::new(custom.versions.storing(&instance.api_version));
        kind.version.clone_from(&custom.versions.storage);
    }
    Arc::new(kind)
}

/// Lets a deleted definition go once none of its objects is left.
fn finish(writer: &Writer<'_>, kind: &Kind, name: &str) {
    let store = &writer.registry.store;
    let key = Key::new("", name);
    let Some(stored) = store.get(RESOURCE, &key) else { return };
    let mut object = stored.value();
    let empty = store.list(name, &Range::default()).is_ok_and(|page| page.items.is_empty());
    if !metadata::is_deleting(&object) || !empty {
        return;
    }
    let left: Vec<String> = metadata::finalizers(&object)
        .into_iter()
        .filter(|finalizer| *finalizer != CLEANUP)
        .map(str::to_owned)
        .collect();
    if left.len() == metadata::finalizers(&object).len() {
        return;
    }
    metadata::set_finalizers(&mut object, &left);
    let done = if writer.is_finished(kind, &object) {
        writer.remove(kind, &stored, &object).map(drop)
    } else {
        writer.commit(kind, &key, Expect::Revision(stored.revision), object, false).map(drop)
    };
    if let Err(status) = done {
        tracing::error!(%status, name, "a deleted definition could not be finished");
    }
}
