//! Where an object would lie in etcd: kube-apiserver tells clients when something is wrong with it
//! there. Nothing is kept under these keys.

use super::Target;

/// Resources that are kept under another name than their own, mostly one of old.
const OTHER_NAMES: &[(&str, &str)] = &[
    (
        "customresourcedefinitions.apiextensions.k8s.io",
        "apiextensions.k8s.io/customresourcedefinitions",
    ),
    ("apiservices.apiregistration.k8s.io", "apiregistration.k8s.io/apiservices"),
    ("endpoints", "services/endpoints"),
    ("ingresses.networking.k8s.io", "ingress"),
    ("nodes", "minions"),
    ("replicationcontrollers", "controllers"),
    ("services", "services/specs"),
];

/// The key, without the prefix that all have.
pub(super) fn of(target: &Target) -> String {
    let Target { kind, namespace, name } = target;
    let resource = kind.resource();
    let other = OTHER_NAMES.iter().find(|(own, _)| *own == resource).map(|(_, other)| *other);
    let folder = match other {
        Some(other) => other.to_owned(),
        None if kind.custom.is_some() => format!("{}/{}", kind.group, kind.plural),
        None => kind.plural.clone(),
    };
    let place = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
    format!("/{folder}/{place}")
}
