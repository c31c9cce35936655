//! Types in the words of v2: what it cannot say is left out.

use serde_json::{Map, Value, json};

use super::object;

/// A named type. Of one that takes anything at its root, v2 clients must not know more.
pub(super) fn definition(written: &Value) -> Value {
    if written["x-kubernetes-preserve-unknown-fields"] == true {
        let mut out = json!({"type": "object"});
        for name in ["x-kubernetes-group-version-kind", "x-kubernetes-selectable-fields"] {
            if let Some(value) = written.get(name) {
                out[name] = value.clone();
            }
        }
        return out;
    }
    schema(written)
}

pub(super) fn schema(written: &Value) -> Value {
    let Some(fields) = written.as_object() else { return written.clone() };
    let mut out = Map::new();
    let anything = written["x-kubernetes-preserve-unknown-fields"] == true;
    let nullable = written["nullable"] == true;
    for (name, value) in fields {
        match name.as_str() {
            "nullable" | "anyOf" | "not" | "oneOf" | "default" => {}
            "allOf" => {
                // How v3 says something about a reference; v2 says it beside the reference.
                if let [only] = value.as_array().map_or(&[][..], Vec::as_slice)
                    && let Some(reference) = only.get("$ref")
                {
                    out.insert("$ref".to_owned(), renamed(reference));
                }
            }
            "$ref" => drop(out.insert(name.clone(), renamed(value))),
            "items" | "properties" if anything || nullable => {}
            "type" if nullable || (anything && value == "object") => {}
            "items" | "additionalProperties" => drop(out.insert(name.clone(), schema(value))),
            "properties" => {
                let all = object(value).map(|(name, value)| (name.clone(), schema(value)));
                out.insert(name.clone(), Value::Object(all.collect()));
            }
            "required" => {
                let names = value.as_array().into_iter().flatten();
                let names: Vec<Value> =
                    names.filter(|name| is_required(written, name, anything)).cloned().collect();
                if !names.is_empty() {
                    out.insert(name.clone(), names.into());
                }
            }
            _ => drop(out.insert(name.clone(), value.clone())),
        }
    }
    if out.get("type").is_some_and(|ty| ty == "array") && !out.contains_key("items") {
        out.shift_remove("type");
    }
    // Built-in types that are text or a number call themselves text.
    if fields.contains_key("oneOf") && !out.contains_key("type") {
        out.insert("type".to_owned(), "string".into());
    }
    Value::Object(out)
}

/// Values that may be null need not be there, and of embedded objects that take anything nothing is
/// said.
fn is_required(written: &Value, name: &Value, anything: bool) -> bool {
    let name = name.as_str().unwrap_or_default();
    let null = |schema: &Value| schema["nullable"] == true;
    let unsaid = anything
        && written["x-kubernetes-embedded-resource"] == true
        && matches!(name, "apiVersion" | "kind");
    !(unsaid || null(&written["additionalProperties"]) || null(&written["properties"][name]))
}

fn renamed(reference: &Value) -> Value {
    let text = reference.as_str().unwrap_or_default();
    text.replace("#/components/schemas/", "#/definitions/").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_v2_cannot_say_is_left_out() {
        let written = json!({
            "type": "object",
            "required": ["maybe", "sure"],
            "properties": {
                "maybe": {"type": "object", "nullable": true, "properties": {"a": {}}},
                "sure": {"type": "string", "anyOf": [{"minLength": 1}]},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "meta": {"allOf": [{"$ref": "#/components/schemas/M"}], "default": {},
                    "description": "said"},
            },
        });
        let expected = json!({
            "type": "object",
            "required": ["sure"],
            "properties": {
                "maybe": {},
                "sure": {"type": "string"},
                "any": {"x-kubernetes-preserve-unknown-fields": true},
                "meta": {"$ref": "#/definitions/M", "description": "said"},
            },
        });
        assert_eq!(definition(&written), expected);
    }
}
