//! Whose fields are: what two servers say about it may differ along the way to one field, and nowhere
//! else.

use std::collections::BTreeSet;

use serde_json::Value;

/// A manager, what it did, through which subresource, and a field.
type Owned = (String, String, String, Vec<String>);

/// Whether everything that the two say differently is about the field, one that holds it, or what it
/// holds.
pub(super) fn differs_only_along(pointer: &str, ours: &Value, theirs: &Value) -> bool {
    let way: Vec<String> = pointer.split('/').skip(1).map(plain).collect();
    let (ours, theirs) = (owned(ours), owned(theirs));
    let is_along = |field: &[String]| way.starts_with(field) || field.starts_with(&way);
    ours.symmetric_difference(&theirs).all(|(.., field)| is_along(field))
}

/// All fields of an object with their owners.
fn owned(object: &Value) -> BTreeSet<Owned> {
    let mut all = BTreeSet::new();
    let managers = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    for manager in managers.into_iter().flatten() {
        let text = |name: &str| manager[name].as_str().unwrap_or_default().to_owned();
        let mut fields = Vec::new();
        walk(&manager["fieldsV1"], &mut Vec::new(), &mut fields);
        let who = (text("manager"), text("operation"), text("subresource"));
        all.extend(fields.into_iter().map(|field| {
            let (manager, operation, subresource) = who.clone();
            (manager, operation, subresource, field)
        }));
    }
    all
}

fn walk(fields: &Value, way: &mut Vec<String>, all: &mut Vec<Vec<String>>) {
    let Some(fields) = fields.as_object().filter(|fields| !fields.is_empty()) else {
        return all.push(way.clone());
    };
    for (name, below) in fields {
        if name == "." {
            all.push(way.clone());
            continue;
        }
        // Entries of lists are named by what is in them; where in the list they are is not said.
        way.push(name.strip_prefix("f:").map_or("*".to_owned(), plain));
        walk(below, way, all);
        way.pop();
    }
}

/// One step of the way; all entries of a list are one.
fn plain(step: &str) -> String {
    if step.parse::<usize>().is_ok() { "*".to_owned() } else { step.to_owned() }
}

#[test]
fn ownership_may_differ_along_the_way_to_the_field_and_nowhere_else() {
    use serde_json::json;
    let of = |manager: &str, fields: Value| json!({"metadata": {"managedFields": [{"manager": manager, "fieldsV1": fields}]}});
    let ours =
        of("one", json!({"f:spec": {"f:a": {"k:{\"name\":\"x\"}": {"f:b": {}}}, "f:c": {}}}));
    let theirs = of("one", json!({"f:spec": {"f:a": {}, "f:c": {}}}));
    assert!(differs_only_along("/spec/a/0/b", &ours, &theirs));
    assert!(differs_only_along("/spec/a/0/b/d", &ours, &theirs));
    assert!(differs_only_along("/spec/a", &ours, &theirs));
    assert!(!differs_only_along("/spec/c", &ours, &theirs));
    let theirs =
        of("two", json!({"f:spec": {"f:a": {"k:{\"name\":\"x\"}": {"f:b": {}}}, "f:c": {}}}));
    assert!(!differs_only_along("/spec/a/0/b", &ours, &theirs));
}
