//! Patch: a change of the live object, made anew from whatever is live when its turn comes.

use serde_json::Value;

use super::create::Tracking;
use super::options::{FieldValidation, WriteOptions};
use super::update::{Area, Update};
use super::{Body, Registry, Target, Written, patched, rules};
use crate::kinds::Kind;
use crate::status::Status;

/// A patch, by its media type.
#[derive(Debug, Clone)]
pub enum Patch {
    /// RFC 6902.
    Json(Body),
    /// RFC 7386.
    Merge(Body),
    /// Kubernetes' own merge, which knows lists by their keys.
    Strategic(Body),
    /// Server-side apply: the fields the client has an opinion on.
    Apply(Body),
}

impl Registry {
    /// Patches the object (or its status). An apply of an absent object creates it.
    ///
    /// # Errors
    /// The `Status` that says why not; nothing is written then.
    pub fn patch(
        &self,
        target: &Target,
        status: bool,
        patch: Patch,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let area = if status { Area::Status } else { Area::Main };
        let mut warnings = Vec::new();
        let written = match patch {
            Patch::Apply(body) => self.apply(target, area, body, options, &mut warnings),
            patch => {
                let update =
                    Update { area, tracking: Tracking::Update, unconditional: true, take: None };
                self.writer_for(options).update(target, update, options, |live| {
                    patched::object(&target.kind, live, &patch, options, &mut warnings)
                })
            }
        };
        match written {
            Ok(written) => Ok(Written { warnings, ..written }),
            Err(status) => Err(status.warned(warnings)),
        }
    }

    fn apply(
        &self,
        target: &Target,
        area: Area,
        body: Body,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Written, Status> {
        let kind = &target.kind;
        // Ownership is compared on what the client wrote, not on what the server makes of it, and
        // a field that is not declared is refused rather than dropped.
        let (config, duplicates) = rules::applicable(kind, body)?;
        super::create::place(target, &mut config.clone())?;
        let writer = self.writer_for(options);
        let absent = self.store.get(&super::convert::resource(kind), &target.key()).is_none();
        if absent {
            if area != Area::Main {
                return Err(Status::not_found(kind, &target.name));
            }
            let object = rules::applied(&writer, kind, None, &config, options, area)?;
            let object = shaped(kind, without_time(kind, object, None))?;
            // What cannot be merged is not read strictly.
            rules::judge_duplicates(&duplicates, options.validation, warnings)?;
            if !super::metadata::uid(&config).is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    super::metadata::uid(&config)
                );
                return Err(Status::conflict(kind, &target.name, &why));
            }
            return writer.create(target, object, options, Tracking::Done);
        }
        let update = Update { area, tracking: Tracking::Done, unconditional: true, take: None };
        writer.update(target, update, options, |live| {
            let object = rules::applied(&writer, kind, Some(live), &config, options, area)?;
            let object = shaped(kind, without_time(kind, object, Some(live)))?;
            rules::judge_duplicates(&duplicates, options.validation, warnings)?;
            Ok(object)
        })
    }

    /// An apply through a subresource: only what `take` copies is written, whoever owns the rest.
    pub(crate) fn apply_part(
        &self,
        target: &Target,
        area: Area,
        body: &Body,
        options: &WriteOptions,
        take: fn(&Value, &mut Value),
    ) -> Result<Written, Status> {
        let kind = &target.kind;
        let mut warnings = Vec::new();
        let (config, duplicates) = rules::applicable(kind, body.clone())?;
        super::create::place(target, &mut config.clone())?;
        let writer = self.writer_for(options);
        let update =
            Update { area, tracking: Tracking::Done, unconditional: true, take: Some(take) };
        let written = writer.update(target, update, options, |live| {
            let merged = rules::applied(&writer, kind, Some(live), &config, options, area)?;
            let merged = shaped(kind, merged)?;
            rules::judge_duplicates(&duplicates, options.validation, &mut warnings)?;
            Ok(merged)
        })?;
        Ok(Written { warnings, ..written })
    }
}

/// The merged object with the time of its creation as it is: nobody reads what is applied there, where
/// nothing but a definition says what an object looks like.
fn without_time(kind: &Kind, mut object: Value, live: Option<&Value>) -> Value {
    const TIME: &str = "creationTimestamp";
    if kind.custom.is_some() {
        match live {
            Some(live) => super::metadata::copy(&mut object, live, TIME),
            None => super::metadata::set(&mut object, TIME, Value::Null),
        }
    }
    object
}

/// The merged object in the form its kind is stored in; its warnings were given already.
pub(super) fn shaped(kind: &Kind, value: Value) -> Result<Value, Status> {
    let name = super::metadata::name(&value).to_owned();
    let body = Body::from(value);
    rules::shape(kind, body, FieldValidation::Ignore, &mut Vec::new()).map_err(|status| {
        let why = status.message.split_once(": ").map_or(status.message.as_str(), |(_, why)| why);
        let from_json = why.starts_with("illegal base64");
        let why = format!("{}{why}", if from_json { "error decoding from json: " } else { "" });
        let version = kind.api_version();
        let slash = if kind.group.is_empty() { "/" } else { "" };
        let kind = format!("{slash}{version}, Kind={}", kind.kind);
        let words = if rules::is_of_another_type(&why) {
            format!("failed to convert to unversioned (/{name}; {kind}): {why}")
        } else {
            format!(
                "failed to convert new object (/{name}; {kind}) to proper version: unable \
                 to convert unstructured object to {kind}: {why}"
            )
        };
        Status::unexplained(words)
    })
}
