//! `metadata` where the schema does not describe it: in custom resources and embedded objects.

use std::sync::LazyLock;

use super::shape::Place;
use crate::schema::{ListType, Node, NodeId, Schemas, Type};

/// What apply must know of `metadata`: which lists have keys, and which fields there are.
pub(super) fn object_meta() -> Place<'static> {
    static META: LazyLock<(Schemas, NodeId)> = LazyLock::new(|| {
        let mut schemas = Schemas::default();
        let scalar = schemas.add(Node::default());
        let owner = schemas.add(Node {
            ty: Type::Object,
            atomic_map: true,
            properties: [("uid".to_owned(), scalar)].into(),
            preserve_unknown: true,
            ..Node::default()
        });
        let mut list = |items, list_type| {
            schemas.add(Node { ty: Type::Array, items: Some(items), list_type, ..Node::default() })
        };
        let finalizers = list(scalar, ListType::Set);
        let owners = list(owner, ListType::Map(vec!["uid".to_owned()]));
        let managed = list(scalar, ListType::Atomic);
        let strings =
            schemas.add(Node { ty: Type::Object, additional: Some(scalar), ..Node::default() });
        let fields = [
            ("annotations", strings),
            ("creationTimestamp", scalar),
            ("deletionGracePeriodSeconds", scalar),
            ("deletionTimestamp", scalar),
            ("finalizers", finalizers),
            ("generateName", scalar),
            ("generation", scalar),
            ("labels", strings),
            ("managedFields", managed),
            ("name", scalar),
            ("namespace", scalar),
            ("ownerReferences", owners),
            ("resourceVersion", scalar),
            ("selfLink", scalar),
            ("uid", scalar),
        ];
        let properties = fields.map(|(name, id)| (name.to_owned(), id)).into();
        let meta = schemas.add(Node { ty: Type::Object, properties, ..Node::default() });
        (schemas, meta)
    });
    let (schemas, meta) = &*META;
    Place::Declared { schema: schemas.at(*meta), preserve: false, object: false }
}
