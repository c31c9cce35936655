//! `POST serviceaccounts/token`: a token for an account, perhaps bound to an object of its own.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::options::WriteOptions;
use super::{Body, Registry, Target, metadata, seconds};
use crate::admission;
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
        body: Body,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        let writer = self.writer_at(&options.inquiry);
        let mut review = writer.posted(target, "token", body, options)?;
        check_name(target, &review.object)?;
        let account = self.get(target)?.value();
        let uid = metadata::uid(&account);
        let claimed = metadata::uid(&review.object);
        if !claimed.is_empty() && claimed != uid {
            let why = format!(
                "the UID in the token request ({claimed}) does not match the UID of the service account ({uid})"
            );
            return Err(conflict(&format!("{KIND}.{GROUP}"), GROUP, KIND, &target.name, &why));
        }
        complete(&mut review.object, &account, &seconds(writer.time));
        let asked = review.object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
        let lasts = asked.unwrap_or(DEFAULT_SECONDS);
        check_time(lasts)?;
        admission::validate(&review)?;
        let mut request = review.object;
        let audiences = texts(request.pointer("/spec/audiences"));
        let reference = request.pointer("/spec/boundObjectRef").filter(|bound| !bound.is_null());
        let mut bound = match reference {
            Some(reference) => self.bind_token(target, reference)?,
            None => Bound::default(),
        };
        bound.namespace.clone_from(&target.namespace);
        bound.serviceaccount = Reference::to(&account);
        let now = writer.time;
        let mut valid = lasts;
        if bound.pod.is_some() && lasts == POD_SECONDS && audiences == [ISSUER] {
            bound.warnafter = Some(now.as_second() + lasts);
            valid = POD_SECONDS_EXTENDED;
        }
        let claims = Claims {
            aud: audiences,
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
        request["status"] = json!({"token": token, "expirationTimestamp": seconds(until)});
        if let Some(spec) = request["spec"].as_object_mut() {
            // Shown even where there is none.
            spec.entry("boundObjectRef").or_insert(Value::Null);
        }
        Ok(request)
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

fn check_name(target: &Target, request: &Value) -> Result<(), Status> {
    let name = metadata::name(request);
    if !name.is_empty() && name != target.name {
        let words = "must match the service account name if specified";
        let error = FieldError::new("metadata.name", Reason::Invalid, name.into(), words);
        return Err(Status::invalid_kind(GROUP, KIND, &target.name, &[error]));
    }
    Ok(())
}

/// Fills in what a request leaves open; nobody has given it a status.
fn complete(request: &mut Value, account: &Value, now: &str) {
    for field in ["name", "namespace", "uid"] {
        metadata::copy(request, account, field);
    }
    metadata::set(request, "creationTimestamp", now.into());
    let spec = &mut request["spec"];
    if !spec.is_object() {
        *spec = json!({});
    }
    if texts(spec.get("audiences")).is_empty() {
        spec["audiences"] = json!([ISSUER]);
    }
    metadata::set_top(request, "status", Some(json!({"token": "", "expirationTimestamp": null})));
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
