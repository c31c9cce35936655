//! Schemas, versions and rules of a definition as kube-apiserver shows them in its answers: under
//! the names of its own fields, all of them, whether they are set or not.
//!
//! It only writes; whether anything is right is judged elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::text;

/// What a field of a schema holds, which is how it is shown, and when it counts as set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A string that is empty unless set.
    Text,
    /// A boolean that is false unless set.
    Flag,
    /// A scalar, list of scalars or free JSON that is null unless set.
    Json,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrList,
    SchemaOrFlag,
    SchemaOrNames,
    Docs,
    Rules,
}

/// A field of a schema.
pub(super) struct Field {
    /// Its name in JSON.
    pub(super) name: &'static str,
    /// Its name in answers.
    pub(super) shown: &'static str,
    form: Form,
}

const fn field(name: &'static str, shown: &'static str, form: Form) -> Field {
    Field { name, shown, form }
}

/// All fields of a schema, in the order in which they are shown and judged.
pub(super) const FIELDS: &[Field] = &[
    field("id", "ID", Form::Text),
    field("$schema", "Schema", Form::Text),
    field("$ref", "Ref", Form::Json),
    field("description", "Description", Form::Text),
    field("type", "Type", Form::Text),
    field("nullable", "Nullable", Form::Flag),
    field("format", "Format", Form::Text),
    field("title", "Title", Form::Text),
    field("default", "Default", Form::Json),
    field("maximum", "Maximum", Form::Json),
    field("exclusiveMaximum", "ExclusiveMaximum", Form::Flag),
    field("minimum", "Minimum", Form::Json),
    field("exclusiveMinimum", "ExclusiveMinimum", Form::Flag),
    field("maxLength", "MaxLength", Form::Json),
    field("minLength", "MinLength", Form::Json),
    field("pattern", "Pattern", Form::Text),
    field("maxItems", "MaxItems", Form::Json),
    field("minItems", "MinItems", Form::Json),
    field("uniqueItems", "UniqueItems", Form::Flag),
    field("multipleOf", "MultipleOf", Form::Json),
    field("enum", "Enum", Form::Json),
    field("maxProperties", "MaxProperties", Form::Json),
    field("minProperties", "MinProperties", Form::Json),
    field("required", "Required", Form::Json),
    field("items", "Items", Form::SchemaOrList),
    field("allOf", "AllOf", Form::Schemas),
    field("oneOf", "OneOf", Form::Schemas),
    field("anyOf", "AnyOf", Form::Schemas),
    field("not", "Not", Form::Schema),
    field("properties", "Properties", Form::SchemaMap),
    field("additionalProperties", "AdditionalProperties", Form::SchemaOrFlag),
    field("patternProperties", "PatternProperties", Form::SchemaMap),
    field("dependencies", "Dependencies", Form::SchemaOrNames),
    field("additionalItems", "AdditionalItems", Form::SchemaOrFlag),
    field("definitions", "Definitions", Form::SchemaMap),
    field("externalDocs", "ExternalDocs", Form::Docs),
    field("example", "Example", Form::Json),
    field("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", Form::Json),
    field("x-kubernetes-embedded-resource", "XEmbeddedResource", Form::Flag),
    field("x-kubernetes-int-or-string", "XIntOrString", Form::Flag),
    field("x-kubernetes-list-map-keys", "XListMapKeys", Form::Json),
    field("x-kubernetes-list-type", "XListType", Form::Json),
    field("x-kubernetes-map-type", "XMapType", Form::Json),
    field("x-kubernetes-validations", "XValidations", Form::Rules),
];

impl Field {
    /// Whether a schema sets it: an empty string does not, an empty list does.
    pub(super) fn is_set(&self, document: &Value) -> bool {
        match self.form {
            Form::Text => !text(document, &format!("/{}", self.name)).is_empty(),
            Form::Flag => super::flag(document, self.name),
            _ => document.get(self.name).is_some(),
        }
    }
}

/// A schema.
pub(super) fn schema(document: &Value) -> String {
    let mut out = String::new();
    write_schema(&mut out, document);
    safe(&out)
}

/// The `items` of a schema.
pub(super) fn items(items: &Value) -> String {
    let mut out = String::new();
    write_items(&mut out, items);
    safe(&out)
}

/// One of `x-kubernetes-validations`.
pub(super) fn rule(rule: &Value) -> String {
    let mut out = String::new();
    write_rule(&mut out, rule);
    safe(&out)
}

/// What is left of versions once what they share is said above them: nothing of a stanza that
/// `is_shared` names.
pub(super) fn versions(versions: &[&Value], is_shared: impl Fn(&str) -> bool) -> String {
    let mut out = String::new();
    let own = |version: &Value, name: &str| {
        version.get(name).filter(|_| !is_shared(name)).cloned().unwrap_or(Value::Null)
    };
    separated(&mut out, '[', ']', versions.iter(), |out, version| {
        let _ = write!(out, "{{\"Name\":{}", version.get("name").unwrap_or(&"".into()));
        for (name, shown) in [("served", "Served"), ("storage", "Storage")] {
            let _ = write!(out, ",{shown:?}:{}", super::flag(version, name));
        }
        let _ = write!(out, ",\"Deprecated\":{}", super::flag(version, "deprecated"));
        let warning = version.get("deprecationWarning").unwrap_or(&Value::Null);
        let _ = write!(out, ",\"DeprecationWarning\":{warning}");
        out.push_str(",\"Schema\":");
        match own(version, "schema") {
            Value::Null => out.push_str("null"),
            stanza => {
                out.push_str("{\"OpenAPIV3Schema\":");
                optional_schema(out, stanza.get("openAPIV3Schema"));
                out.push('}');
            }
        }
        out.push_str(",\"Subresources\":");
        write_subresources(out, &own(version, "subresources"));
        out.push_str(",\"AdditionalPrinterColumns\":");
        write_list(out, &own(version, "additionalPrinterColumns"), |out, column| {
            let given = |name: &str| Value::from(text(column, &format!("/{name}")));
            let priority = column.get("priority").cloned().unwrap_or_else(|| 0.into());
            let _ = write!(
                out,
                "{{\"Name\":{},\"Type\":{},\"Format\":{},\"Description\":{},\"Priority\":{priority},\
                 \"JSONPath\":{}}}",
                given("name"),
                given("type"),
                given("format"),
                given("description"),
                given("jsonPath"),
            );
        });
        out.push_str(",\"SelectableFields\":");
        write_list(out, &own(version, "selectableFields"), |out, field| {
            let _ = write!(out, "{{\"JSONPath\":{}}}", Value::from(text(field, "/jsonPath")));
        });
        out.push('}');
    });
    safe(&out)
}

