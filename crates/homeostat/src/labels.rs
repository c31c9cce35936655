//! The labels that tools expect on what belongs together: `app.kubernetes.io/…`.
//!
//! ```
//! use homeostat::{Key, labels};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! let mut pod = Pod::default();
//! pod.metadata.namespace = Some("shop".to_owned());
//! pod.metadata.labels = Some(labels::recommended("web", "front", "web-operator"));
//!
//! // Whom it belongs to, for `Controller::watches`, and how to list what belongs together.
//! assert_eq!(labels::instance("web", &pod), [Key::namespaced("shop", "front")]);
//! let selector = labels::to_selector(&labels::selector("web", "front"));
//! assert_eq!(selector, "app.kubernetes.io/instance=front,app.kubernetes.io/name=web");
//! ```

use std::collections::BTreeMap;

use kube::ResourceExt;

use crate::key::Key;
use crate::kind::Object;

/// What kind of application it is.
pub const NAME: &str = "app.kubernetes.io/name";

/// Which one of that kind: the name of the custom resource.
pub const INSTANCE: &str = "app.kubernetes.io/instance";

/// Who looks after it.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The two labels that select the Pods of one instance. A selector cannot change, so neither may these.
#[must_use]
pub fn selector(name: &str, instance: &str) -> BTreeMap<String, String> {
    [(NAME, name), (INSTANCE, instance)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// Labels as a selector is written: `a=b,c=d`.
#[must_use]
pub fn to_selector(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// All three, for every child of one instance.
#[must_use]
pub fn recommended(name: &str, instance: &str, managed_by: &str) -> BTreeMap<String, String> {
    let mut labels = selector(name, instance);
    labels.insert(MANAGED_BY.to_owned(), managed_by.to_owned());
    labels
}

/// The instance of `name` that an object belongs to by its labels, to wake it from
/// [`crate::Controller::watches`]: for children of children, which no owner reference leads to.
#[must_use]
pub fn instance<T: Object>(name: &str, object: &T) -> Vec<Key> {
    let labels = object.labels();
    let (Some(found), Some(instance)) = (labels.get(NAME), labels.get(INSTANCE)) else {
        return Vec::new();
    };
    if found != name {
        return Vec::new();
    }
    vec![Key::of(object).beside(instance)]
}
