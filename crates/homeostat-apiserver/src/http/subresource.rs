//! Requests below an object: scale, binding, eviction, token, finalize and other partial writes.

use std::sync::Arc;

use http::{Method, Response};
use serde_json::Value;

use super::body::Body;
use super::call::Call;
use super::{answer, decode, shown};
use crate::registry::options::WriteOptions;
use crate::registry::reviews::Asked;
use crate::registry::{self, PartWrite, Registry, ScaleWrite, rules};
use crate::server::Shared;
use crate::status::Status;
use crate::store::Stored;

impl Call {
    /// Answers a request for a subresource other than `status`.
    pub(crate) async fn subresource(
        self,
        method: &Method,
        name: &str,
    ) -> Result<Response<Body>, Status> {
        match (name, method) {
            ("scale", &Method::GET | &Method::HEAD) => {
                let object = self.registry.get(&self.target)?;
                let scale = self.scale(object).await?;
                Ok(answer::value(200, &scale, self.accepted.encoding))
            }
            ("scale", &Method::PUT | &Method::PATCH) => self.write_scale(method).await,
            ("binding", &Method::POST) => {
                let options = self.write_options("CreateOptions")?;
                let binding = decode::object(&self.headers, &self.body)?.value;
                let status = self.registry.bind(&self.target, &binding, &options)?;
                Ok(answer::value(201, &status, self.accepted.encoding))
            }
            ("eviction", &Method::POST) => {
                let eviction = decode::object(&self.headers, &self.body)?.value;
                let inquiry = Arc::default();
                let evict = || self.registry.evict(&self.target, &eviction, &inquiry);
                let (status, said) = self.settle(&inquiry, evict).await?;
                let mut response = answer::value(201, &status, self.accepted.encoding);
                answer::warn(&mut response, &said);
                Ok(response)
            }
            ("token", &Method::POST) => {
                let options = self.write_options("CreateOptions")?;
                let request = decode::object(&self.headers, &self.body)?.value;
                let token = self.registry.token(&self.target, &request, &options)?;
                Ok(answer::value(201, &token, self.accepted.encoding))
            }
            ("finalize", &Method::PUT) => {
                let options = self.write_options("UpdateOptions")?;
                let body = decode::object(&self.headers, &self.body)?;
                self.write(&options.inquiry, || {
                    self.registry.finalize(&self.target, &body, &options)
                })
                .await
            }
            ("approval" | "ephemeralcontainers" | "resize", &Method::GET) => self.get().await,
            ("approval", &Method::PUT | &Method::PATCH) => {
                self.write_part(method, "approval", |new, object| {
                    take(&new["metadata"], &mut object["metadata"], "annotations");
                    take(&new["metadata"], &mut object["metadata"], "labels");
                    take(&new["status"], &mut object["status"], "conditions");
                })
                .await
            }
            ("ephemeralcontainers", &Method::PUT | &Method::PATCH) => {
                self.write_part(method, "ephemeralcontainers", |new, object| {
                    take(&new["spec"], &mut object["spec"], "ephemeralContainers");
                })
                .await
            }
            ("resize", &Method::PUT | &Method::PATCH) => {
                self.write_part(method, "resize", take_sizes).await
            }
            _ => Err(Status::method_not_allowed()),
        }
    }

    async fn write_scale(self, method: &Method) -> Result<Response<Body>, Status> {
        let kind = if *method == Method::PUT { "UpdateOptions" } else { "PatchOptions" };
        let options = self.write_options(kind)?;
        let write = if *method == Method::PUT {
            ScaleWrite::Replace(decode::object(&self.headers, &self.body)?)
        } else {
            ScaleWrite::Patch(self.read_patch()?)
        };
        let set = || self.registry.set_scale(&self.target, &write, &options);
        let (written, said) = self.settle(&options.inquiry, set).await?;
        let scale = self.scale(written.object).await?;
        let mut response = answer::value(200, &scale, self.accepted.encoding);
        answer::warn(&mut response, &said);
        Ok(response)
    }

    /// The `Scale` of an object.
    async fn scale(&self, object: Arc<Stored>) -> Result<Value, Status> {
        let kind = &self.target.kind;
        let object = shown::object(&self.registry, kind, object).await?;
        Registry::scale(kind, &object)
    }

    /// A write that takes one part of the object.
    async fn write_part(
        self,
        method: &Method,
        subresource: &'static str,
        take: fn(&Value, &mut Value),
    ) -> Result<Response<Body>, Status> {
        let kind = if *method == Method::PUT { "UpdateOptions" } else { "PatchOptions" };
        let options = self.write_options(kind)?;
        let write = if *method == Method::PUT {
            PartWrite::Replace(decode::object(&self.headers, &self.body)?)
        } else {
            PartWrite::Patch(self.read_patch()?)
        };
        self.write(&options.inquiry, || {
            self.registry.write_part(&self.target, subresource, &write, &options, take)
        })
        .await
    }

    /// A kind that is asked, not stored.
    pub(crate) fn review(
        &self,
        shared: &Shared,
        mut body: registry::Body,
        options: &WriteOptions,
    ) -> Result<Response<Body>, Status> {
        let kind = &self.target.kind;
        let mut warnings = Vec::new();
        rules::complete_type(kind, &mut body.value);
        rules::check_type(kind, &body.value)?;
        let question = rules::shape(kind, body, options.validation, &mut warnings)
            .map_err(|status| rules::undecodable(kind, status))?;
        let identity = shared.identity();
        let asked = Asked {
            registry: &self.registry,
            identity: identity.as_deref(),
            user: &self.user,
            namespace: &self.target.namespace,
        };
        let reply = asked.answer(kind, question, options)?;
        let mut response = answer::value(201, &reply, self.accepted.encoding);
        answer::warn(&mut response, &warnings);
        Ok(response)
    }
}

/// Makes one field of `object` what it is in `new`, absent included.
fn take(new: &Value, object: &mut Value, field: &str) {
    let Some(object) = object.as_object_mut() else { return };
    match new.get(field) {
        Some(value) => drop(object.insert(field.to_owned(), value.clone())),
        None => drop(object.shift_remove(field)),
    }
}

/// Takes how much each container asks for, by its name, and nothing else.
fn take_sizes(new: &Value, object: &mut Value) {
    for list in ["containers", "initContainers"] {
        let Some(wanted) = new["spec"][list].as_array() else { continue };
        let containers = object["spec"][list].as_array_mut();
        for container in containers.into_iter().flatten() {
            if let Some(wanted) = wanted.iter().find(|other| other["name"] == container["name"]) {
                take(wanted, container, "resources");
                take(wanted, container, "resizePolicy");
            }
        }
    }
}
