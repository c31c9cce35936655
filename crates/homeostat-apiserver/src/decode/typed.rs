//! What a typed decoder does to a value of a built-in kind: unknown fields fall away, `null` means
//! absent, what is empty and may be left out is, and a value that the field's type cannot hold is an
//! error, in the words of Go's decoder.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{MOST_COMPLAINTS, Quantity, Shaped, bytes};
use crate::go::{json_type, types as go_types};
use crate::schema::{Node, QUANTITY, Schema, Type, WhenEmpty};

/// Lists and maps that mean something else when they are empty than when they are not there.
const TELLING: &[&str] = &[
    "metadata.managedFields",
    "spec.capacity",
    "spec.cidrs",
    "spec.metadata.finalizers",
    "spec.metadata.managedFields",
    "spec.metadata.ownerReferences",
    "spec.sharedCounters",
    "spec.behavior.scaleUp.policies",
    "spec.behavior.scaleDown.policies",
];

/// What belongs to somebody else may be anything.
const ANYTHING: &[&str] = &[
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
];
/// Schemas of custom resources; where something else may stand instead, they are read apart.
const JSON_SCHEMA: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Shapes the value found at `path` in place; says what was dropped. Outside of `metadata`, lists and
/// maps that are empty may stay.
pub(super) fn shape(
    schema: Schema<'_>,
    value: &mut Value,
    path: &str,
    empty_stays: bool,
) -> Result<Shaped, String> {
    let mut walk = Walk {
        empty_stays,
        path: path.to_owned(),
        fields: Vec::new(),
        apart: 0,
        mistake: None,
        dropped: Shaped::default(),
    };
    walk.value(schema, value, 0)?;
    walk.mistake.map_or(Ok(walk.dropped), Err)
}

/// The paths of fields without a schema.
pub(super) fn unknown(
    schema: Schema<'_>,
    value: &Value,
    path: &mut String,
    found: &mut Vec<String>,
) {
    let node = schema.node();
    let length = path.len();
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                push_field(path, name);
                match schema.field(name) {
                    Some(field) => unknown(field, value, path, found),
                    None if is_open(node) => {}
                    None if found.len() >= MOST_COMPLAINTS => {}
                    None => found.push(path.clone()),
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                if let Some(item) = schema.items() {
                    path.push_str(&format!("[{index}]"));
                    unknown(item, value, path, found);
                    path.truncate(length);
                }
            }
        }
        _ => {}
    }
}

/// Whether fields without a schema belong there: free-form types of built-in kinds publish no
/// properties at all.
fn is_open(node: &Node) -> bool {
    node.preserve_unknown || (node.properties.is_empty() && node.additional.is_none())
}

fn push_field(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

struct Walk<'a> {
    empty_stays: bool,
    path: String,
    /// The fields around the value, each with the published name of the struct that has it.
    fields: Vec<(&'a str, &'a str)>,
    /// How many of them are around the outermost value that is read apart; none if nothing is.
    apart: usize,
    /// The first value that does not fit. Types that read themselves end everything at once, and
    /// what they say comes before it.
    mistake: Option<String>,
    dropped: Shaped,
}

