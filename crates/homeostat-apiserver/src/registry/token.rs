//! `POST serviceaccounts/token`: a token for an account, perhaps bound to an object of its own.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::options::WriteOptions;
use super::{Registry, Target, metadata, seconds};
use crate::auth::{Bound, Claims, ISSUER, Reference};
use crate::field::{FieldError, Reason};
use crate::status::Status;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
/// A token that does not say how long it lasts lasts an hour.
const DEFAULT_SECONDS: i64 = 3600;
const SHORTEST_SECONDS: i64 = 600;
const LONGEST_SECONDS: i64 = 1 << 32;
/// What Pods ask for. They renew it in time; a client that does not is given a year, as programs
/// that never read their file again are many.
const POD_SECONDS: i64 = 3607;
const POD_SECONDS_EXTENDED: i64 = 365 * 24 * 3600;

impl Registry {
    /// Answers a `TokenRequest`.
    ///
    /// # Errors
    /// 404 when there is no such account or bound object, 409 when one has another uid, 422 for a
    /// time that is too short or too long.
    pub fn token(
        &self,
        target: &Target,
        request: &Value,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        check_place(target, request)?;
        let account = self.get(target)?.value();
        let uid = metadata::uid(&account);
        let claimed = metadata::uid(request);
        if !claimed.is_empty() && claimed != uid {
            let why = format!(
                "the UID in the token request ({claimed}) does not match the UID of the service account ({uid})"
            );
            return Err(conflict(&format!("{KIND}.{GROUP}"), GROUP, KIND, &target.name, &why));
        }
        let asked = request.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
        let lasts = asked.unwrap_or(DEFAULT_SECONDS);
        check_time(lasts)?;
        let mut audiences: Vec<String> = texts(request.pointer("/spec/audiences"));
        if audiences.is_empty() {
            audiences.push(ISSUER.to_owned());
        }
        let reference = request.pointer("/spec/boundObjectRef").filter(|bound| !bound.is_null());
        let mut bound = match reference {
            Some(reference) => self.bind_token(target, reference)?,
            None => Bound::default(),
        };
        bound.namespace.clone_from(&target.namespace);
        bound.serviceaccount = Reference::to(&account);
        let now = self.env.now();
        let mut valid = lasts;
        if bound.pod.is_some() && lasts == POD_SECONDS && audiences == [ISSUER] {
            bound.warnafter = Some(now.as_second() + lasts);
            valid = POD_SECONDS_EXTENDED;
        }
        let claims = Claims {
            aud: audiences.clone(),
            exp: now.as_second() + valid,
            iat: now.as_second(),
            iss: ISSUER.to_owned(),
            jti: self.env.uid(),
            bound,
            nbf: now.as_second(),
            sub: format!("system:serviceaccount:{}:{}", target.namespace, target.name),
        };
        let token = if options.dry_run {
            String::new()
        } else {
            self.tokens.issue(&claims).map_err(|error| Status::internal(error.to_string()))?
        };
        let until = now.saturating_add(SignedDuration::from_secs(lasts)).unwrap_or(now);
        Ok(json!({
            "kind": KIND,
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": target.name,
                "namespace": target.namespace,
                "uid": uid,
                "creationTimestamp": seconds(now),
                "managedFields": ownership(request, &options.manager, &seconds(now)),
            },
            "spec": {
                "audiences": audiences,
                "expirationSeconds": lasts,
                "boundObjectRef": reference,
            },
            "status": {"token": token, "expirationTimestamp": seconds(until)},
        }))
    }

    /// The object a token is to end with, which must be there.
    fn bind_token(&self, target: &Target, reference: &Value) -> Result<Bound, Status> {
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or("");
        let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
        let (plural, namespace) = match (version.contains('/'), kind) {
            (false, "Pod") => ("pods", target.namespace.as_str()),
            (false, "Secret") => ("secrets", target.namespace.as_str()),
            (false, "Node") => ("nodes", ""),
            _ => {
                let (group, version) = version.split_once('/').unwrap_or(("", version));
                let words =
                    format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
                return Err(Status::bad_request(words));
            }
        };
        let Some(object) = self.peek(plural, namespace, name) else {
            let mut status = Status::new(404, "NotFound", format!("{plural} {name:?} not found"));
            status.details = Some(Box::new(json!({"name": name, "kind": plural})));
            return Err(status);
        };
        let mut bound = Bound::default();
        let to = Some(Reference::to(&object));
        match kind {
            "Pod" => {
                let at = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("");
                if at("/spec/serviceAccountName") != target.name {
                    return Err(Status::bad_request(format!(
                        "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                        target.name
                    )));
                }
                bound.pod = to;
                let node = at("/spec/nodeName");
                if !node.is_empty() {
                    let live = self.peek("nodes", "", node);
                    let unknown = Reference { name: node.to_owned(), uid: String::new() };
                    bound.node = Some(live.as_ref().map_or(unknown, Reference::to));
                }
            }
            "Secret" => bound.secret = to,
            _ => bound.node = to,
        }
        let claimed = text("uid");
        if !claimed.is_empty() && claimed != metadata::uid(&object) {
            let why = format!(
                "the UID in the bound object reference ({claimed}) does not match the UID in record. The object might have been deleted and then recreated"
            );
            return Err(conflict(kind, "", kind, name, &why));
        }
        Ok(bound)
    }
}

fn check_place(target: &Target, request: &Value) -> Result<(), Status> {
    let namespace = metadata::namespace(request);
    if !namespace.is_empty() && namespace != target.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let name = metadata::name(request);
    if !name.is_empty() && name != target.name {
        let words = "must match the service account name if specified";
        let error = FieldError::new("metadata.name", Reason::Invalid, name.into(), words);
        return Err(Status::invalid_kind(GROUP, KIND, &target.name, &[error]));
    }
    Ok(())
}

/// Who owns which of the fields of a request; its time is always somebody's.
fn ownership(request: &Value, manager: &str, now: &str) -> Value {
    let mut fields = json!({"f:expirationSeconds": {}});
    if request.pointer("/spec/audiences").is_some_and(Value::is_array) {
        fields["f:audiences"] = json!({});
    }
    if let Some(Value::Object(bound)) = request.pointer("/spec/boundObjectRef") {
        let parts = bound.keys().map(|field| (format!("f:{field}"), json!({})));
        fields["f:boundObjectRef"] = Value::Object(parts.collect());
    }
    json!([{
        "manager": manager,
        "operation": "Update",
        "apiVersion": "authentication.k8s.io/v1",
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": fields},
        "subresource": "token",
    }])
}

fn check_time(lasts: i64) -> Result<(), Status> {
    let words = if lasts < SHORTEST_SECONDS {
        "may not specify a duration less than 10 minutes"
    } else if lasts > LONGEST_SECONDS {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let error = FieldError::new("spec.expirationSeconds", Reason::Invalid, lasts.into(), words);
    Err(Status::invalid_kind(GROUP, KIND, "", &[error]))
}

/// A 409 about something that is named by its kind.
fn conflict(qualified: &str, group: &str, kind: &str, name: &str, why: &str) -> Status {
    let message = format!("Operation cannot be fulfilled on {qualified} {name:?}: {why}");
    let mut status = Status::new(409, "Conflict", message);
    let mut details = json!({"name": name});
    if !group.is_empty() {
        details["group"] = group.into();
    }
    details["kind"] = kind.into();
    status.details = Some(Box::new(details));
    status
}

/// The texts of a list.
pub(crate) fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}
