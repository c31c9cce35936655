//! Requests below an object: scale, binding, eviction, token, finalize and other partial writes.

use http::{Method, Response};
use serde_json::Value;

use super::body::Body;
use super::verbs::Call;
use super::{answer, decode};
use crate::registry::{ScaleWrite, reviews};
use crate::status::Status;

impl Call {
    /// Answers a request for a subresource other than `status`.
    pub(crate) async fn subresource(
        self,
        method: &Method,
        name: &str,
    ) -> Result<Response<Body>, Status> {
        match (name, method) {
            ("scale", &Method::GET | &Method::HEAD) => {
                let scale = self.registry.scale(&self.target)?;
                Ok(answer::value(200, &scale, self.accepted.encoding))
            }
            ("scale", &Method::PUT | &Method::PATCH) => self.write_scale(method),
            ("binding", &Method::POST) => {
                let options = self.write_options("CreateOptions")?;
                let binding = decode::object(&self.headers, &self.body)?.value;
                let status = self.registry.bind(&self.target, &binding, &options)?;
                Ok(answer::value(201, &status, self.accepted.encoding))
            }
            ("eviction", &Method::POST) => {
                let eviction = decode::object(&self.headers, &self.body)?.value;
                let status = self.registry.evict(&self.target, &eviction)?;
                Ok(answer::value(201, &status, self.accepted.encoding))
            }
            ("token", &Method::POST) => {
                let request = decode::object(&self.headers, &self.body)?.value;
                let token = self.registry.token(&self.target, &request)?;
                Ok(answer::value(201, &token, self.accepted.encoding))
            }
            ("finalize", &Method::PUT) => {
                let options = self.write_options("UpdateOptions")?;
                let body = decode::object(&self.headers, &self.body)?;
                let written = self.registry.finalize(&self.target, &body, &options)?;
                Ok(self.written(&written))
            }
            ("approval" | "ephemeralcontainers" | "resize", &Method::GET) => self.get().await,
            ("approval", &Method::PUT | &Method::PATCH) => {
                self.write_part(method, "approval", "/status")
            }
            ("ephemeralcontainers", &Method::PUT | &Method::PATCH) => {
                self.write_part(method, "ephemeralcontainers", "/spec")
            }
            ("resize", &Method::PUT | &Method::PATCH) => self.write_part(method, "resize", "/spec"),
            _ => Err(Status::method_not_allowed()),
        }
    }

    fn write_scale(self, method: &Method) -> Result<Response<Body>, Status> {
        let options = self.write_options("UpdateOptions")?;
        let write = if *method == Method::PUT {
            ScaleWrite::Replace(decode::object(&self.headers, &self.body)?)
        } else {
            ScaleWrite::Patch(decode::patch(&self.target.kind, &self.headers, &self.body)?)
        };
        let scale = self.registry.set_scale(&self.target, &write, &options)?;
        Ok(answer::value(200, &scale, self.accepted.encoding))
    }

    /// A write that takes one top-level field of the object.
    fn write_part(
        self,
        method: &Method,
        subresource: &'static str,
        pointer: &'static str,
    ) -> Result<Response<Body>, Status> {
        let options = self.write_options("UpdateOptions")?;
        let kind = self.target.kind.clone();
        let patch = if *method == Method::PUT {
            None
        } else {
            Some(decode::patch(&kind, &self.headers, &self.body)?)
        };
        let body = if patch.is_none() {
            Some(decode::object(&self.headers, &self.body)?.value)
        } else {
            None
        };
        let written = self.registry.replace_part(&self.target, subresource, &options, |live| {
            let new = match (&patch, body) {
                (Some(patch), _) => crate::registry::patched(&kind, live, patch)?,
                (None, body) => body.unwrap_or(Value::Null),
            };
            let mut object = live.clone();
            if let (Some(part), Some(place)) = (new.pointer(pointer), object.pointer_mut(pointer)) {
                *place = part.clone();
            }
            Ok(object)
        })?;
        Ok(self.written(&written))
    }

    /// A kind that is asked, not stored.
    pub(crate) fn review(&self, question: &Value) -> Result<Response<Body>, Status> {
        let kind = &self.target.kind;
        match reviews::answer(kind, question) {
            Some(reply) => Ok(answer::value(201, &reply, self.accepted.encoding)),
            None => Err(Status::method_not_allowed()),
        }
    }
}
