//! The version a request speaks, and the others in which owners wrote before.
//!
//! What an owner owns is a set of fields of the version it wrote in, so whether a change touches
//! them is seen in that version.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ApplyError;
use super::compare::Changes;
use super::set::FieldSet;
use super::shape::Place;
use crate::schema::Schema;

/// The way to other versions of a kind.
pub trait Others: std::fmt::Debug {
    /// What objects look like in that version; `None` when there is none of that name.
    fn schema(&self, api_version: &str) -> Option<Schema<'_>>;

    /// The object in that version.
    ///
    /// # Errors
    /// [`ApplyError::Pending`] when a webhook must be asked first, [`ApplyError::Unconverted`] when
    /// it did not convert.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ApplyError>;
}

/// The schema that a request speaks and, where it matters, the others.
#[derive(Debug, Clone, Copy)]
pub struct Forms<'a> {
    /// What objects look like in the version of the request.
    pub schema: Schema<'a>,
    /// Without them all owners are taken to speak the version of the request.
    pub others: Option<&'a dyn Others>,
    /// What an object shows of which nothing is given; without it, nothing.
    pub blank: Option<&'a Value>,
}

impl<'a> From<Schema<'a>> for Forms<'a> {
    fn from(schema: Schema<'a>) -> Self {
        Self { schema, others: None, blank: None }
    }
}

impl<'a> Forms<'a> {
    pub(super) fn place(self) -> Place<'a> {
        Place::root(self.schema)
    }

    /// The root of objects in a version, `own` being that of the request.
    pub(super) fn place_in(self, own: &str, api_version: &str) -> Option<Place<'a>> {
        match self.others {
            Some(others) if api_version != own => others.schema(api_version).map(Place::root),
            _ => Some(self.place()),
        }
    }

    /// The object in a version; without others there is only one.
    pub(super) fn object(self, object: &Value, api_version: &str) -> Result<Value, ApplyError> {
        let given = object.get("apiVersion").and_then(Value::as_str);
        match self.others {
            // Nothing cannot be converted, and looks the same everywhere.
            Some(others) if given.is_some_and(|given| given != api_version) => {
                others.convert(object, api_version)
            }
            _ => Ok(object.clone()),
        }
    }
}

/// One change as it is seen in each version, found out when somebody asks.
pub(super) struct Seen<'a> {
    forms: Forms<'a>,
    own: &'a str,
    old: &'a Value,
    new: &'a Value,
    reset: &'a FieldSet,
    by_version: BTreeMap<String, Option<Changes>>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(
        forms: Forms<'a>,
        own: &'a str,
        (old, new): (&'a Value, &'a Value),
        reset: &'a FieldSet,
    ) -> Self {
        let changes = Changes::between(forms.place(), old, new).without(reset);
        let by_version = BTreeMap::from([(own.to_owned(), Some(changes))]);
        Self { forms, own, old, new, reset, by_version }
    }

    /// The change in a version; `None` when there is no such version any more.
    pub(super) fn of(&mut self, api_version: &str) -> Result<Option<&Changes>, ApplyError> {
        let version = if self.forms.others.is_none() { self.own } else { api_version };
        if !self.by_version.contains_key(version) {
            let changes = match self.forms.place_in(self.own, version) {
                None => None,
                Some(place) => {
                    let old = self.forms.object(self.old, version)?;
                    let new = self.forms.object(self.new, version)?;
                    Some(Changes::between(place, &old, &new).without(self.reset))
                }
            };
            self.by_version.insert(version.to_owned(), changes);
        }
        Ok(self.by_version.get(version).and_then(Option::as_ref))
    }

    /// The change in the version of the request; nobody asks any more.
    pub(super) fn into_own(mut self) -> Result<Option<Changes>, ApplyError> {
        self.own()?;
        Ok(self.by_version.remove(self.own).flatten())
    }

    /// The change in the version of the request.
    pub(super) fn own(&mut self) -> Result<Option<&Changes>, ApplyError> {
        self.of(self.own)
    }
}
