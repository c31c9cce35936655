//! The table of kinds: one row per served resource, built-in or custom.
//!
//! A row is data. What the API does with an object follows from its row; nothing here runs.

mod builtin;
mod spoken;
mod strategy;

use std::sync::Arc;

pub use builtin::builtin;
pub(crate) use spoken::spoken;
pub(crate) use strategy::{TURNED_OFF_IN_PODS, WHOLE_METADATA};

use crate::schema::KindSchema;

/// One served resource of one version.
#[derive(Debug, Clone)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// `Deployment`.
    pub kind: String,
    /// `DeploymentList`.
    pub list_kind: String,
    /// `deployments`: the name in URLs.
    pub plural: String,
    /// `deployment`.
    pub singular: String,
    /// `deploy`.
    pub short_names: Vec<String>,
    /// `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The verbs of discovery: `get`, `list`, `create`, ... A kind that cannot be listed is not stored
    /// (`SubjectAccessReview`, `Binding`).
    pub verbs: Vec<String>,
    /// `status`, `scale`, `log`, ...
    pub subresources: Vec<Subresource>,
    /// What objects look like.
    pub schema: KindSchema,
    /// What differs from kind to kind in how objects are written and deleted.
    pub strategy: Strategy,
    /// What only custom resources have; `None` for built-in kinds.
    pub custom: Option<Arc<Custom>>,
}

/// A path below an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    /// `status`.
    pub name: String,
    /// The kind it speaks, which may be another one: `Scale`, `Eviction`.
    pub kind: String,
    /// That kind's group.
    pub group: String,
    /// That kind's version.
    pub version: String,
    /// The verbs of discovery.
    pub verbs: Vec<String>,
}

/// How `metadata.generation` moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Generation {
    /// Not kept for this kind.
    #[default]
    None,
    /// 1 at creation, for good.
    Once,
    /// 1 at creation, +1 when `spec` changes.
    Spec,
    /// None at creation, +1 when `spec` changes (CSIDriver).
    SpecChanges,
    /// 1 at creation, +1 when `spec` or annotations change (Deployment).
    SpecAndAnnotations,
    /// +1 when anything but `metadata` and `status` changes.
    AllButMetadataAndStatus,
    /// The same when labels change, or when something is written that is not kept (EndpointSlice).
    AsWrittenAndLabels,
}

/// What happens to dependents when a delete does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Propagation {
    /// The object goes first.
    #[default]
    Background,
    /// Dependents that block go first.
    Foreground,
    /// Dependents stay and lose their owner.
    Orphan,
}

/// The rules by which objects of a kind are written and deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strategy {
    /// How `generation` moves.
    pub generation: Generation,
    /// The main resource ignores `status`, and `/status` takes nothing else.
    pub status: bool,
    /// A new object keeps the `status` it comes with (Node).
    pub status_on_create: bool,
    /// An update without a `resourceVersion` is accepted.
    pub unconditional_update: bool,
    /// A PUT of an absent object creates it.
    pub create_on_update: bool,
    /// A delete answers with the deleted object, not with a `Status`.
    pub returns_deleted: bool,
    /// Deletes honour a grace period (Pod).
    pub graceful: bool,
    /// The default of `propagationPolicy`.
    pub propagation: Propagation,
    /// Top-level fields that only a create may set, and that nobody owns.
    pub create_only: &'static [&'static str],
    /// Fields of `metadata` that a write of the status leaves alone; it may write the others.
    pub status_leaves: &'static [&'static str],
    /// Fields that are not for everybody yet: they are dropped, whoever writes them.
    pub turned_off: &'static [&'static str],
    /// Lists and maps that are given and empty are a change, though nothing of them is kept.
    pub empty_counts: bool,
    /// Where it has the template of its Pods, as a JSON pointer; a Pod is one itself.
    pub template: Option<&'static str>,
}

impl Default for Strategy {
    fn default() -> Self {
        Self {
            generation: Generation::None,
            status: false,
            status_on_create: false,
            unconditional_update: true,
            create_on_update: false,
            returns_deleted: false,
            graceful: false,
            propagation: Propagation::Background,
            create_only: &[],
            status_leaves: &[],
            turned_off: &[],
            empty_counts: false,
            template: None,
        }
    }
}

/// What a CustomResourceDefinition says beyond the schema.
#[derive(Debug, Clone, Default)]
pub struct Custom {
    /// The definition's name: `ats.cnat.programming-kubernetes.info`.
    pub definition: String,
    /// The definition's uid: custom resources of a definition that was made anew are other objects.
    pub definition_uid: String,
    /// `additionalPrinterColumns` of the version.
    pub columns: Vec<Column>,
    /// Paths of the scale subresource.
    pub scale: Option<ScalePaths>,
    /// `selectableFields`, as JSON paths.
    pub selectable_fields: Vec<String>,
    /// The schema document as written, for OpenAPI.
    pub open_api: serde_json::Value,
    /// All versions of the definition.
    pub versions: Arc<crate::custom::Versions>,
    /// Objects written after this revision were written under the schema of this row.
    pub since: u64,
    /// The edition of what is served that it came with. Another one may be converted otherwise.
    pub edition: u64,
    /// What users of a deprecated version are told.
    pub deprecation: Option<String>,
    /// The CEL rules of the version, compiled.
    pub rules: Arc<crate::validate::Rules>,
}

/// A printer column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// `string`, `integer`, `date`, ...
    pub ty: String,
    /// The format, where there is one.
    pub format: String,
    /// For people.
    pub description: String,
    /// 0 is always shown, more only with `-o wide`.
    pub priority: i32,
    /// Where the value is.
    pub json_path: String,
}

/// Where the scale subresource finds its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScalePaths {
    /// `.spec.replicas`
    pub spec: String,
    /// `.status.replicas`
    pub status: String,
    /// `.status.selector`
    pub selector: Option<String>,
}

/// Built-in kinds that users are warned of.
const DEPRECATED: &[(&str, &str)] = &[
    ("componentstatuses", "v1 ComponentStatus is deprecated in v1.19+"),
    ("endpoints", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
];

impl Kind {
    /// What users of a deprecated kind are told.
    #[must_use]
    pub fn deprecation(&self) -> Option<&str> {
        if let Some(custom) = &self.custom {
            return custom.deprecation.as_deref();
        }
        let row =
            DEPRECATED.iter().find(|(plural, _)| self.group.is_empty() && *plural == self.plural);
        row.map(|(_, words)| *words)
    }

    /// `group/version`, or `version` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `plural.group`, or `plural` for the core group: the name of the resource in errors.
    #[must_use]
    pub fn resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Whether that is the name of the resource: what [`Kind::resource`] gives.
    #[must_use]
    pub fn is(&self, resource: &str) -> bool {
        match resource.strip_prefix(self.plural.as_str()) {
            Some("") => self.group.is_empty(),
            Some(rest) => rest.strip_prefix('.').is_some_and(|group| group == self.group),
            None => false,
        }
    }

    /// Whether the subresource is served.
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether there are objects of the kind to look at.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.serves("list")
    }

    /// Whether objects of the kind are kept: what is only looked at is made up, what is only created
    /// is a question.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.is_listed() && self.serves("create")
    }

    pub(crate) fn serves(&self, verb: &str) -> bool {
        self.verbs.iter().any(|served| served == verb)
    }
}