impl<'a> Walk<'a> {
    /// `depth` says how many lists and maps are around the value within its field.
    fn value(&mut self, schema: Schema<'a>, value: &mut Value, depth: usize) -> Result<(), String> {
        let node = schema.node();
        if !node.name.is_empty() {
            match node.name.strip_prefix(JSON_SCHEMA) {
                _ if node.name == QUANTITY => return quantity(value),
                _ if ANYTHING.contains(&node.name.as_str()) => return Ok(()),
                Some(instead) if !instead.is_empty() => {
                    return self.schema_or(instead, schema, value);
                }
                _ => {}
            }
        }
        let is_time = node.bounds.format.as_deref() == Some("date-time");
        match (node.ty, &mut *value) {
            (Type::Object, Value::Object(object)) => return self.object(schema, object, depth),
            (Type::Array, Value::Array(items)) => {
                let Some(item_schema) = schema.items() else { return Ok(()) };
                let length = self.path.len();
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push_str(&format!("[{index}]"));
                    if item.is_null() {
                        *item = item_schema.node().zero();
                    } else {
                        self.value(item_schema, item, depth + 1)?;
                    }
                    self.path.truncate(length);
                }
            }
            (Type::String, Value::String(text)) if is_time => {
                *text = super::moment::read(text, node.name.ends_with(".MicroTime"))?;
            }
            (Type::String, Value::String(text))
                if node.bounds.format.as_deref() == Some("byte") =>
            {
                bytes::read(text).unwrap_or_else(|why| self.note(why));
            }
            (Type::String, other) if is_time && !other.is_string() => {
                return Err(self.mismatch(json_type(other), "string"));
            }
            (Type::Integer, Value::Number(number)) if fits(node, number) => {}
            (Type::IntOrString, Value::Number(number)) if fits(node, number) => {}
            (Type::Integer, Value::Number(number)) => {
                self.misfit(&format!("number {number}"), depth);
            }
            (Type::IntOrString, Value::Number(number)) => {
                return Err(self.mismatch(&format!("number {number}"), "int32"));
            }
            (Type::IntOrString, other) if !other.is_string() => {
                return Err(self.mismatch(json_type(other), "int32"));
            }
            (Type::Any | Type::IntOrString, _)
            | (Type::String, Value::String(_))
            | (Type::Number, Value::Number(_))
            | (Type::Boolean, Value::Bool(_)) => {}
            (_, other) => self.misfit(json_type(other), depth),
        }
        Ok(())
    }

    fn object(
        &mut self,
        schema: Schema<'a>,
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), String> {
        let node = schema.node();
        let length = self.path.len();
        let mut dropped = BTreeSet::new();
        for (name, value) in object.iter_mut() {
            push_field(&mut self.path, name);
            match (node.properties.get_key_value(name), node.additional) {
                (Some(_), _) if value.is_null() => drop(dropped.insert(name.clone())),
                (Some((field, id)), _) => {
                    self.fields.push((&node.name, field));
                    self.value(schema.sibling(*id), value, 0)?;
                    self.fields.pop();
                    // What a schema says is judged first, even if it says nothing.
                    let is_judged = node.name == JSON_SCHEMA
                        && matches!(value, Value::Array(_) | Value::Object(_) | Value::Null);
                    let field = schema.sibling(*id).node();
                    if is_left_out(field, value)
                        && !is_judged
                        && !self.stays(field, value)
                        && !TELLING.contains(&self.path.as_str())
                    {
                        self.dropped.emptied.note(&self.path, value);
                        dropped.insert(name.clone());
                    }
                }
                (None, Some(values)) if value.is_null() => {
                    *value = schema.sibling(values).node().zero();
                }
                (None, Some(values)) => self.value(schema.sibling(values), value, depth + 1)?,
                (None, None) if is_open(node) => {}
                (None, None) => {
                    if self.dropped.unknown.len() < MOST_COMPLAINTS {
                        self.dropped.unknown.push(self.path.clone());
                    }
                    dropped.insert(name.clone());
                }
            }
            self.path.truncate(length);
        }
        if !dropped.is_empty() {
            object.retain(|name, _| !dropped.contains(name));
        }
        Ok(())
    }

    /// Whether something empty is to stay: what Go has as a list or a map, bytes included.
    fn stays(&self, field: &Node, value: &Value) -> bool {
        let is_bytes = value.is_string() && field.bounds.format.as_deref() == Some("byte");
        self.empty_stays
            && (is_bytes || matches!(value, Value::Array(_) | Value::Object(_)))
            && !self.path.starts_with("metadata")
    }

    /// A schema, or what may stand instead of it (`OrArray`, `OrBool`, `OrStringArray`). Another
    /// reader takes it up there: it does not tell of unknown fields, and what it cannot read ends
    /// everything.
    fn schema_or(
        &mut self,
        instead: &str,
        schema: Schema<'a>,
        value: &mut Value,
    ) -> Result<(), String> {
        let Some(whole) = schema.named(JSON_SCHEMA) else { return Ok(()) };
        let (apart, unknown) = (self.apart, self.dropped.unknown.len());
        if apart == 0 {
            self.apart = self.fields.len();
        }
        let before = self.mistake.take();
        match (instead, &mut *value) {
            (_, Value::Object(object)) => self.object(whole, object, 0)?,
            ("OrArray", Value::Array(items)) => {
                for item in items {
                    match item {
                        Value::Object(object) => self.object(whole, object, 0)?,
                        Value::Null => *item = Value::Object(Map::new()),
                        other => self.note(self.mismatch(json_type(other), "v1.JSONSchemaProps")),
                    }
                }
            }
            ("OrStringArray", Value::Array(items)) => {
                for item in items {
                    match item {
                        Value::String(_) => {}
                        Value::Null => *item = Value::String(String::new()),
                        other => self.note(self.mismatch(json_type(other), "string")),
                    }
                }
            }
            ("OrBool", Value::Bool(_)) => {}
            ("OrBool", _) => return Err("boolean or JSON schema expected".to_owned()),
            // Anything else is read, and is nothing.
            (_, other) => *other = Value::Null,
        }
        if let Some(mistake) = self.mistake.take() {
            return Err(mistake);
        }
        self.mistake = before;
        self.apart = apart;
        self.dropped.unknown.truncate(unknown);
        Ok(())
    }

    fn note(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }

    /// Notes that the field cannot hold what was found.
    fn misfit(&mut self, found: &str, depth: usize) {
        if self.mistake.is_some() {
            return;
        }
        let wanted = self.fields.last().and_then(|(owner, name)| go_types::field(owner, name));
        let wanted = wanted.map_or("struct", |field| field.type_at(depth));
        self.note(self.mismatch(found, wanted));
    }

    fn mismatch(&self, found: &str, wanted: &str) -> String {
        let told = if self.apart == 0 { self.fields.len() } else { self.apart };
        let Some((owner, _)) = told.checked_sub(1).and_then(|last| self.fields.get(last)) else {
            return format!("json: cannot unmarshal {found} into Go value of type {wanted}");
        };
        let mut path = String::new();
        for (owner, name) in &self.fields {
            let within = go_types::field(owner, name).map_or("", |field| field.within);
            if !within.is_empty() {
                push_field(&mut path, within);
            }
            push_field(&mut path, name);
        }
        let owner = owner.rsplit('.').next().unwrap_or_default();
        format!(
            "json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}"
        )
    }
}

