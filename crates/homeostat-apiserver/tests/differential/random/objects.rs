//! The objects that random requests carry: a sample of each kind, with edits that are sometimes
//! right and sometimes wrong.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::dice::Dice;

/// One kind, as `kinds.json` describes it.
#[derive(Debug, Deserialize)]
pub(super) struct Sample {
    /// The collection.
    pub(super) path: String,
    object: Value,
    edits: Vec<(String, Vec<Value>)>,
    /// Fields that selectors may name.
    #[serde(default)]
    pub(super) fields: Vec<String>,
    #[serde(default)]
    pub(super) scale: bool,
}

/// A field and the value it gets.
pub(super) type Edit = (String, Value);

impl Sample {
    pub(super) fn all() -> Vec<Self> {
        serde_json::from_str(include_str!("kinds.json")).unwrap()
    }

    pub(super) fn is_namespaced(&self) -> bool {
        self.path.contains("{{ns}}")
    }

    pub(super) fn plural(&self) -> &str {
        self.path.rsplit('/').next().unwrap()
    }

    /// The name of the object that sequences call `short`.
    pub(super) fn name(&self, short: &str) -> String {
        if self.is_namespaced() { short.to_owned() } else { format!("{{{{ns}}}}-{short}") }
    }

    /// The sample under that name.
    pub(super) fn named(&self, name: &str) -> Value {
        let mut object = self.object.clone();
        object["metadata"] = json!({"name": name, "labels": {"seq": "{{ns}}"}});
        object
    }

    /// `apiVersion`, `kind` and the name, which every apply needs.
    pub(super) fn head(&self, name: &str) -> Value {
        let (version, kind) = (&self.object["apiVersion"], &self.object["kind"]);
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}})
    }

    /// A change of one field; of its metadata now and then.
    pub(super) fn edit(&self, dice: &Dice) -> Edit {
        if dice.chance(22) {
            let (path, values) = dice.pick(METADATA);
            let text: &str = dice.pick::<&str>(values);
            let value = serde_json::from_str(text).unwrap();
            return (format!("/metadata/{path}"), value);
        }
        let (path, values) = dice.pick(&self.edits);
        (path.clone(), dice.pick(values).clone())
    }

    /// A change of the status.
    pub(super) fn status_edit(&self, dice: &Dice) -> Edit {
        let row = self.edits.iter().find(|(path, _)| path == "/status");
        match row {
            Some((path, values)) if dice.chance(85) => (path.clone(), dice.pick(values).clone()),
            _ => self.edit(dice),
        }
    }
}

/// Fields that all objects have, with values as JSON.
const METADATA: &[(&str, &[&str])] = &[
    (
        "labels",
        &[
            r#"{"seq": "{{ns}}", "x": "y"}"#,
            r#"{"x": "-bad-"}"#,
            r#"{"bad key": "x"}"#,
            "null",
            r#"{"x": 1}"#,
        ],
    ),
    (
        "annotations",
        &[
            r#"{"a": "b"}"#,
            r#"{"a": "c", "d": "e"}"#,
            r#"{"bad key": "x"}"#,
            "{}",
            r#"{"a": true}"#,
        ],
    ),
    (
        "finalizers",
        &[r#"["example.com/hold"]"#, r#"["example.com/hold", "example.com/two"]"#, "[]", "null"],
    ),
    (
        "ownerReferences",
        &[
            r#"[{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "6c2e6b0f-0000-4000-8000-000000000001"}]"#,
            r#"[{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": ""}]"#,
            r#"[{"apiVersion": "v1", "kind": "Event", "name": "o", "uid": "6c2e6b0f-0000-4000-8000-000000000001"}]"#,
            r#"[{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "6c2e6b0f-0000-4000-8000-000000000001", "controller": true}, {"apiVersion": "v1", "kind": "Secret", "name": "p", "uid": "6c2e6b0f-0000-4000-8000-000000000002", "controller": true}]"#,
        ],
    ),
    ("generation", &["7"]),
    ("creationTimestamp", &["null", "\"2020-01-01T00:00:00Z\"", "\"nope\""]),
    ("uid", &["\"6c2e6b0f-0000-4000-8000-00000000000f\""]),
    ("selfLink", &["\"/x\""]),
    ("generateName", &["\"g-\""]),
    ("managedFields", &["[]", "[{}]"]),
    ("odd", &["1"]),
];

/// Puts the value at the path, making what is missing on the way. A path through something that
/// is no container changes nothing.
pub(super) fn set(object: &mut Value, (path, value): &Edit) {
    let mut place = object;
    for step in path.split('/').skip(1) {
        place = match place {
            Value::Array(items) => {
                let Some(item) = step.parse().ok().and_then(|at: usize| items.get_mut(at)) else {
                    return;
                };
                item
            }
            Value::Object(fields) => fields.entry(step).or_insert(Value::Null),
            empty @ Value::Null => {
                *empty = json!({step: null});
                &mut empty[step]
            }
            _ => return,
        };
    }
    *place = value.clone();
}

/// Only what leads to the path; lists on the way come whole.
pub(super) fn only(object: &Value, path: &str) -> Value {
    let (step, rest) =
        path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
    match object {
        Value::Object(fields) if !step.is_empty() => {
            let below = fields.get(step).map_or(Value::Null, |value| only(value, rest));
            Value::Object(Map::from_iter([(step.to_owned(), below)]))
        }
        other => other.clone(),
    }
}
