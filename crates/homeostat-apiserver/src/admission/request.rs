//! The request as webhooks and expressions see it: `AdmissionRequest`.

use serde_json::{Map, Value, json};

use super::{Operation, Review, Wish};
use crate::decode::{self, DecodeError};
use crate::go;
use crate::kinds::{Kind, Propagation, builtin};
use crate::registry::options::unregistered;
use crate::registry::{metadata, named, rules};
use crate::status::Status;

impl Operation {
    /// The word that rules and requests use.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl Review<'_> {
    /// The `AdmissionRequest` in the form of `kind`, without uid and objects.
    pub(super) fn request(&self, kind: &Kind) -> Value {
        // A subresource may speak another kind than its resource.
        let named = |kind: &Kind| match kind.subresource(self.subresource) {
            Some(part) => {
                json!({"group": part.group, "version": part.version, "kind": part.kind})
            }
            None => json!({"group": kind.group, "version": kind.version, "kind": kind.kind}),
        };
        let resource = |kind: &Kind| json!({"group": kind.group, "version": kind.version, "resource": kind.plural});
        let mut request = Map::new();
        let mut set = |name: &str, value: Value| {
            if value != json!("") {
                request.insert(name.to_owned(), value);
            }
        };
        set("kind", named(kind));
        set("resource", resource(kind));
        set("subResource", self.subresource.into());
        set("requestKind", named(self.kind));
        set("requestResource", resource(self.kind));
        set("requestSubResource", self.subresource.into());
        set("name", self.name.into());
        set("namespace", self.request_namespace().into());
        set("operation", self.operation.word().into());
        set("userInfo", self.wish.user());
        set("dryRun", self.wish.is_dry_run().into());
        set("options", self.options());
        Value::Object(request)
    }

    /// The namespace of the request: a namespace lies in itself.
    pub(super) fn request_namespace(&self) -> &str {
        let own = self.kind.group.is_empty() && self.kind.plural == "namespaces";
        if own { self.name } else { self.namespace }
    }

    fn options(&self) -> Value {
        if self.operation == Operation::Connect {
            return Value::Null;
        }
        let mut options = json!({"apiVersion": "meta.k8s.io/v1"});
        match self.wish {
            Wish::Write(wish) => {
                options["kind"] = match self.operation {
                    Operation::Create => "CreateOptions",
                    _ => "UpdateOptions",
                }
                .into();
                if wish.dry_run {
                    options["dryRun"] = json!(["All"]);
                }
                if wish.manager_given {
                    options["fieldManager"] = wish.manager.clone().into();
                }
                if let Some(word) = wish.validation_given {
                    options["fieldValidation"] = word.into();
                }
            }
            Wish::Delete(wish) => {
                options["kind"] = "DeleteOptions".into();
                if wish.dry_run {
                    options["dryRun"] = json!(["All"]);
                }
                for (name, given) in [("uid", &wish.uid), ("resourceVersion", &wish.revision)] {
                    if let Some(given) = given {
                        options["preconditions"][name] = given.as_str().into();
                    }
                }
                if let Some(grace) = wish.grace {
                    options["gracePeriodSeconds"] = grace.into();
                }
                if let Some(orphan) = wish.orphan {
                    options["orphanDependents"] = orphan.into();
                } else if let Some(propagation) = wish.propagation {
                    options["propagationPolicy"] = match propagation {
                        Propagation::Background => "Background",
                        Propagation::Foreground => "Foreground",
                        Propagation::Orphan => "Orphan",
                    }
                    .into();
                }
            }
        }
        options
    }

    /// The object and the one before it, in the form of `kind`; null where there is none.
    ///
    /// # Errors
    /// What a conversion webhook has against it.
    pub(super) fn shown(&self, kind: &Kind) -> Result<(Value, Value), Status> {
        let shown = |object: &Value| match self.is_converted(kind) {
            true => self.writer.between(self.kind, kind, object.clone()),
            false => Ok(object.clone()),
        };
        Ok((shown(&self.object)?, self.old.map_or(Ok(Value::Null), shown)?))
    }

    /// Whether whoever sees the object in the form of `kind` sees another version of it. What a
    /// subresource speaks is the same in all of them.
    fn is_converted(&self, kind: &Kind) -> bool {
        self.form.is_none()
            && self.operation != Operation::Connect
            && kind.api_version() != self.kind.api_version()
    }

    /// Takes what somebody who saw the object in the form of `kind` made of it, what it leaves out
    /// filled in again.
    pub(super) fn take(&self, kind: &Kind, mut changed: Value) -> Result<Value, Untaken> {
        if self.operation == Operation::Connect {
            return Ok(changed);
        }
        let form = self.form.unwrap_or(kind);
        if !changed.is_object() {
            let why = named::not_an_object(&changed);
            let why = format!("couldn't get version/kind; json parse error: {why}");
            return Err(Untaken::Unreadable(why));
        }
        named::complete_type(form, &mut changed);
        check_type(form, &changed)?;
        if form.custom.is_some() {
            drop_odd_entries(&mut changed);
        }
        decode::typed(form, &mut changed).map_err(|error| match error {
            DecodeError::Type { reason, .. } => Untaken::Unreadable(reason),
            other => Untaken::Unreadable(other.to_string()),
        })?;
        rules::default(form, &mut changed);
        if self.is_converted(kind) {
            changed = self.writer.between(kind, self.kind, changed)?;
        }
        Ok(changed)
    }
}

/// Why a changed object is not taken.
pub(super) enum Untaken {
    /// It is no object of its kind.
    Unreadable(String),
    /// Somebody else refuses it.
    Refused(Box<Status>),
}

impl From<Status> for Untaken {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(status))
    }
}

/// Labels and annotations of a custom resource that are no texts go as a whole.
fn drop_odd_entries(object: &mut Value) {
    for field in ["labels", "annotations"] {
        let entries = object.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
        if entries.is_some_and(|entries| entries.values().any(|value| !value.is_string())) {
            metadata::set(object, field, Value::Null);
        }
    }
}

/// An object may become one of another kind, which then has no way back.
fn check_type(form: &Kind, changed: &Value) -> Result<(), Untaken> {
    let text = |field: &str| changed.get(field).and_then(Value::as_str).unwrap_or("");
    let (kind, version) = (text("kind"), text("apiVersion"));
    if kind == form.kind && (form.custom.is_some() || version == form.api_version()) {
        return Ok(());
    }
    if form.custom.is_some() {
        // What calls itself something else is judged with all the rest.
        if !kind.is_empty() {
            return Ok(());
        }
        let shown = go::json(&go::internal::in_order(changed));
        return Err(Untaken::Unreadable(format!("Object 'Kind' is missing in '{shown}'")));
    }
    let other = builtin().iter().find(|other| other.kind == kind && other.api_version() == version);
    let Some(other) = other else {
        return Err(Untaken::Unreadable(unregistered(kind, version)));
    };
    let group = form.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    Err(Status::unexplained(format!(
        "converting ({}.{kind}) to ({group}.{}): unknown conversion",
        other.version, form.kind
    ))
    .into())
}
