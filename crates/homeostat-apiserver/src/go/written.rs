//! Objects in the order in which kube-apiserver writes them: the fields of a published type in the
//! order of its Go struct, the entries of maps by name.

use serde_json::{Map, Value};

use super::internal::in_order;
use super::types;
use crate::schema::Schema;

/// An object in that order.
pub(crate) fn written(schema: Schema<'_>, value: &Value) -> Value {
    match value {
        Value::Array(items) => match schema.items() {
            Some(schema) => items.iter().map(|item| written(schema, item)).collect(),
            None => in_order(value),
        },
        Value::Object(fields) if !schema.node().properties.is_empty() => {
            let mut ordered = Map::new();
            let names = types::names(&schema.node().name).filter(|name| fields.contains_key(*name));
            for name in names {
                let (field, value) = (schema.field(name), &fields[name]);
                let value = field.map_or_else(|| in_order(value), |field| written(field, value));
                ordered.insert(name.to_owned(), value);
            }
            for (name, value) in fields {
                ordered.entry(name).or_insert_with(|| in_order(value));
            }
            Value::Object(ordered)
        }
        _ => in_order(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::written;
    use crate::schema::builtin::schemas;

    #[test]
    fn fields_have_the_order_of_go_and_entries_of_maps_that_of_their_names() {
        let schema = schemas().named("io.k8s.api.core.v1.ConfigMap").unwrap();
        let given = json!({"data": {"b": "1", "a": "2"}, "apiVersion": "v1", "metadata":
            {"uid": "u", "name": "n"}, "kind": "ConfigMap"});
        assert_eq!(
            written(schema, &given).to_string(),
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n","uid":"u"},"data":{"a":"2","b":"1"}}"#
        );
    }
}
