//! Which kind of object: the address of its API and whether it lives in namespaces.

use std::any::TypeId;
use std::fmt;
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::core::{ApiResource, GroupVersionKind};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A typed Kubernetes object: everything `k8s-openapi` and `#[derive(CustomResource)]` produce.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object",
    note = "derive `kube::CustomResource` for a custom resource, or use a type of `k8s_openapi`"
)]
pub trait Object:
    Resource<DynamicType = (), Scope: 'static>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope: 'static>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// What a cached object can be read as: an [`Object`], [`kube::api::DynamicObject`] for a kind known
/// only at run time, [`kube::core::PartialObjectMeta`], or any type of your own with fewer fields.
pub trait View: DeserializeOwned + Send + Sync + 'static {}

impl<K: DeserializeOwned + Send + Sync + 'static> View for K {}

/// A kind of object; cheap to clone and ordered, so that it can be a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(Arc<Parts>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Parts {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespaced: bool,
}

impl Kind {
    /// The kind of a typed object.
    #[must_use]
    pub fn of<K: Object>() -> Self {
        Self::new(
            K::group(&()),
            K::version(&()),
            K::kind(&()),
            K::plural(&()),
            TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>(),
        )
    }

    /// A kind known only at run time.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
        plural: impl Into<String>,
        namespaced: bool,
    ) -> Self {
        Self(Arc::new(Parts {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced,
        }))
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.0.group
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// The name of the kind: `Deployment`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.0.kind
    }

    /// The name in URLs: `deployments`.
    #[must_use]
    pub fn plural(&self) -> &str {
        &self.0.plural
    }

    /// Whether objects of the kind live in namespaces.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.0.namespaced
    }

    /// `group/version`, or `version` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.0.group.is_empty() {
            self.0.version.clone()
        } else {
            format!("{}/{}", self.0.group, self.0.version)
        }
    }

    /// The same, as `kube` wants it for dynamic access.
    #[must_use]
    pub fn api_resource(&self) -> ApiResource {
        let gvk = GroupVersionKind::gvk(&self.0.group, &self.0.version, &self.0.kind);
        ApiResource::from_gvk_with_plural(&gvk, &self.0.plural)
    }

    /// The path of the collection: `/apis/apps/v1/namespaces/default/deployments`.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.0.group.is_empty() {
            format!("/api/{}", self.0.version)
        } else {
            format!("/apis/{}/{}", self.0.group, self.0.version)
        };
        match namespace {
            Some(namespace) if self.0.namespaced => {
                format!("{root}/namespaces/{namespace}/{}", self.0.plural)
            }
            _ => format!("{root}/{}", self.0.plural),
        }
    }
}

/// `Deployment`, with the group where there is one: `Deployment.apps`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.kind)?;
        if !self.0.group.is_empty() {
            write!(f, ".{}", self.0.group)?;
        }
        Ok(())
    }
}