/// Whether a whole number fits the field.
fn fits(node: &Node, number: &serde_json::Number) -> bool {
    let is_short = node.ty == Type::IntOrString || node.bounds.format.as_deref() == Some("int32");
    number.as_i64().is_some_and(|whole| !is_short || i32::try_from(whole).is_ok())
}

/// Whether a field is written as if it were not there.
fn is_left_out(node: &Node, value: &Value) -> bool {
    node.when_empty == WhenEmpty::Dropped
        && match value {
            Value::Null => true,
            Value::Bool(is_set) => !is_set,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
        }
}

fn quantity(value: &mut Value) -> Result<(), String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(homeostat_quota::NotAQuantity::Form.to_string()),
    };
    let amount: Quantity =
        text.trim().parse().map_err(|error: homeostat_quota::NotAQuantity| error.to_string())?;
    *value = Value::String(amount.to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::shape;
    use crate::schema::builtin::schemas;

    fn read(ty: &str, mut value: Value) -> Result<Value, String> {
        shape(schemas().named(ty).unwrap(), &mut value, "", false).map(|_| value)
    }

    const POD: &str = "io.k8s.api.core.v1.Pod";
    const DEFINITION: &str =
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";

    #[test]
    fn what_does_not_fit_is_told_with_the_type_of_go_and_the_embedded_structs_on_the_way() {
        let volume = json!({"spec": {"volumes": [{"configMap": {"items": "x", "name": 7}}]}});
        assert_eq!(
            read(POD, volume).unwrap_err(),
            "json: cannot unmarshal string into Go struct field \
             ConfigMapVolumeSource.spec.volumes.VolumeSource.configMap.items of type []v1.KeyToPath"
        );
        let limits = json!({"spec": {"containers": [{"resources": {"limits": 7}}]}});
        assert_eq!(
            read(POD, limits).unwrap_err(),
            "json: cannot unmarshal number into Go struct field \
             ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList"
        );
    }

    #[test]
    fn types_that_read_themselves_speak_before_the_first_mistake() {
        let both = json!({"spec": {"nodeName": 7, "overhead": {"cpu": "x"}}});
        assert!(read(POD, both).unwrap_err().starts_with("quantities must match"));
        let schema = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"items":
            {"externalDocs": {"url": 7}}}}}]}});
        assert_eq!(
            read(DEFINITION, schema).unwrap_err(),
            "json: cannot unmarshal number into Go struct field \
             JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.externalDocs.url of type string"
        );
    }

    #[test]
    fn what_is_empty_goes_where_it_may_be_left_out_and_is_no_pointer() {
        let given = json!({"spec": {"nodeName": "", "priority": 0, "hostPID": false, "containers": [],
            "volumes": [], "preemptionPolicy": "", "overhead": {}}});
        let kept = json!({"spec": {"priority": 0, "containers": [], "preemptionPolicy": ""}});
        assert_eq!(read(POD, given), Ok(kept));
    }
}
