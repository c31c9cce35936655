//! What expressions of admission policies and match conditions may speak of, and its types.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::types::{Object, Type};

/// A structure with these fields.
fn object(name: &str, fields: &[(&str, Type)]) -> Type {
    let fields = fields.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone()));
    Type::Object(Arc::new(Object { name: name.to_owned(), fields: fields.collect() }))
}

/// The request of an admission review.
fn request() -> Type {
    use Type::String as Text;
    let kind = object(
        "kubernetes.GroupVersionKind",
        &[("group", Text), ("version", Text), ("kind", Text)],
    );
    let resource = object(
        "kubernetes.GroupVersionResource",
        &[("group", Text), ("version", Text), ("resource", Text)],
    );
    let user = object(
        "kubernetes.UserInfo",
        &[
            ("username", Text),
            ("uid", Text),
            ("groups", Type::list(Text)),
            ("extra", Type::map(Text, Type::list(Text))),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        &[
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", Text),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", Text),
            ("name", Text),
            ("namespace", Text),
            ("operation", Text),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

/// The namespace of a request, as far as expressions see it.
fn namespace() -> Type {
    use Type::String as Text;
    let condition = object(
        "kubernetes.NamespaceCondition",
        &[
            ("status", Text),
            ("type", Text),
            ("lastTransitionTime", Type::Timestamp),
            ("message", Text),
            ("reason", Text),
        ],
    );
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        &[
            ("name", Text),
            ("generateName", Text),
            ("namespace", Text),
            ("labels", Type::map(Text, Text)),
            ("annotations", Type::map(Text, Text)),
            ("UID", Text),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", Text),
            ("finalizers", Type::list(Text)),
        ],
    );
    let spec = object("kubernetes.NamespaceSpec", &[("finalizers", Type::list(Text))]);
    let status = object(
        "kubernetes.NamespaceStatus",
        &[("conditions", Type::list(condition)), ("phase", Text)],
    );
    object("kubernetes.Namespace", &[("metadata", metadata), ("spec", spec), ("status", status)])
}

/// What expressions of policies and match conditions may speak of, their own variables aside.
pub fn variables(has_params: bool, has_authorizer: bool) -> Vec<(&'static str, Type)> {
    let mut variables = vec![
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        ("namespaceObject", namespace()),
        ("request", request()),
    ];
    if has_params {
        variables.push(("params", Type::Dyn));
    }
    if has_authorizer {
        variables.push(("authorizer", Type::Opaque("kubernetes.authorization.Authorizer")));
        let check = Type::Opaque("kubernetes.authorization.ResourceCheck");
        variables.push(("authorizer.requestResource", check));
    }
    variables
}

/// The variables that a policy declares itself: `variables.name`.
pub fn composed(known: &BTreeMap<String, Type>) -> (&'static str, Type) {
    let object = Object { name: "kubernetes.variables".to_owned(), fields: known.clone() };
    ("variables", Type::Object(Arc::new(object)))
}

/// What mutations make: a part of an object, and one operation of a JSON patch.
pub fn patches() -> [Type; 2] {
    [object("Object", &[]), object("JSONPatch", &[])]
}
