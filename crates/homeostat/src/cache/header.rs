//! The part of an object that is kept parsed: what keys, owners, selectors and predicates need.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde::Deserialize;
use serde::de::Error as _;

use super::intern::Interner;
use super::scan::Fields;
use super::share::{self, Share};
use crate::key::Key;
use crate::kind::Kind;

/// Labels by name.
pub type Labels = BTreeMap<String, String>;

/// The parsed metadata of a cached object; what many objects have alike is shared between them.
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
    pub owners: Arc<[Owner]>,
    /// The labels.
    pub labels: Arc<Labels>,
    /// What was applied, by manager.
    shares: Box<[Share]>,
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
            name: Some(self.key.name().to_owned()),
            namespace: self.key.namespace().map(str::to_owned),
            uid: Some(self.uid.to_string()),
            resource_version: Some(self.resource_version.clone()),
            field_path: None,
        }
    }

    /// What `manager` has applied to the object, as a number; `None` when it has not.
    pub(crate) fn share(&self, manager: &str) -> Option<u64> {
        share::find(manager, &self.shares)
    }

    /// Reads the fields of `metadata`.
    pub(super) fn parse(
        metadata: &Fields<'_>,
        interner: &mut Interner,
    ) -> Result<Self, serde_json::Error> {
        let name =
            metadata.text("name")?.ok_or_else(|| serde_json::Error::missing_field("name"))?;
        Ok(Self {
            key: Key::new(metadata.text("namespace")?.as_deref(), name),
            uid: Arc::from(&*metadata.text("uid")?.unwrap_or_default()),
            resource_version: metadata.text("resourceVersion")?.unwrap_or_default().into_owned(),
            generation: metadata.read("generation")?,
            deletion_timestamp: metadata.read("deletionTimestamp")?,
            finalizers: metadata.read("finalizers")?.unwrap_or_default(),
            owners: interner.owners(metadata.get("ownerReferences"))?,
            labels: interner.labels(metadata.get("labels"))?,
            shares: share::parse(metadata)?,
        })
    }
}
