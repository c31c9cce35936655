//! Objects that are posted below another one, or instead of it, and never stored: a binding, an eviction, a request
//! for a token. They are read, completed and admitted as any new object; what they are asked for,
//! others do.

use serde_json::{Value, json};

use super::options::WriteOptions;
use super::update::Area;
use super::{Body, Target, Writer, metadata, named, rules};
use crate::admission::{self, Operation, Review, Wish};
use crate::kinds::{Kind, spoken};
use crate::status::Status;

/// What the server alone says about an object. A binding and a request for a token may name the
/// object they are meant for by its uid.
const SYSTEM_FIELDS: [&str; 4] =
    ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];
const MEANT_FOR: [&str; 2] = ["binding", "token"];

impl<'a> Writer<'a> {
    /// What is posted to the subresource `part`, completed by admission and not yet judged by it.
    pub(super) fn posted<'r>(
        &'r self,
        target: &'r Target,
        part: &'static str,
        body: Body,
        options: &'r WriteOptions,
    ) -> Result<Review<'r>, Status> {
        self.posted_as(target, part, form(&target.kind, part)?, body, options)
    }

    /// The same for what is of the kind `form`.
    pub(super) fn posted_as<'r>(
        &'r self,
        target: &'r Target,
        part: &'static str,
        form: &'r Kind,
        mut body: Body,
        options: &'r WriteOptions,
    ) -> Result<Review<'r>, Status> {
        named::complete_type(form, &mut body.value);
        named::check_type(form, &body.value)?;
        let mut warnings = Vec::new();
        let object = rules::shape(form, body, options.validation, &mut warnings)
            .map_err(|status| rules::undecodable(form, &form.kind, status))?;
        warnings.into_iter().for_each(|warning| options.inquiry.warn(warning));
        self.admit_posted(target, part, form, object, options)
    }

    fn admit_posted<'r>(
        &'r self,
        target: &'r Target,
        part: &'static str,
        form: &'r Kind,
        mut object: Value,
        options: &'r WriteOptions,
    ) -> Result<Review<'r>, Status> {
        if !object.get("metadata").is_some_and(Value::is_object) {
            object["metadata"] = json!({});
        }
        for field in SYSTEM_FIELDS {
            metadata::set(&mut object, field, Value::Null);
        }
        if !MEANT_FOR.contains(&part) {
            metadata::set(&mut object, "uid", Value::Null);
        }
        match metadata::namespace(&object) {
            "" => metadata::set(&mut object, "namespace", target.namespace.clone().into()),
            given if given != target.namespace => {
                return Err(Status::bad_request(
                    "the namespace of the provided object does not match the namespace sent on \
                     the request",
                ));
            }
            _ => {}
        }
        rules::default(form, &mut object);
        rules::track(self, form, None, &mut object, &options.manager, Area::Part(part))?;
        let mut review = Review {
            subresource: part,
            namespace: &target.namespace,
            name: &target.name,
            form: Some(form),
            object,
            ..Review::new(self, &target.kind, Operation::Create, Wish::Write(options))
        };
        admission::mutate(&mut review)?;
        Ok(review)
    }
}

/// The kind that the subresource speaks.
pub(crate) fn form(kind: &Kind, part: &str) -> Result<&'static Kind, Status> {
    let part = kind.subresource(part).and_then(spoken);
    part.map(|form| form.as_ref()).ok_or_else(Status::no_such_resource)
}

/// The object must say which one it is meant for.
pub(super) fn check_name(target: &Target, review: &Review<'_>) -> Result<(), Status> {
    if metadata::name(&review.object) == target.name {
        return Ok(());
    }
    let kind = review.object["kind"].as_str().unwrap_or_default();
    Err(Status::bad_request(format!("name in URL does not match name in {kind} object")))
}

/// What a client is told when what it posted was done.
pub(super) fn done() -> Value {
    let mut status = Status::new(201, "", "").to_value();
    status["code"] = 201.into();
    status
}
