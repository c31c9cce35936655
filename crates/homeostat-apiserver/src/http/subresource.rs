//! Requests below an object: scale, binding, eviction, token, finalize and other partial writes.

use std::sync::Arc;

use http::{Method, Response};
use serde_json::Value;

use super::body::Body;
use super::call::Call;
use super::{answer, decode, shown};
use crate::kinds::Kind;
use crate::registry::options::WriteOptions;
use crate::registry::reviews::Asked;
use crate::registry::{self, PartWrite, Registry, Target, named, rules};
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
            ("binding", &Method::POST) => self.post(name, Registry::bind).await,
            ("eviction", &Method::POST) => self.post(name, Registry::evict).await,
            ("token", &Method::POST) => self.post(name, Registry::token).await,
            ("finalize", &Method::PUT) => {
                let options = self.write_options("UpdateOptions")?;
                let body = decode::object_of(&self.target.kind, &self.headers, &self.body)?;
                self.write(&options.inquiry, || {
                    self.registry.finalize(&self.target, &body, &options)
                })
                .await
            }
            ("approval" | "ephemeralcontainers" | "resize", &Method::GET) => self.get().await,
            ("approval", &Method::PUT | &Method::PATCH) => {
                self.write_part(method, "approval", |new, object| {
                    object["metadata"] = new["metadata"].clone();
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

    /// An object that is posted below another and answered.
    async fn post(
        self,
        part: &str,
        act: fn(&Registry, &Target, registry::Body, &WriteOptions) -> Result<Value, Status>,
    ) -> Result<Response<Body>, Status> {
        let options = self.write_options("CreateOptions")?;
        let form = registry::posted::form(&self.target.kind, part)?;
        self.post_as(form, &options, act).await
    }

    /// The same for an object of the kind `form`.
    pub(super) async fn post_as(
        &self,
        form: &Kind,
        options: &WriteOptions,
        act: fn(&Registry, &Target, registry::Body, &WriteOptions) -> Result<Value, Status>,
    ) -> Result<Response<Body>, Status> {
        let post = || {
            let body = decode::object_of(form, &self.headers, &self.body)?;
            act(&self.registry, &self.target, body, options)
        };
        let (value, said) = self.settle(&options.inquiry, post).await?;
        let mut response = answer::value(201, &value, self.accepted.encoding);
        answer::warn(&mut response, &said);
        Ok(response)
    }

    async fn write_scale(self, method: &Method) -> Result<Response<Body>, Status> {
        let kind = if *method == Method::PUT { "UpdateOptions" } else { "PatchOptions" };
        let options = self.write_options(kind)?;
        let write = if *method == Method::PUT {
            let scale = ("autoscaling/v1", "Scale");
            PartWrite::Replace(decode::object(&self.headers, &self.body, scale)?)
        } else {
            PartWrite::Patch(self.read_patch(options.validation)?)
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
            let (version, kind) = (self.target.kind.api_version(), &self.target.kind.kind);
            PartWrite::Replace(decode::object(&self.headers, &self.body, (&version, kind))?)
        } else {
            PartWrite::Patch(self.read_patch(options.validation)?)
        };
        self.write(&options.inquiry, || {
            self.registry.write_part(&self.target, subresource, &write, &options, take)
        })
        .await
    }

    /// A kind that is asked, not stored.
    pub(crate) async fn review(
        &self,
        shared: &Shared,
        options: &WriteOptions,
    ) -> Result<Response<Body>, Status> {
        let kind = &self.target.kind;
        let identity = shared.identity();
        let asked = Asked {
            registry: &self.registry,
            identity: identity.as_deref(),
            user: &self.user,
            target: &self.target,
        };
        let answer = || {
            let mut body = decode::object_of(kind, &self.headers, &self.body)?;
            let mut warnings = Vec::new();
            named::complete_type(kind, &mut body.value);
            named::check_type(kind, &body.value)?;
            let question = rules::shape(kind, body, options.validation, &mut warnings)
                .map_err(|status| rules::undecodable(kind, &kind.kind, status))?;
            warnings.into_iter().for_each(|warning| options.inquiry.warn(warning));
            asked.answer(question, options)
        };
        let (reply, said) = self.settle(&options.inquiry, answer).await?;
        let mut response = answer::value(201, &reply, self.accepted.encoding);
        answer::warn(&mut response, &said);
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

/// Takes how much the Pod and each container ask for, and nothing else. Containers that are not the
/// same ones are taken as they are: validation says why they cannot be.
fn take_sizes(new: &Value, object: &mut Value) {
    let lists = ["containers", "initContainers"];
    let count = |object: &Value, list: &str| object["spec"][list].as_array().map_or(0, Vec::len);
    if lists.iter().any(|list| count(new, list) != count(object, list)) {
        *object = new.clone();
        return;
    }
    take(&new["spec"], &mut object["spec"], "resources");
    for list in lists {
        let containers = object["spec"].get_mut(list).and_then(Value::as_array_mut);
        let (Some(wanted), Some(containers)) = (new["spec"][list].as_array(), containers) else {
            continue;
        };
        if wanted.iter().zip(containers.iter()).any(|(new, old)| new["name"] != old["name"]) {
            containers.clone_from(wanted);
            continue;
        }
        for (wanted, container) in wanted.iter().zip(containers) {
            take(wanted, container, "resources");
            take(wanted, container, "resizePolicy");
        }
    }
}
