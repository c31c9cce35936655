//! The faults of an object: for every field that its schema knows, values that are wrong for it.

use homeostat_apiserver::schema::{Schema, Type};
use serde_json::{Map, Value, json};

/// How far below what an object has, faults go.
const BEYOND: usize = 3;

/// The same below the entries of a map.
const BELOW_ENTRIES: usize = 0;

/// A field, as a JSON pointer, and what it becomes; nothing if it is taken away.
pub(super) type Fault = (String, Option<Value>);

/// Every fault of the object.
pub(super) fn faults(schema: Schema<'_>, object: &Value) -> Vec<Fault> {
    let mut found = Vec::new();
    walk(schema, Some(object), "", BEYOND, &mut found);
    found
}

/// Every fault of what the object has at `path`.
pub(super) fn faults_below(path: &str, schema: Schema<'_>, present: &Value) -> Vec<Fault> {
    let mut found = Vec::new();
    let wrong = wrong_values(schema).into_iter().map(Some);
    found.extend(wrong.chain([None]).map(|value| (path.to_owned(), value)));
    walk(schema, Some(present), path, BEYOND, &mut found);
    found
}

/// Sets what a pointer names, making what leads there.
pub(super) fn put(object: &mut Value, pointer: &str, value: Option<Value>) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let mut place = object;
    for part in parent.split('/').skip(1) {
        place = match part.parse::<usize>() {
            Ok(index) if !place.is_object() || *place == json!({}) => {
                if !place.is_array() {
                    *place = json!([]);
                }
                let list = place.as_array_mut().unwrap();
                while list.len() <= index {
                    list.push(json!({}));
                }
                &mut list[index]
            }
            _ => {
                if !place.is_object() {
                    *place = json!({});
                }
                let name = part.replace("~1", "/").replace("~0", "~");
                place.as_object_mut().unwrap().entry(name).or_insert(json!({}))
            }
        };
    }
    match (value, name.parse::<usize>()) {
        (Some(value), Ok(index)) if !place.is_object() || place == &json!({}) => {
            if !place.is_array() {
                *place = json!([]);
            }
            let list = place.as_array_mut().unwrap();
            while list.len() <= index {
                list.push(json!({}));
            }
            list[index] = value;
        }
        (Some(value), _) => {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place[name] = value;
        }
        (None, _) => {
            if let Some(fields) = place.as_object_mut() {
                fields.shift_remove(name);
            }
        }
    }
}

fn walk(
    schema: Schema<'_>,
    present: Option<&Value>,
    path: &str,
    beyond: usize,
    found: &mut Vec<Fault>,
) {
    let node = schema.node();
    for (name, id) in &node.properties {
        let skipped = matches!(
            (path, name.as_str()),
            ("", "apiVersion" | "kind" | "status")
                | ("/metadata", "name" | "namespace" | "managedFields")
        );
        // What every kind shares is asked of one.
        let shared = path.is_empty()
            && name == "metadata"
            && present.is_some_and(|object| object["kind"] != "ConfigMap");
        if skipped || shared {
            continue;
        }
        let below = schema.sibling(*id);
        let value = present.and_then(|object| object.get(name));
        let path = format!("{path}/{name}");
        if value.is_some() {
            found.push((path.clone(), None));
        }
        for wrong in wrong_values(below) {
            found.push((path.clone(), Some(wrong)));
        }
        // All templates of Pods are judged as those of PodTemplates are.
        if path.ends_with("/spec/template/spec") {
            continue;
        }
        let Some(beyond) = (if value.is_some() { Some(beyond) } else { beyond.checked_sub(1) })
        else {
            continue;
        };
        walk(below, value, &path, beyond, found);
        entries(below, value, &path, found);
        if let Some(items) = below.items() {
            let item = value.and_then(|list| list.get(0));
            for wrong in wrong_values(items) {
                found.push((format!("{path}/0"), Some(wrong)));
            }
            walk(items, item, &format!("{path}/0"), beyond, found);
        }
    }
}

/// The faults of what is in a map, not far below it.
fn entries(map: Schema<'_>, present: Option<&Value>, path: &str, found: &mut Vec<Fault>) {
    let Some(schema) = map.node().additional.map(|id| map.sibling(id)) else { return };
    if schema.node().properties.is_empty() {
        return;
    }
    for (name, value) in present.and_then(Value::as_object).into_iter().flatten() {
        let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        walk(schema, Some(value), &path, BELOW_ENTRIES, found);
    }
}

/// Values that are wrong for a field of that type, or at its edge.
fn wrong_values(schema: Schema<'_>) -> Vec<Value> {
    let node = schema.node();
    match node.ty {
        Type::String if node.bounds.format.as_deref() == Some("quantity") => {
            vec![json!("x"), json!(-1), json!("1ki"), json!("")]
        }
        Type::String => {
            vec![json!(7), json!(""), json!("X y/"), json!("x".repeat(300))]
        }
        Type::Integer => {
            vec![
                json!("x"),
                json!(-1),
                json!(0),
                json!(70000),
                json!(3_000_000_000_u64),
                json!(1.5),
            ]
        }
        Type::Number => vec![json!("x"), json!(-1)],
        Type::Boolean => vec![json!("x"), json!(true), json!(false)],
        Type::IntOrString => vec![json!(-1), json!(""), json!("X y"), json!("101%"), json!(true)],
        Type::Array => vec![json!("x"), json!([])],
        Type::Object if node.additional.is_some() && node.properties.is_empty() => {
            vec![json!("x"), json!({}), json!({"": "v"}), json!({"a b": "v"}), json!({"a": 7})]
        }
        Type::Object => vec![json!("x"), json!({})],
        Type::Any => vec![json!("x"), json!(7), json!({})],
    }
}

#[test]
fn a_fault_makes_its_way_into_the_object() {
    let mut object = json!({"spec": {"list": [{"a": 1}]}});
    put(&mut object, "/spec/list/0/b/0/c", Some(json!(2)));
    put(&mut object, "/spec/list/0/a", None);
    assert_eq!(object, json!({"spec": {"list": [{"b": [{"c": 2}]}]}}));
}
