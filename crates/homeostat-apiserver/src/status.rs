//! The answers that are not objects: `Status`, as clients branch on it.
//!
//! Everything the API refuses becomes one of these; the words follow kube-apiserver's because
//! people and programs match on them. It knows nothing of HTTP besides the code it carries.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::field::FieldError;
use crate::kinds::Kind;

/// A refusal (or a success without an object), ready to be sent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// The HTTP code.
    pub code: u16,
    /// The word clients branch on: `NotFound`, `Conflict`, ...; empty for a success.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// `details`, where there are any.
    pub details: Option<Box<Value>>,
    /// `metadata.continue`, only for an expired list that may go on inconsistently.
    pub continue_token: Option<String>,
    /// The whole object, where somebody else made it (a webhook).
    pub verbatim: Option<Box<Value>>,
    /// What the client should be told besides.
    pub warnings: Vec<String>,
}

impl Status {
    /// A refusal with these words.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
            verbatim: None,
            warnings: Vec::new(),
        }
    }

    /// The same refusal, with these warnings.
    #[must_use]
    pub fn warned(mut self, mut warnings: Vec<String>) -> Self {
        warnings.append(&mut self.warnings);
        self.warnings = warnings;
        self
    }

    fn about(mut self, kind: &Kind, name: &str) -> Self {
        let mut details = Map::new();
        if !name.is_empty() {
            details.insert("name".into(), name.into());
        }
        if !kind.group.is_empty() {
            details.insert("group".into(), kind.group.clone().into());
        }
        details.insert("kind".into(), kind.plural.clone().into());
        self.details = Some(Box::new(Value::Object(details)));
        self
    }

    pub(crate) fn with_cause(mut self, reason: &str, message: &str, field: Option<&str>) -> Self {
        let details = self.details.get_or_insert_with(|| Box::new(json!({})));
        let mut cause = json!({"reason": reason});
        if !message.is_empty() {
            cause["message"] = message.into();
        }
        if let Some(field) = field {
            cause["field"] = field.into();
        }
        match details.get_mut("causes").and_then(Value::as_array_mut) {
            Some(causes) => causes.push(cause),
            None => details["causes"] = json!([cause]),
        }
        self
    }

    /// 404: no object of that name.
    #[must_use]
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", kind.resource()))
            .about(kind, name)
    }

    /// 404: nothing is served at that path.
    #[must_use]
    pub fn no_such_resource() -> Self {
        let mut status =
            Self::new(404, "NotFound", "the server could not find the requested resource");
        status.details = Some(Box::new(json!({})));
        status
    }

    /// 409: the name is taken.
    #[must_use]
    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", kind.resource()))
            .about(kind, name)
    }

    /// 409: somebody else wrote first, or a precondition does not hold.
    #[must_use]
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.resource());
        Self::new(409, "Conflict", message).about(kind, name)
    }

    /// 409 of a delete, which names the kind where others name the resource.
    #[must_use]
    pub fn conflict_of_kind(kind: &Kind, name: &str, why: &str) -> Self {
        let mut status = Self::conflict(kind, name, why);
        let dot = if kind.group.is_empty() { "" } else { "." };
        let qualified = format!("{}{dot}{}", kind.kind, kind.group);
        status.message = format!("Operation cannot be fulfilled on {qualified} {name:?}: {why}");
        if let Some(details) = &mut status.details {
            details["kind"] = kind.kind.clone().into();
        }
        status
    }

    /// 409: the object was modified since it was read.
    #[must_use]
    pub fn modified(kind: &Kind, name: &str) -> Self {
        Self::conflict(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 422: the object breaks these rules.
    #[must_use]
    pub fn invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> Self {
        // Events are judged as those of the core group, whichever they are written in.
        let group = if kind.group == "events.k8s.io" { "" } else { &kind.group };
        Self::invalid_kind(group, &kind.kind, name, errors)
    }

    /// 422 for a kind that has no row, such as `ListOptions.meta.k8s.io`.
    #[must_use]
    pub fn invalid_kind(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut seen = BTreeSet::new();
        let all = errors.iter().map(ToString::to_string);
        let all: Vec<String> = all.filter(|words| seen.insert(words.clone())).collect();
        let words = match &all[..] {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut details = Map::new();
        if !name.is_empty() {
            details.insert("name".into(), name.into());
        }
        if !group.is_empty() {
            details.insert("group".into(), group.into());
        }
        if !kind.is_empty() {
            details.insert("kind".into(), kind.into());
        }
        let causes: Vec<Value> = errors
            .iter()
            .map(|error| {
                json!({
                    "reason": error.reason.cause(),
                    "message": error.message(),
                    "field": error.path,
                })
            })
            .collect();
        details.insert("causes".into(), causes.into());
        let mut status =
            Self::new(422, "Invalid", format!("{qualified} {name:?} is invalid: {words}"));
        status.details = Some(Box::new(Value::Object(details)));
        status
    }

    /// 409 of a server-side apply: other managers own these fields with other values.
    #[must_use]
    pub fn apply_conflict(message: &str, causes: &[(String, String)]) -> Self {
        let mut status = Self::new(409, "Conflict", message);
        status.details = Some(Box::new(json!({})));
        for (field, words) in causes {
            status = status.with_cause("FieldManagerConflict", words, Some(field));
        }
        status
    }

    /// 403: admission says no.
    #[must_use]
    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let about = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        let message = format!("{}{about} is forbidden: {why}", kind.resource());
        Self::new(403, "Forbidden", message).about(kind, name)
    }

    /// 403: the namespace is going away.
    #[must_use]
    pub fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        Self::forbidden(kind, name, &why).with_cause(
            "NamespaceTerminating",
            &format!("namespace {namespace} is being terminated"),
            Some("metadata.namespace"),
        )
    }

    /// 400: the request itself is wrong.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 405: the resource does not do that.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        let mut status = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        status.details = Some(Box::new(json!({})));
        status
    }

    /// 405: the objects of the kind, or that part of them, do not know the verb.
    #[must_use]
    pub fn not_supported(kind: &Kind, verb: &str) -> Self {
        let words = format!("{verb} is not supported on resources of kind {:?}", kind.resource());
        Self::new(405, "MethodNotAllowed", words).about(kind, "")
    }

    /// 406: none of the accepted media types can be produced.
    #[must_use]
    pub fn not_acceptable() -> Self {
        Self::new(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf",
        )
    }

    /// 500 without a reason: what the API answers for refusals that nobody gave one.
    pub fn unexplained(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 415: the body is of a type that is not read here.
    #[must_use]
    pub fn unsupported_media_type(accepted: &str) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {accepted}"
            ),
        )
    }

    /// 413: the body, or the patch in it, is too large.
    pub fn too_large(why: impl std::fmt::Display) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"))
    }

    /// 401: no token, or a wrong one.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 410: that revision is no longer kept.
    #[must_use]
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 504: that revision is not reached yet.
    #[must_use]
    pub fn revision_too_large(asked: u64, current: u64) -> Self {
        let mut status = Self::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {asked}, current: {current}"),
        );
        status.details = Some(Box::new(json!({"retryAfterSeconds": 1})));
        status.with_cause("ResourceVersionTooLarge", "Too large resource version", None)
    }

    /// 429: the objects cannot be shown yet; asking again may help.
    pub fn initializing(why: &str) -> Self {
        let words = format!("storage is (re)initializing: {why}");
        let mut status = Self::new(429, "TooManyRequests", words);
        status.details = Some(Box::new(json!({"retryAfterSeconds": 1})));
        status
    }

    /// 500: this server is at fault.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// 503: the part that would answer is not there.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// 200: done, and there is no object to show.
    #[must_use]
    pub fn success(kind: &Kind, name: &str, uid: &str) -> Self {
        let mut status = Self::new(200, "", "").about(kind, name);
        if let Some(details) = &mut status.details
            && !uid.is_empty()
        {
            details["uid"] = uid.into();
        }
        status
    }

    /// The `Status` object.
    #[must_use]
    pub fn to_value(&self) -> Value {
        if let Some(object) = &self.verbatim {
            return object.as_ref().clone();
        }
        let success = self.code < 400;
        let mut object = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}});
        if let Some(token) = &self.continue_token {
            object["metadata"]["continue"] = token.clone().into();
        }
        object["status"] = if success { "Success" } else { "Failure" }.into();
        if !self.message.is_empty() {
            object["message"] = self.message.clone().into();
        }
        if !self.reason.is_empty() {
            object["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            object["details"] = details.as_ref().clone();
        }
        if !success {
            object["code"] = self.code.into();
        }
        object
    }
}
