//! Published values as kube-apiserver holds them: its internal types, whose fields are called and
//! ordered otherwise, and are there whether they are set or not. Answers show refused values so.
//!
//! Read when it is needed for the first time: objects that are right never ask.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::LazyLock;

use serde_json::{Map, Value};

const TABLE: &[u8] = include_bytes!("../../data/internal-types.txt.gz");

/// Begins the names of types that hold a schema or something else.
const INSTEAD: &str = ".JSONSchemaPropsOr";

/// Below the name of every published type, which begins a line, a line per field: after a tab its
/// internal name, where it comes from, its type, and `omitted` if it is left out when empty.
static TYPES: LazyLock<BTreeMap<&str, Vec<Field>>> = LazyLock::new(|| {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut text = String::new();
        #[expect(clippy::expect_used, reason = "compiled-in data, read by a test")]
        flate2::read::GzDecoder::new(TABLE).read_to_string(&mut text).expect("the generated types");
        text
    });
    let mut types = BTreeMap::new();
    let mut own: &mut Vec<Field> = &mut Vec::new();
    for line in TEXT.lines() {
        match line.strip_prefix('\t') {
            None => own = types.entry(line).or_default(),
            Some(line) => own.extend(Field::read(line)),
        }
    }
    types
});

/// A field of an internal type.
pub(crate) struct Field {
    /// Its name there.
    pub(crate) shown: &'static str,
    /// Its published name, with dots between those on the way to it; after `^` it is one of the
    /// object around this one, after `?` the value itself, if that is of the type named there.
    pub(crate) from: &'static str,
    ty: &'static str,
    omitted: bool,
}

impl Field {
    fn read(line: &'static str) -> Option<Self> {
        let mut parts = line.split('\t');
        let mut next = || parts.next();
        let (shown, from, ty) = (next()?, next()?, next()?);
        Some(Self { shown, from, ty, omitted: next().is_some() })
    }

    /// Whether a published value sets it: an empty text does not, an empty list does.
    pub(crate) fn is_set(&self, value: &Value) -> bool {
        match (self.ty, value.get(self.from)) {
            ("string", Some(value)) => value.as_str().is_some_and(|text| !text.is_empty()),
            ("bool", Some(value)) => value == &Value::Bool(true),
            ("number", Some(value)) => value.as_f64() != Some(0.0),
            (_, value) => value.is_some(),
        }
    }

    fn source<'a>(&self, value: &'a Value, around: &'a Value) -> Option<&'a Value> {
        match (self.from.split_at_checked(1), value) {
            (Some(("^", name)), _) => around.get(name),
            (Some(("?", "object")), Value::Object(_)) | (Some(("?", "array")), Value::Array(_)) => {
                Some(value)
            }
            (Some(("?", "allows")), value) => {
                Some(if value == &Value::Bool(false) { value } else { &Value::Bool(true) })
            }
            (Some(("?", _)), _) => None,
            _ => self.from.split('.').try_fold(value, |value, name| value.get(name)),
        }
    }
}

/// The fields of the internal counterpart of a published type, in their order.
pub(crate) fn fields(ty: &str) -> &'static [Field] {
    TYPES.get(ty).map_or(&[], Vec::as_slice)
}

/// A value of a published type (`io.k8s.api.core.v1.PodSpec`) in its internal form. The type may be
/// one of lists (`[]`), of maps (`map[]`), or one that need not be there (`*`).
pub(crate) fn form(ty: &str, value: &Value) -> Value {
    formed(ty, Some(value).filter(|value| !value.is_null()), &Value::Null)
}

/// What is at a pointer in an object of a built-in kind, in its internal form; as it is where the
/// internal type has no such field.
pub(crate) fn part(object: &Value, pointer: &str) -> Value {
    let value = object.pointer(pointer).unwrap_or(&Value::Null);
    let is = |field: &str, word: &str| object.get(field).is_some_and(|found| found == word);
    let kind = crate::kinds::builtin()
        .iter()
        .find(|kind| is("kind", &kind.kind) && is("apiVersion", &kind.api_version()));
    let root = kind.map_or("", |kind| kind.schema.root().node().name.as_str());
    let ty = pointer.split('/').skip(1).try_fold(root, |ty, name| {
        let ty = ty.trim_start_matches('*');
        fields(ty).iter().find(|field| field.from == name).map(|field| field.ty)
    });
    ty.map_or_else(|| value.clone(), |ty| form(ty, value))
}

