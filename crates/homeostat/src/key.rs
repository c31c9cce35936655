//! The name of an object among its kind: what the queue holds and a reconcile is about.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kube::Resource;

/// Ends the namespace. It is in no name, and comes before everything that is: so keys are in order
/// by namespace, then by name, when their texts are.
const END: u8 = 0;

/// Namespace and name; cheap to clone.
///
/// One shared text: a clone counts one holder, and two keys are compared (or one is hashed) in one
/// go. Keys are ordered by namespace, then by name; those without a namespace come first.
///
/// ```
/// use homeostat::Key;
///
/// let key = Key::namespaced("default", "web");
/// assert_eq!((key.namespace(), key.name()), (Some("default"), "web"));
/// assert_eq!(key.beside("db").to_string(), "default/db");
/// assert!(Key::cluster("web") < key && key < Key::namespaced("default-2", "a"));
/// ```
#[derive(Clone, Eq, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of an object in a namespace; the empty namespace is none.
    #[must_use]
    pub fn namespaced(namespace: impl AsRef<str>, name: impl AsRef<str>) -> Self {
        let (namespace, name) = (namespace.as_ref(), name.as_ref());
        let mut text = String::with_capacity(namespace.len() + 1 + name.len());
        text.push_str(namespace);
        text.push(char::from(END));
        text.push_str(name);
        Self(Arc::from(text))
    }

    /// The key of a cluster-scoped object.
    #[must_use]
    pub fn cluster(name: impl AsRef<str>) -> Self {
        Self::namespaced("", name)
    }

    /// The key of an object in that namespace, if it is in one.
    #[must_use]
    pub fn new(namespace: Option<&str>, name: impl AsRef<str>) -> Self {
        Self::namespaced(namespace.unwrap_or_default(), name)
    }

    /// The key of `object`; an object without a name has the empty one.
    pub fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        Self::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
    }

    /// The key of that name in the same namespace.
    #[must_use]
    pub fn beside(&self, name: impl AsRef<str>) -> Self {
        Self::new(self.namespace(), name)
    }

    /// The namespace; `None` for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        Some(self.parts().0).filter(|namespace| !namespace.is_empty())
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (&str, &str) {
        // Asked for several times per reconcile: a search for a character of text takes many times as long.
        let end = memchr::memchr(END, self.0.as_bytes()).unwrap_or_default();
        (&self.0[..end], &self.0[end + 1..])
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        // Mostly a clone is compared with what it was cloned from.
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Which object is meant: by a name, of an object beside the primary (in its namespace, or in none
/// if either has none), or by a [`Key`], of one anywhere.
///
/// ```
/// use homeostat::{Context, Key, Result};
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
///
/// async fn look(context: &Context<ConfigMap>) -> Result<()> {
///     context.get::<Secret>("password").await?;
///     context.get::<Secret>(format!("{}-password", context.key().name())).await?;
///     context.get::<Secret>(Key::namespaced("kube-system", "password")).await?;
///     Ok(())
/// }
/// ```
pub trait NameOrKey {
    /// The key; of a name it is the one in `namespace`.
    fn key_in(&self, namespace: Option<&str>) -> Key;
}

impl NameOrKey for Key {
    fn key_in(&self, _: Option<&str>) -> Key {
        self.clone()
    }
}

impl NameOrKey for str {
    fn key_in(&self, namespace: Option<&str>) -> Key {
        Key::new(namespace, self)
    }
}

impl NameOrKey for String {
    fn key_in(&self, namespace: Option<&str>) -> Key {
        Key::new(namespace, self)
    }
}

impl<T: NameOrKey + ?Sized> NameOrKey for &T {
    fn key_in(&self, namespace: Option<&str>) -> Key {
        (**self).key_in(namespace)
    }
}

/// `namespace/name`, or `name` alone.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace() {
            Some(namespace) => write!(f, "{namespace}/{}", self.name()),
            None => f.write_str(self.name()),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}
