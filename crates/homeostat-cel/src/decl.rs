//! The schema of a custom resource as expressions see it: a type, and how large values can be.
//!
//! Sizes are what a request can hold at most, unless the schema says less.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::lists::Listing;
use super::types::{Object, Type};

/// The largest request that is read, in bytes.
pub(super) const LARGEST_REQUEST: i64 = 3 * 1024 * 1024;

/// A declared value.
#[derive(Debug, Clone)]
pub struct Decl {
    /// What it is.
    pub ty: Type,
    /// How many items, entries or bytes there can be.
    pub(super) max_elements: u64,
    /// The least bytes of its JSON.
    pub min_size: i64,
    /// Items of a list, values of a map.
    pub element: Option<Box<Decl>>,
    /// Fields by the names expressions use.
    pub fields: BTreeMap<String, Decl>,
    /// What tells its items apart.
    pub listing: Listing,
    /// How many bytes a key of a map can have. Schemas do not say.
    pub(super) max_key: u64,
    /// A map whose values may be named like fields.
    pub(super) is_open: bool,
}

fn sized(ty: Type, min_size: i64, max_elements: i64) -> Decl {
    let max_elements = u64::try_from(max_elements).unwrap_or_default();
    let (fields, listing) = (BTreeMap::new(), Listing::Ordered);
    let (max_key, is_open) = (0, false);
    Decl { ty, max_elements, min_size, element: None, fields, listing, max_key, is_open }
}

impl Decl {
    /// What a schema document declares; `None` for what expressions cannot see. `name` is what its
    /// type is called.
    pub fn of(document: &Value, is_resource: bool, name: &str) -> Option<Self> {
        let flag = |field: &str| document.get(field) == Some(&Value::Bool(true));
        let count = |field: &str| document.get(field).and_then(Value::as_i64).map(|n| n.max(0));
        if flag("x-kubernetes-int-or-string") {
            let most = count("maxLength").map_or(LARGEST_REQUEST - 2, |length| length * 4);
            return Some(sized(Type::Dyn, 1, most));
        }
        let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or("");
        match text("type") {
            "array" => {
                let item = Self::below(document.get("items")?, &format!("{name}.@idx"))?;
                let fitting = (LARGEST_REQUEST - 2) / (item.min_size + 1);
                let most = count("maxItems").unwrap_or(fitting);
                let mut list = sized(Type::list(item.ty.clone()), 2, most);
                list.element = Some(Box::new(item));
                list.listing = listing(document);
                Some(list)
            }
            "object" => match document.get("additionalProperties").filter(|v| v.is_object()) {
                Some(values) if !is_resource => {
                    let value = Self::below(values, &format!("{name}.@elem"))?;
                    let fitting = (LARGEST_REQUEST - 2) / (value.min_size + 6);
                    let most = count("maxProperties").unwrap_or(fitting);
                    let mut map = sized(Type::map(Type::String, value.ty.clone()), 2, most);
                    map.element = Some(Box::new(value));
                    Some(map)
                }
                _ => Some(Self::object(document, is_resource, name)),
            },
            "string" => Some(Self::string(document, text("format"), count("maxLength"))),
            "boolean" => Some(sized(Type::Bool, 4, 0)),
            "number" => Some(sized(Type::Double, 1, 0)),
            "integer" => Some(sized(Type::Int, 1, 0)),
            _ => None,
        }
    }

    /// A value without parts.
    pub(super) fn plain(ty: Type, max_elements: u64) -> Self {
        Decl { max_elements, ..sized(ty, 0, 0) }
    }

    /// A map with keys that have at most so many bytes, and with at most so many entries.
    pub(super) fn map(max_key: u64, value: Self, max_elements: u64) -> Self {
        let ty = Type::map(Type::String, value.ty.clone());
        let element = Some(Box::new(value));
        Decl { max_elements, max_key, element, ..sized(ty, 0, 0) }
    }

    fn below(document: &Value, name: &str) -> Option<Self> {
        let embedded = document.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
        Self::of(document, embedded, name)
    }

    fn string(document: &Value, format: &str, length: Option<i64>) -> Self {
        let all = LARGEST_REQUEST - 2;
        match format {
            "byte" => sized(Type::Bytes, 2, length.unwrap_or(all)),
            "duration" => sized(Type::Duration, 3, 32),
            "date" => sized(Type::Timestamp, 12, 12),
            "date-time" => sized(Type::Timestamp, 21, 32),
            _ => {
                let values = document.get("enum").and_then(Value::as_array);
                let longest = values.filter(|values| !values.is_empty()).map(|values| {
                    let lengths = values.iter().filter_map(Value::as_str).map(str::len);
                    i64::try_from(lengths.max().unwrap_or(0)).unwrap_or(all)
                });
                let most = length.map(|length| length * 4).or(longest).unwrap_or(all);
                sized(Type::String, 2, most)
            }
        }
    }

