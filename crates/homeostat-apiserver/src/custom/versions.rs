//! The versions of a definition: how each looks, and which one objects are stored in.
//!
//! Without a webhook, versions differ by name only: going from one to another renames, and what
//! the other version does not know falls away. With one, it says how the other form looks.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Conversion, flag, list, prune, text};
use crate::default::apply_defaults;
use crate::schema::KindSchema;

/// All versions of a definition, served or not.
#[derive(Debug, Clone, Default)]
pub struct Versions {
    /// The group they share.
    pub group: String,
    /// The version that objects are written in.
    pub storage: String,
    /// The webhook that converts between them, if there is one.
    pub conversion: Option<Conversion>,
    schemas: BTreeMap<String, KindSchema>,
    /// Where those versions that have a scale keep their number of replicas.
    replicas: BTreeMap<String, String>,
}

impl Versions {
    pub(super) fn of(definition: &Value) -> Self {
        let mut versions = Self {
            group: text(definition, "/spec/group").to_owned(),
            conversion: Conversion::of(definition),
            ..Self::default()
        };
        for version in list(definition, "/spec/versions") {
            let name = text(version, "/name").to_owned();
            if flag(version, "storage") {
                versions.storage.clone_from(&name);
            }
            let replicas = text(version, "/subresources/scale/specReplicasPath");
            if !replicas.is_empty() {
                versions.replicas.insert(name.clone(), replicas.to_owned());
            }
            versions.schemas.insert(name, super::schema_of(version));
        }
        versions
    }

    /// `group/version` of what is stored.
    #[must_use]
    pub fn stored_as(&self) -> String {
        format!("{}/{}", self.group, self.storage)
    }

    /// Whether there is such a version, served or not.
    #[must_use]
    pub fn has(&self, api_version: &str) -> bool {
        self.schema(api_version).is_some()
    }

    /// The same as objects in that version see them, which then is the stored one: nothing needs
    /// to be converted for them.
    #[must_use]
    pub fn storing(&self, api_version: &str) -> Self {
        let version = api_version.rsplit('/').next().unwrap_or_default().to_owned();
        Self { storage: version, conversion: None, ..self.clone() }
    }

    pub(crate) fn schema(&self, api_version: &str) -> Option<&KindSchema> {
        let (group, version) = api_version.split_once('/')?;
        if group == self.group { self.schemas.get(version) } else { None }
    }

    /// Where the version keeps its number of replicas, as `.spec.replicas`, if it has a scale.
    pub(crate) fn replicas(&self, api_version: &str) -> Option<&str> {
        let (_, version) = api_version.split_once('/')?;
        self.replicas.get(version).map(String::as_str)
    }

    /// Turns an object into another version of itself, by name only.
    pub fn rename(&self, object: &mut Value, api_version: &str) {
        object["apiVersion"] = api_version.into();
        if let Some(schema) = self.schema(api_version) {
            prune(schema.root(), object);
        }
    }

    /// Fills in the defaults of the version an object is in.
    pub fn complete(&self, object: &mut Value) {
        if let Some(schema) = self.schema(text(object, "/apiVersion")) {
            apply_defaults(schema.root(), object);
        }
    }

    /// Brings an object, as it was stored, up to date with the schema of its version: fields that
    /// are no longer known go, new defaults come.
    pub fn refresh(&self, object: &mut Value) {
        let version = text(object, "/apiVersion").to_owned();
        if let Some(schema) = self.schema(&version) {
            prune(schema.root(), object);
            apply_defaults(schema.root(), object);
        }
    }
}
