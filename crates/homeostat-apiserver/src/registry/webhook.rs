//! Custom resources whose versions a webhook converts: the question, what is made of the answer,
//! and how a write asks: through its inquiry, to be tried again when the answer is there.

use serde_json::Value;

use super::{Writer, convert, metadata};
use crate::admission::{Inquiry, Question, Topic};
use crate::apply::{ApplyError, Others};
use crate::custom::{Versions, conversion};
use crate::kinds::{Custom, Kind};
use crate::schema::{KindSchema, Schema};
use crate::status::Status;
use crate::store::Stored;

/// The question how objects look in another version; all are of one kind and version.
pub(crate) fn question(
    versions: &Versions,
    objects: &[Value],
    to: &str,
) -> Result<Option<Question>, Status> {
    let Some(conversion) = &versions.conversion else { return Ok(None) };
    let review = conversion.question(objects, to).map_err(Status::unexplained)?;
    Ok(Some(Question {
        webhook: conversion.definition.clone(),
        client: conversion.client.clone(),
        timeout: conversion::PATIENCE,
        review,
        topic: Topic::Conversion,
        repeated: 0,
    }))
}

/// The objects that came back, each in the place of the one it was made from.
pub(crate) fn converted(
    versions: &Versions,
    originals: &[Value],
    to: &str,
    answer: Result<Value, String>,
) -> Result<Vec<Value>, Status> {
    let what = originals.first().map(conversion::type_of).unwrap_or_default();
    let what = format!("conversion webhook for {what}");
    let objects = match answer {
        Ok(Value::Array(objects)) => objects,
        Ok(_) => Vec::new(),
        Err(why) => return Err(Status::unexplained(format!("{what} failed: {why}"))),
    };
    if objects.len() != originals.len() {
        let (given, asked) = (objects.len(), originals.len());
        let words = format!("{what} returned {given} objects, expected {asked}");
        return Err(Status::unexplained(words));
    }
    let pairs = originals.iter().zip(objects);
    let accepted = pairs.map(|(original, object)| {
        let mut object = conversion::accept(original, object, to).map_err(Status::unexplained)?;
        if let Some(schema) = versions.schema(to) {
            crate::custom::prune(schema.root(), &mut object);
        }
        Ok(object)
    });
    accepted.collect()
}

/// The other versions of a definition, as a write sees them.
pub(crate) struct OtherVersions<'a> {
    writer: &'a Writer<'a>,
    versions: &'a Versions,
}

impl std::fmt::Debug for OtherVersions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OtherVersions").field(&self.versions.group).finish()
    }
}

impl Others for OtherVersions<'_> {
    fn schema(&self, api_version: &str) -> Option<Schema<'_>> {
        self.versions.schema(api_version).map(KindSchema::root)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ApplyError> {
        let converted = self.writer.in_version(self.versions, object.clone(), api_version);
        converted.map_err(|status| match self.writer.inquiry {
            Some(inquiry) if inquiry.waits() => ApplyError::Pending,
            _ => ApplyError::Unconverted(status.message),
        })
    }
}

impl<'a> Writer<'a> {
    /// The other versions of a definition.
    pub(super) fn others(&'a self, versions: &'a Versions) -> OtherVersions<'a> {
        OtherVersions { writer: self, versions }
    }
}

impl Writer<'_> {
    /// An object of a definition in another of its versions.
    fn in_version(
        &self,
        versions: &Versions,
        mut object: Value,
        to: &str,
    ) -> Result<Value, Status> {
        if object.get("apiVersion").and_then(Value::as_str) == Some(to) {
            return Ok(object);
        }
        let Some(question) = question(versions, std::slice::from_ref(&object), to)? else {
            versions.rename(&mut object, to);
            return Ok(object);
        };
        let Some(inquiry) = self.inquiry else {
            return Err(Status::internal("nobody waits for the answer of a conversion webhook"));
        };
        let answer = inquiry.ask(question).ok_or_else(Inquiry::unanswered)?;
        let objects = converted(versions, std::slice::from_ref(&object), to, answer)?;
        Ok(objects.into_iter().next().unwrap_or_default())
    }

    /// The stored object in the form the kind speaks.
    pub(super) fn form(&self, kind: &Kind, stored: &Stored) -> Result<Value, Status> {
        match &kind.custom {
            Some(custom) if custom.versions.conversion.is_some() => {
                let object = refreshed(custom, stored);
                self.in_version(&custom.versions, object, &kind.api_version())
            }
            _ => Ok(convert::value(kind, stored)),
        }
    }

    /// From the form the kind speaks to the form that is stored.
    pub(super) fn to_storage(&self, kind: &Kind, object: Value) -> Result<Value, Status> {
        let mut object = object;
        match &kind.custom {
            Some(custom) if custom.versions.conversion.is_some() => {
                // What is stored does not know its revision yet.
                let revision = metadata::text(&object, "resourceVersion").to_owned();
                metadata::set(&mut object, "resourceVersion", Value::Null);
                let to = custom.versions.stored_as();
                let mut stored = self.in_version(&custom.versions, object, &to)?;
                custom.versions.complete(&mut stored);
                if !revision.is_empty() {
                    metadata::set(&mut stored, "resourceVersion", revision.into());
                }
                Ok(stored)
            }
            _ => {
                convert::to_storage(kind, &mut object);
                Ok(object)
            }
        }
    }

    /// The object of one kind in the form of another one that is stored in the same place.
    pub(crate) fn between(&self, from: &Kind, to: &Kind, object: Value) -> Result<Value, Status> {
        let mut object = object;
        if from.api_version() == to.api_version() || !object.is_object() {
            return Ok(object);
        }
        match &from.custom {
            Some(custom) if custom.versions.conversion.is_some() => {
                self.in_version(&custom.versions, object, &to.api_version())
            }
            _ => {
                convert::to_storage(from, &mut object);
                convert::from_storage(to, &mut object);
                Ok(object)
            }
        }
    }
}

/// The object in the version it was stored in, as that version is now.
pub(crate) fn refreshed(custom: &Custom, stored: &Stored) -> Value {
    let mut object = stored.value();
    if !convert::is_current(custom, stored) {
        custom.versions.refresh(&mut object);
    }
    object
}
