//! Which kind of object: the address of its API and whether it lives in namespaces.

use std::any::{Any, TypeId};
use std::fmt;
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// An object whose kind may be known only at run time: every [`Object`],
/// [`kube::api::DynamicObject`], [`kube::core::PartialObjectMeta`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object",
    note = "derive `kube::CustomResource` for a custom resource, use a type of `k8s_openapi`, or `kube::api::DynamicObject`"
)]
pub trait AnyObject:
    Resource<DynamicType: 'static, Scope: 'static>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> AnyObject for K where
    K: Resource<DynamicType: 'static, Scope: 'static>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// A typed Kubernetes object: everything `k8s-openapi` and `#[derive(CustomResource)]` produce.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object",
    note = "derive `kube::CustomResource` for a custom resource, or use a type of `k8s_openapi`"
)]
pub trait Object: AnyObject + Resource<DynamicType = ()> {}

impl<K: AnyObject + Resource<DynamicType = ()>> Object for K {}

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
        Self::from_type::<K>(&())
    }

    /// Whether a type says its kind at compile time.
    pub(crate) fn is_known_of<K: AnyObject>() -> bool {
        TypeId::of::<K::DynamicType>() == TypeId::of::<()>()
    }

    /// The kind of a type that says it at compile time; `None` for those that do not.
    pub(crate) fn of_type<K: AnyObject>() -> Option<Self> {
        (&() as &dyn Any).downcast_ref().map(Self::from_type::<K>)
    }

    fn from_type<K: AnyObject>(dynamic: &K::DynamicType) -> Self {
        Self::new(
            K::group(dynamic),
            K::version(dynamic),
            K::kind(dynamic),
            K::plural(dynamic),
            TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>(),
        )
    }

    /// A kind as `kube` describes it, which leaves out whether it lives in namespaces.
    #[must_use]
    pub fn from_api_resource(resource: &ApiResource, namespaced: bool) -> Self {
        let ApiResource { group, version, kind, plural, .. } = resource;
        Self::new(group, version, kind, plural, namespaced)
    }

    /// Asks the API for the plural and the scope of a kind known only at run time.
    ///
    /// # Errors
    /// When the API does not serve it, or cannot be reached.
    pub async fn discover(
        client: &kube::Client,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Self> {
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let (resource, can) = kube::discovery::pinned_kind(client, &wanted).await?;
        let namespaced = can.scope == kube::discovery::Scope::Namespaced;
        Ok(Self::from_api_resource(&resource, namespaced))
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

    /// Whether its group is one of Kubernetes' own, whose controllers and agents write the status.
    pub(crate) fn is_of_kubernetes(&self) -> bool {
        !self.0.group.contains('.') || self.0.group.ends_with(".k8s.io")
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

/// What an object says of its own kind; empty words where it says nothing.
pub(crate) fn types(object: &impl Serialize) -> TypeMeta {
    let value = serde_json::to_value(object).unwrap_or_default();
    TypeMeta::deserialize(&value).unwrap_or_default()
}

/// The kind of `object` among those that are `known`, for one that says it only at run time.
pub(crate) fn of_object<'a, T: AnyObject>(
    object: &T,
    mut known: impl Iterator<Item = &'a Kind>,
) -> Result<Kind> {
    if let Some(kind) = Kind::of_type::<T>() {
        return Ok(kind);
    }
    let TypeMeta { api_version, kind } = types(object);
    let same = |other: &&Kind| other.kind() == kind && other.api_version() == api_version;
    known.find(same).cloned().ok_or_else(|| {
        Error::terminal(format!(
            "`{kind}` of `{api_version}` is not a kind that the controller declares; \
             `Related::known` is enough to write it"
        ))
    })
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
