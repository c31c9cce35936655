//! The request as webhooks and expressions see it: `AdmissionRequest`.

use serde_json::{Map, Value, json};

use super::{Operation, Review, Wish};
use crate::kinds::{Kind, Propagation};
use crate::registry::options::FieldValidation;
use crate::registry::{Body, rules};
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
                    Operation::Update if wish.is_patch => "PatchOptions",
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
                if let Some(grace) = wish.grace {
                    options["gracePeriodSeconds"] = grace.into();
                }
                if let Some(propagation) = wish.propagation {
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
    pub(super) fn take(&self, kind: &Kind, changed: Value) -> Result<Value, Status> {
        if self.operation == Operation::Connect {
            return Ok(changed);
        }
        let form = self.form.unwrap_or(kind);
        let body = Body::from(changed);
        let mut object = rules::shape(form, body, FieldValidation::Ignore, &mut Vec::new())?;
        rules::default(form, &mut object);
        if self.is_converted(kind) {
            object = self.writer.between(kind, self.kind, object)?;
        }
        Ok(object)
    }
}
