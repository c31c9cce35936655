//! The part of an object that is kept parsed: what keys, owners, selectors and predicates need.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde::Deserialize;

use crate::key::Key;
use crate::kind::Kind;

/// The parsed metadata of a cached object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Namespace and name.
    pub key: Key,
    /// The uid; empty only for servers that give none.
    pub uid: Arc<str>,
    /// The revision of this version of the object.
    pub resource_version: String,
    /// Counts changes of the desired state; `None` for kinds without it.
    pub generation: Option<i64>,
    /// Set once deletion was asked for.
    pub deletion_timestamp: Option<Timestamp>,
    /// Who must agree before the object goes.
    pub finalizers: Vec<String>,
    /// Whose dependent this object is.
    pub owners: Vec<Owner>,
    /// The labels.
    pub labels: BTreeMap<String, String>,
}

/// One owner reference.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// `group/version` of the owner.
    #[serde(default)]
    pub api_version: String,
    /// Its kind.
    #[serde(default)]
    pub kind: String,
    /// Its name; the namespace is that of the dependent, or none.
    #[serde(default)]
    pub name: String,
    /// Its uid.
    pub uid: Arc<str>,
    /// Whether it is the one that manages the object.
    #[serde(default)]
    pub controller: bool,
    /// Whether foreground deletion of the owner waits for the object.
    #[serde(default)]
    pub block_owner_deletion: bool,
}

impl Header {
    /// The owner that manages the object, if there is one.
    #[must_use]
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }

    /// Whether deletion was asked for.
    #[must_use]
    pub fn is_being_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The object as an event refers to it.
    pub(crate) fn reference(&self, kind: &Kind) -> ObjectReference {
        ObjectReference {
            api_version: Some(kind.api_version()),
            kind: Some(kind.kind().to_owned()),
            name: Some(self.key.name.to_string()),
            namespace: self.key.namespace.as_deref().map(str::to_owned),
            uid: Some(self.uid.to_string()),
            resource_version: Some(self.resource_version.clone()),
            field_path: None,
        }
    }

    /// Reads the JSON of `metadata`.
    pub(crate) fn parse(metadata: &str) -> Result<Self, serde_json::Error> {
        let meta: Metadata<'_> = serde_json::from_str(metadata)?;
        let namespace = meta.namespace.filter(|namespace| !namespace.is_empty());
        Ok(Self {
            key: Key {
                namespace: namespace.as_deref().map(Arc::from),
                name: Arc::from(&*meta.name),
            },
            uid: Arc::from(&*meta.uid),
            resource_version: meta.resource_version.into_owned(),
            generation: meta.generation,
            deletion_timestamp: meta.deletion_timestamp,
            finalizers: meta.finalizers.unwrap_or_default(),
            owners: meta.owner_references.unwrap_or_default(),
            labels: meta.labels.unwrap_or_default(),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    #[serde(default)]
    generation: Option<i64>,
    #[serde(default)]
    deletion_timestamp: Option<Timestamp>,
    #[serde(default)]
    finalizers: Option<Vec<String>>,
    #[serde(default)]
    owner_references: Option<Vec<Owner>>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}
