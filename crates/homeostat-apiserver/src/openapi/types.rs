//! The types of a custom resource: what its definition says, with what every object has.

use serde_json::{Map, Value, json};

use crate::kinds::Kind;

const META: &str = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1";
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// The type of one object; `prose` has the fields of built-in objects.
pub(super) fn item(kind: &Kind, prose: &Value) -> Value {
    let written = kind.custom.as_ref().map(|custom| &custom.open_api);
    let mut schema = written.filter(|schema| schema.is_object()).cloned().unwrap_or(json!({}));
    complete(&mut schema, prose);
    schema["type"] = json!("object");
    for name in ["apiVersion", "kind"] {
        schema["properties"][name] = prose[name].clone();
    }
    schema["properties"]["metadata"] = metadata(prose);
    extend(&mut schema, kind, &kind.kind);
    schema
}

/// The type of a list of them; `item` is the name of theirs.
pub(super) fn list(kind: &Kind, item: &str, prose: &Value) -> Value {
    let about = format!("Standard list metadata. More info: {CONVENTIONS}#types-kinds");
    let mut schema = json!({
        "description": format!("{} is a list of {}", kind.list_kind, kind.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": prose["apiVersion"],
            "kind": prose["kind"],
            "metadata": {"allOf": [{"$ref": format!("{META}.ListMeta")}], "description": about},
            "items": {
                "description": format!("List of {}. More info: {CONVENTIONS}", kind.plural),
                "type": "array",
                "items": {"$ref": format!("#/components/schemas/{item}")},
            },
        },
    });
    extend(&mut schema, kind, &kind.list_kind);
    schema
}

/// What a type stands for, and by which fields its objects can be selected.
fn extend(schema: &mut Value, kind: &Kind, name: &str) {
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": kind.group, "version": kind.version, "kind": name}]);
    let fields = kind.custom.as_ref().map_or(&[][..], |custom| &custom.selectable_fields);
    if !fields.is_empty() {
        let path = |field: &String| json!({"fieldPath": field.trim_start_matches('.')});
        schema["x-kubernetes-selectable-fields"] = fields.iter().map(path).collect();
    }
}

fn metadata(prose: &Value) -> Value {
    let about = &prose["metadata"]["description"];
    json!({"allOf": [{"$ref": format!("{META}.ObjectMeta")}], "description": about})
}

/// Says what is meant without being written: the fields of embedded objects, and both types of
/// values that may be a number or text.
fn complete(schema: &mut Value, prose: &Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for name in ["items", "additionalProperties"] {
        if let Some(below) = fields.get_mut(name) {
            complete(below, prose);
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(|below| complete(below, prose));
    }
    if fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        unfold(fields);
    }
    if fields.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        embed(fields, prose);
    }
}

fn unfold(fields: &mut Map<String, Value>) {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let said = fields.get("anyOf") == Some(&either)
        || fields.get("allOf").and_then(|all| all.get(0)) == Some(&json!({"anyOf": either}));
    if said {
        return;
    }
    if !fields.contains_key("anyOf") {
        fields.insert("anyOf".to_owned(), either);
        return;
    }
    let all = fields.entry("allOf").or_insert_with(|| json!([]));
    if let Value::Array(all) = all {
        all.insert(0, json!({"anyOf": either}));
    }
}

fn embed(fields: &mut Map<String, Value>, prose: &Value) {
    let version = format!(
        "apiVersion defines the versioned schema of this representation of an object. More info: \
         {CONVENTIONS}#resources"
    );
    let kind = format!(
        "kind is a string value representing the type of this object. In CamelCase. More info: \
         {CONVENTIONS}#types-kinds"
    );
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    properties["apiVersion"] = json!({"type": "string", "description": version});
    properties["kind"] = json!({"type": "string", "description": kind});
    properties["metadata"] = metadata(prose);
    let required = fields.entry("required").or_insert_with(|| json!([]));
    let Value::Array(required) = required else { return };
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|known| known == name) {
            required.push(name.into());
        }
    }
}
