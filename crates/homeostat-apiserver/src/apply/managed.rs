//! `metadata.managedFields`: who owns which fields, and since when.
//!
//! Reads and writes the list; who gains and loses what is decided in
//! [`ownership`](super::ownership).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::set::FieldSet;

/// How a manager came to own fields. Appliers are listed before updaters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// Who owns fields. An applier is one and the same whichever version it speaks, so its version is
/// empty here; updaters are told apart by it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) name: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
}

/// What an owner owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) fields: FieldSet,
    pub(super) api_version: String,
    /// As written: a time that only passes through is never reformatted.
    pub(super) time: Option<String>,
}

/// All owners of an object's fields.
pub(super) type Managed = BTreeMap<Owner, Owned>;

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The quoted name with what tells it from others, as conflicts mention it.
impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        match self.operation {
            Operation::Update => write!(f, " using {}", self.api_version),
            Operation::Apply => Ok(()),
        }
    }
}

/// The list as it stands in an object, `null` and absent being the same.
pub(super) fn entries(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields").filter(|entries| !entries.is_null())
}

/// Reads the list of an object; an object without it has no owners.
///
/// # Errors
/// Says what is wrong with the first entry that cannot be read.
pub(super) fn decode(object: &Value) -> Result<Managed, String> {
    let Some(list) = entries(object) else { return Ok(Managed::new()) };
    let list = list.as_array().ok_or("metadata.managedFields is not a list")?;
    list.iter().enumerate().map(|(position, entry)| decode_entry(position, entry)).collect()
}

fn decode_entry(position: usize, entry: &Value) -> Result<(Owner, Owned), String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let operation = match text("operation").as_str() {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType").as_str() {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {position}")),
        other => {
            return Err(format!("invalid fieldsType {other:?} in managed fields entry {position}"));
        }
    }
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => FieldSet::from_fields_v1(fields)?,
    };
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    let owner = Owner {
        name: text("manager"),
        operation,
        api_version: if operation == Operation::Apply {
            String::new()
        } else {
            api_version.clone()
        },
        subresource: text("subresource"),
    };
    Ok((owner, Owned { fields, api_version, time }))
}

/// Whether the list of an object can be read.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_owners(object: &Value) -> Result<(), String> {
    decode(object).map(drop)
}

/// Writes the list into an object, or takes it out when nobody owns anything.
pub(super) fn encode(object: &mut Value, managed: Managed) {
    let Value::Object(object) = object else { return };
    if managed.is_empty() {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        return;
    }
    let mut owners: Vec<(Owner, Owned)> = managed.into_iter().collect();
    owners.sort_by(|(a, of_a), (b, of_b)| {
        let seconds = |owned: &Owned| owned.time.as_deref().map_or(0, seconds_of);
        (a.operation, seconds(of_a), &a.name, &of_a.api_version, &a.subresource).cmp(&(
            b.operation,
            seconds(of_b),
            &b.name,
            &of_b.api_version,
            &b.subresource,
        ))
    });
    let list = owners.into_iter().map(|(owner, owned)| encode_entry(owner, owned)).collect();
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(metadata) = metadata {
        metadata.insert("managedFields".to_owned(), Value::Array(list));
    }
}

fn encode_entry(owner: Owner, owned: Owned) -> Value {
    let mut entry = Map::new();
    if !owner.name.is_empty() {
        entry.insert("manager".to_owned(), owner.name.into());
    }
    entry.insert("operation".to_owned(), owner.operation.name().into());
    entry.insert("apiVersion".to_owned(), owned.api_version.into());
    if let Some(time) = owned.time {
        entry.insert("time".to_owned(), time.into());
    }
    entry.insert("fieldsType".to_owned(), "FieldsV1".into());
    entry.insert("fieldsV1".to_owned(), owned.fields.to_fields_v1());
    if !owner.subresource.is_empty() {
        entry.insert("subresource".to_owned(), owner.subresource.into());
    }
    Value::Object(entry)
}

/// Seconds since 1970; what cannot be read counts as the oldest.
pub(super) fn seconds_of(time: &str) -> i64 {
    time.parse::<Timestamp>().map_or(0, Timestamp::as_second)
}

/// `[{}]` asks to forget all owners; so does `[]`, except in custom resources, whose metadata
/// comes without empty lists.
pub(super) fn asks_for_reset(object: &Value, custom: bool) -> bool {
    match entries(object).and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => !custom,
        Some([only]) => *only == json!({}),
        _ => false,
    }
}