/// Any JSON with the fields of objects in order.
pub(super) fn sorted(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    safe(&out)
}

fn write_subresources(out: &mut String, stanza: &Value) {
    if stanza.is_null() {
        out.push_str("null");
        return;
    }
    let status = if stanza.get("status").is_some() { "{}" } else { "null" };
    let _ = write!(out, "{{\"Status\":{status},\"Scale\":");
    match stanza.get("scale") {
        None => out.push_str("null"),
        Some(scale) => {
            let given = |name: &str| Value::from(text(scale, &format!("/{name}")));
            let selector = scale.get("labelSelectorPath").unwrap_or(&Value::Null);
            let _ = write!(
                out,
                "{{\"SpecReplicasPath\":{},\"StatusReplicasPath\":{},\"LabelSelectorPath\":{selector}}}",
                given("specReplicasPath"),
                given("statusReplicasPath"),
            );
        }
    }
    out.push('}');
}

fn write_schema(out: &mut String, document: &Value) {
    separated(out, '{', '}', FIELDS.iter(), |out, field| {
        let _ = write!(out, "{:?}:", field.shown);
        let value = document.get(field.name).unwrap_or(&Value::Null);
        match field.form {
            Form::Text => {
                let _ = write!(out, "{}", Value::from(value.as_str().unwrap_or_default()));
            }
            Form::Flag => {
                let _ = write!(out, "{}", value.as_bool().unwrap_or_default());
            }
            Form::Json => write_json(out, value),
            _ if document.get(field.name).is_none() => out.push_str("null"),
            Form::Schema => write_schema(out, value),
            Form::Schemas => write_list(out, value, write_schema),
            Form::SchemaMap => write_map(out, value, write_schema),
            Form::SchemaOrList => write_items(out, value),
            Form::SchemaOrFlag => {
                let allows = value.is_object() || value == &Value::Bool(true);
                let _ = write!(out, "{{\"Allows\":{allows},\"Schema\":");
                optional_schema(out, Some(value));
                out.push('}');
            }
            Form::SchemaOrNames => write_map(out, value, |out, value| {
                out.push_str("{\"Schema\":");
                optional_schema(out, Some(value));
                out.push_str(",\"Property\":");
                write_list(out, value, write_json);
                out.push('}');
            }),
            Form::Docs => {
                let (about, url) = (text(value, "/description"), text(value, "/url"));
                let (about, url) = (Value::from(about), Value::from(url));
                let _ = write!(out, "{{\"Description\":{about},\"URL\":{url}}}");
            }
            Form::Rules => write_list(out, value, write_rule),
        }
    });
}

fn write_items(out: &mut String, items: &Value) {
    out.push_str("{\"Schema\":");
    optional_schema(out, Some(items));
    out.push_str(",\"JSONSchemas\":");
    write_list(out, items, write_schema);
    out.push('}');
}

fn optional_schema(out: &mut String, document: Option<&Value>) {
    match document.filter(|document| document.is_object()) {
        Some(document) => write_schema(out, document),
        None => out.push_str("null"),
    }
}

fn write_rule(out: &mut String, rule: &Value) {
    let given = |name: &str| Value::from(text(rule, &format!("/{name}")));
    let or_null = |name: &str| rule.get(name).cloned().unwrap_or(Value::Null);
    let _ = write!(
        out,
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\
         \"OptionalOldSelf\":{}}}",
        given("rule"),
        given("message"),
        given("messageExpression"),
        or_null("reason"),
        given("fieldPath"),
        or_null("optionalOldSelf"),
    );
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Array(_) => write_list(out, value, write_json),
        Value::Object(_) => write_map(out, value, write_json),
        // A whole number is shown as one, however it was written.
        Value::Number(number) => {
            let shown = number.to_string();
            out.push_str(shown.strip_suffix(".0").unwrap_or(&shown));
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

fn write_list(out: &mut String, list: &Value, write: impl Fn(&mut String, &Value)) {
    match list.as_array() {
        Some(items) => separated(out, '[', ']', items.iter(), write),
        None => out.push_str("null"),
    }
}

fn write_map(out: &mut String, map: &Value, write: impl Fn(&mut String, &Value)) {
    let in_order: BTreeMap<_, _> = map.as_object().into_iter().flatten().collect();
    separated(out, '{', '}', in_order.into_iter(), |out, (name, value)| {
        let _ = write!(out, "{}:", Value::from(name.as_str()));
        write(out, value);
    });
}

fn separated<T>(
    out: &mut String,
    open: char,
    close: char,
    items: impl Iterator<Item = T>,
    write: impl Fn(&mut String, T),
) {
    out.push(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(close);
}

/// JSON that is safe inside HTML.
fn safe(text: &str) -> String {
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
