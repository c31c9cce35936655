//! What an object of a built-in kind shows before anybody has written anything: fields that are
//! never left out. Nobody owns them as long as they are blank.

use serde_json::{Map, Value};

use super::published;
use crate::kinds::Kind;
use crate::schema::Schema;

/// Kinds that kube-apiserver stores as JSON, in which an empty list stays one.
const STORED_AS_JSON: &[&str] = &["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// The blank object of a kind; custom resources have nothing that is always there.
pub(crate) fn blank(kind: &Kind) -> Value {
    let mut blank = Value::Object(Map::new());
    if kind.custom.is_none() {
        published::fill(kind.schema.root(), &mut blank);
    }
    blank
}

/// Shows what is never left out, as a type does that was read from something shorter.
pub(crate) fn fill_blanks(schema: Schema<'_>, value: &mut Value) {
    published::fill(schema, value);
}

/// Lists that are never left out are `null` when they are empty.
pub(crate) fn empty_lists(kind: &Kind, object: &mut Value) {
    if kind.custom.is_none() && !STORED_AS_JSON.contains(&kind.group.as_str()) {
        published::empty_to_null(kind.schema.root(), object);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_blank_object_shows_what_is_never_left_out() {
        let kind = |plural: &str| {
            crate::kinds::builtin().iter().find(|kind| kind.plural == plural).unwrap()
        };
        assert_eq!(blank(kind("clusterroles")), json!({"metadata": {}, "rules": null}));
        let set = blank(kind("statefulsets"));
        assert_eq!(set["spec"]["serviceName"], "");
        assert!(set["spec"].get("replicas").is_none());
        let mut role = json!({"rules": []});
        empty_lists(kind("clusterroles"), &mut role);
        assert_eq!(role, json!({"rules": null}));
    }
}