    fn object(document: &Value, is_resource: bool, name: &str) -> Self {
        let required: Vec<&str> = document
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut fields: BTreeMap<String, Decl> = BTreeMap::new();
        let mut min_size = 2;
        let is_resource = is_resource && !declares_names(document);
        let own = document.get("properties").and_then(Value::as_object).into_iter().flatten();
        let always = ["apiVersion", "kind", "metadata"];
        for (field, schema) in
            own.filter(|(field, _)| !(is_resource && always.contains(&field.as_str())))
        {
            let Some(decl) = Self::below(schema, &format!("{name}.{field}")) else { continue };
            if required.contains(&field.as_str()) && schema.get("default").is_none() {
                let named = i64::try_from(field.len()).unwrap_or_default();
                min_size += named + decl.min_size + 4;
            }
            if let Some(escaped) = escape(field) {
                fields.insert(escaped, decl);
            }
        }
        if is_resource {
            let text = || sized(Type::String, 2, LARGEST_REQUEST - 2);
            fields.insert("apiVersion".to_owned(), text());
            fields.insert("kind".to_owned(), text());
            let names = ["name", "generateName"].map(|field| (field.to_owned(), text()));
            let name = format!("{name}.metadata");
            fields.insert("metadata".to_owned(), Self::of_fields(name, names.into(), 2));
        }
        Self::of_fields(name.to_owned(), fields, min_size)
    }

    pub(super) fn of_fields(name: String, fields: BTreeMap<String, Decl>, min_size: i64) -> Self {
        let types = fields.iter().map(|(name, decl)| (name.clone(), decl.ty.clone())).collect();
        let ty = Type::Object(Arc::new(Object { name, fields: types }));
        Decl { fields, ..sized(ty, min_size, 0) }
    }
}

/// Whether an object declares all that expressions always see of one, and is taken at its word.
fn declares_names(document: &Value) -> bool {
    let fields = [
        ("kind", "string"),
        ("apiVersion", "string"),
        ("metadata", "object"),
        ("metadata/properties/name", "string"),
        ("metadata/properties/generateName", "string"),
    ];
    fields.iter().all(|(field, ty)| {
        let declared = document.pointer(&format!("/properties/{field}/type"));
        declared.is_some_and(|declared| declared == ty)
    })
}

/// What the schema says of a list. Keys whose names must be escaped are not found in Kubernetes,
/// which looks for them under those.
fn listing(document: &Value) -> Listing {
    match document.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => Listing::Set,
        Some("map") => {
            let keys = document.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let names = keys.into_iter().flatten().filter_map(Value::as_str);
            let read = |name: &str| escape(name).is_none_or(|escaped| escaped == name);
            Listing::Keyed(names.map(|name| read(name).then(|| name.to_owned())).collect())
        }
        _ => Listing::Ordered,
    }
}

/// Words of the language, and how fields of that name are written.
const RESERVED: &[(&str, &str)] = &[
    ("true", "__true__"),
    ("false", "__false__"),
    ("null", "__null__"),
    ("in", "__in__"),
    ("as", "__as__"),
    ("break", "__break__"),
    ("const", "__const__"),
    ("continue", "__continue__"),
    ("else", "__else__"),
    ("for", "__for__"),
    ("function", "__function__"),
    ("if", "__if__"),
    ("import", "__import__"),
    ("let", "__let__"),
    ("loop", "__loop__"),
    ("package", "__package__"),
    ("namespace", "__namespace__"),
    ("return", "__return__"),
    ("var", "__var__"),
    ("void", "__void__"),
    ("while", "__while__"),
];

/// How a field is written whose name is a word of the language.
pub(super) fn escaped_word(name: &str) -> Option<&'static str> {
    RESERVED.iter().find(|(word, _)| *word == name).map(|(_, escaped)| *escaped)
}

/// Whether a name is a word of the language.
pub fn is_word(name: &str) -> bool {
    escaped_word(name).is_some()
}

/// The name of a field in expressions; `None` when it cannot be written.
pub(super) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if let Some(escaped) = escaped_word(name) {
        return Some(escaped.to_owned());
    }
    let plain = |char: char| char.is_ascii_alphanumeric() || char == '_';
    if !name.chars().all(|char| plain(char) || matches!(char, '.' | '-' | '/' | '$')) {
        return None;
    }
    if name.contains('$') {
        return None;
    }
    Some(
        name.replace("__", "__underscores__")
            .replace('.', "__dot__")
            .replace('-', "__dash__")
            .replace('/', "__slash__"),
    )
}