fn formed(ty: &str, value: Option<&Value>, around: &Value) -> Value {
    if let Some(of) = ty.strip_prefix('*') {
        // What stands instead of a schema and is nothing is there nevertheless.
        let is_nothing = value.is_none_or(|value| value.is_null() && !of.contains(INSTEAD));
        return if is_nothing { Value::Null } else { formed(of, value, around) };
    }
    if let Some(of) = ty.strip_prefix("[]") {
        let items = value.and_then(Value::as_array);
        let items = items.map(|items| items.iter().map(|item| formed(of, Some(item), around)));
        return items.map_or(Value::Null, |items| items.collect());
    }
    if let Some(of) = ty.strip_prefix("map[]") {
        let in_order: Option<BTreeMap<_, _>> =
            value.and_then(Value::as_object).map(|map| map.iter().collect());
        let entries = in_order.map(|map| {
            map.into_iter().map(|(name, value)| (name.clone(), formed(of, Some(value), around)))
        });
        return entries.map_or(Value::Null, |entries| Value::Object(entries.collect()));
    }
    match (ty, value.filter(|value| !value.is_null())) {
        ("string", value) => value.cloned().unwrap_or_else(|| "".into()),
        ("bool", value) => value.cloned().unwrap_or_else(|| false.into()),
        ("amount", value) => value.cloned().unwrap_or_else(|| "0".into()),
        ("number" | "number or string", value) => value.map_or_else(|| 0.into(), in_order),
        ("json", value) => value.map_or(Value::Null, in_order),
        (name, value) => object(fields(name), value.unwrap_or(&Value::Null), around),
    }
}

fn object(fields: &[Field], value: &Value, around: &Value) -> Value {
    let mut shown = Map::new();
    for field in fields {
        let source = field.source(value, around);
        let is_empty = match source {
            None => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Object(map)) => map.is_empty() && field.ty.starts_with("map[]"),
            Some(Value::Number(number)) => number.as_f64() == Some(0.0),
            Some(other) => other == &Value::Bool(false),
        };
        if field.omitted && is_empty && !(field.ty.starts_with('*') && source.is_some()) {
            continue;
        }
        shown.insert(field.shown.to_owned(), formed(field.ty, source, value));
    }
    Value::Object(shown)
}

/// Any JSON as Go keeps it: the fields of objects in order, and whole numbers as such.
pub(crate) fn in_order(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(in_order).collect(),
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            let entries = sorted.into_iter().map(|(name, value)| (name.clone(), in_order(value)));
            Value::Object(entries.collect())
        }
        Value::Number(number) => {
            let whole = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15);
            #[expect(clippy::cast_possible_truncation, reason = "only a whole number is taken")]
            whole.map_or_else(|| value.clone(), |whole| Value::from(whole as i64))
        }
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::form;

    #[test]
    fn what_a_pod_says_of_its_host_is_shown_in_its_security_context() {
        let spec = json!({"hostNetwork": true, "containers": [{"name": "c", "ports": [{}]}]});
        let shown = form("io.k8s.api.core.v1.PodSpec", &spec);
        assert_eq!(shown["SecurityContext"]["HostNetwork"], true);
        assert_eq!(shown["Containers"][0]["Ports"][0]["ContainerPort"], 0);
        assert_eq!(shown["Containers"][0]["Lifecycle"], json!(null));
        assert_eq!(shown["Containers"][0]["Resources"]["Limits"], json!(null));
        let names: Vec<_> = shown.as_object().unwrap().keys().take(3).collect();
        assert_eq!(names, ["Volumes", "InitContainers", "Containers"]);
    }

    #[test]
    fn shared_types_keep_their_names_and_leave_out_what_is_empty() {
        let selector = json!({"matchLabels": {"b": "1", "a": "2"}});
        let ty = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
        assert_eq!(form(ty, &selector).to_string(), r#"{"matchLabels":{"a":"2","b":"1"}}"#);
    }

    #[test]
    fn what_stands_instead_of_a_schema_is_told_by_its_type() {
        let ty = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
        let schema = json!({"items": [{"type": "string"}], "additionalProperties": false,
            "default": {"b": 1.0, "a": null}});
        let shown = form(ty, &schema);
        assert_eq!(shown["Items"]["Schema"], json!(null));
        assert_eq!(shown["Items"]["JSONSchemas"][0]["Type"], "string");
        assert_eq!(shown["AdditionalProperties"], json!({"Allows": false, "Schema": null}));
        assert_eq!(shown["Default"].to_string(), r#"{"a":null,"b":1}"#);
    }
}
