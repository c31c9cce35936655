//! From bytes to a JSON value, the way the API reads request bodies: duplicate keys are noticed,
//! nesting is bounded, and for built-in kinds the value is brought into the shape of its type.
//!
//! It never fills defaults and never judges values beyond what a typed decoder would refuse.

mod bytes;
mod embedded;
mod emptied;
pub(crate) mod moment;
mod order;
mod plain;
mod tree;
mod typed;
mod yaml_error;

use serde::de::DeserializeSeed as _;
use serde_json::Value;

use crate::kinds::Kind;
use crate::schema::Schema;

pub(crate) use embedded::{embedded, object_meta};
pub use emptied::Emptied;
pub use homeostat_quota::Quantity;
pub use order::DocumentOrder;

/// How deep a body may nest. Deeper ones are refused before they can exhaust the stack.
pub const MAX_DEPTH: usize = 100;

/// Of fields that are not known or repeated, so many are told of. A body may hold a hundred thousand.
pub(crate) const MOST_COMPLAINTS: usize = 100;

/// The aliases of a YAML body may stand for so much, all together: a few lines can mean gigabytes.
const MOST_REPLAYED: usize = 50_000;

/// How much stack the reader of YAML gets: it takes tens of kilobytes for each level.
const ROOM: usize = 16 * 1024 * 1024;

/// A body that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decoded {
    /// The value; of a key that was given twice it holds the last one.
    pub value: Value,
    /// The paths of keys that were given twice: `spec.replicas`.
    pub duplicates: Vec<String>,
}

/// What fell away when a value was brought into the shape of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shaped {
    /// The paths of fields that the kind does not have: `spec.odd`.
    pub unknown: Vec<String>,
    /// Lists and maps that were given and are empty.
    pub emptied: Emptied,
}

/// Why a body cannot be read: always the client's fault, a 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not the format it claims to be.
    #[error("{0}")]
    Syntax(String),
    /// A value of another JSON type than the field's.
    #[error("{given} in version \"{version}\" cannot be handled as a {kind}: {reason}")]
    Type {
        /// What the object calls itself.
        given: String,
        /// The kind being decoded.
        kind: String,
        /// Its version.
        version: String,
        /// Which field, and what was expected.
        reason: String,
    },
}

impl DecodeError {
    /// Why an object that calls itself `given` cannot be read as one of the kind.
    pub(crate) fn of(kind: &Kind, given: &str, reason: String) -> Self {
        let (kind, version) = (kind.kind.clone(), kind.version.clone());
        Self::Type { given: given.to_owned(), kind, version, reason }
    }
}

/// Reads a JSON body.
///
/// # Errors
/// [`DecodeError::Syntax`] for anything but one JSON value of bounded depth.
pub fn json(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let mut reading = tree::Reading::default();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = tree::Tree(&mut reading)
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| {
            // What nests too deep is JSON nevertheless.
            let words = crate::go::syntax::complaint(bytes);
            DecodeError::Syntax(words.unwrap_or_else(|| error.to_string()))
        })?;
    Ok(Decoded { value, duplicates: reading.duplicates })
}

/// Reads a YAML body of one document; JSON is YAML too.
///
/// # Errors
/// [`DecodeError::Syntax`] for anything but one YAML document of bounded depth and size.
pub fn yaml(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    match plain::read(bytes) {
        Some(value) => Ok(Decoded { value, duplicates: Vec::new() }),
        None => with_room(|| yaml_of_any_style(bytes))
            .unwrap_or_else(|| Err(DecodeError::Syntax("no thread is left to read it".to_owned()))),
    }
}

/// Does the work on a stack of its own, and waits for it; `None` when the system has no thread left.
fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let done = std::thread::Builder::new().stack_size(ROOM).spawn_scoped(scope, work).ok()?;
        Some(done.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn yaml_of_any_style(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let mut reading = tree::Reading::default();
    let options = yaml_options(serde_saphyr::DuplicateKeyPolicy::LastWins);
    let value = serde_saphyr::with_deserializer_from_slice_with_options(bytes, options, |reader| {
        tree::Tree(&mut reading).deserialize(reader)
    })
    .map_err(|error| {
        let words = yaml_error::words(&error);
        DecodeError::Syntax(format!("error converting YAML to JSON: {words}"))
    })?;
    Ok(Decoded { value, duplicates: reading.duplicates })
}

/// How deep and how large a body may be is decided where JSON is, too: by [`MAX_DEPTH`], and by who
/// reads the bytes.
fn yaml_options(duplicate_keys: serde_saphyr::DuplicateKeyPolicy) -> serde_saphyr::Options {
    serde_saphyr::options! {
        duplicate_keys: duplicate_keys,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MOST_REPLAYED },
        budget: serde_saphyr::budget! {
            max_depth: 2 * MAX_DEPTH,
            max_nodes: usize::MAX,
            max_events: usize::MAX,
        },
    }
}

/// What a strict reader of YAML says about a body with a repeated key: where the first one is.
/// `duplicates` are the paths that [`yaml`] found in it.
#[must_use]
pub fn yaml_complaint(bytes: &[u8], duplicates: &[String]) -> Option<String> {
    let key = duplicates.first()?.rsplit('.').next().unwrap_or_default();
    let line = with_room(|| {
        let options = yaml_options(serde_saphyr::DuplicateKeyPolicy::Error);
        let read =
            serde_saphyr::with_deserializer_from_slice_with_options(bytes, options, |reader| {
                tree::Tree(&mut tree::Reading::default()).deserialize(reader)
            });
        read.err().and_then(|error| error.location()).map_or(0, |at| at.line())
    });
    let line = line.unwrap_or_default();
    Some(format!("line {line}: key {key:?} already set in map"))
}

/// Brings a value into the shape of its kind: fields the kind does not have are dropped. Built-in kinds
/// are shaped all through (`null` fields become absent, quantities are written canonically); of custom
/// resources only `metadata` is, theirs and that of objects in them, the rest is judged later. One that
/// calls itself something else keeps what it has.
///
/// # Errors
/// [`DecodeError::Type`] when a field holds a value that its type cannot hold.
pub fn typed(kind: &Kind, value: &mut Value) -> Result<Shaped, DecodeError> {
    let root = kind.schema.root();
    let given = value.get("kind").and_then(Value::as_str).unwrap_or(&kind.kind).to_owned();
    let refused = |reason| DecodeError::of(kind, &given, reason);
    let Some(custom) = &kind.custom else {
        return typed::shape(root, value, "", kind.strategy.empty_counts).map_err(refused);
    };
    let mut dropped = Shaped::default();
    if let Some(metadata) = value.get_mut("metadata") {
        dropped = object_meta(metadata, "metadata").map_err(refused)?;
    }
    let version = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if given != kind.kind || version.split_once('/').is_none_or(|(group, _)| group != kind.group) {
        return Ok(dropped);
    }
    let schema = match custom.versions.schema(version) {
        Some(schema) => schema.root(),
        None => crate::custom::nothing(),
    };
    let mut unknown = crate::custom::prune(schema, value);
    unknown.sort_unstable();
    dropped.unknown.append(&mut unknown);
    let read = embedded(schema, value, "", &mut unknown);
    read.map_err(|error| refused(error.to_string()))?;
    unknown.sort_unstable();
    dropped.unknown.append(&mut unknown);
    Ok(dropped)
}

/// Drops what is empty and may be left out from an object of a built-in kind that was shaped, where
/// its kind had it counted until now.
pub(crate) fn drop_empty(kind: &Kind, value: &mut Value) {
    let done = typed::shape(kind.schema.root(), value, "", false);
    debug_assert!(done.is_ok(), "what was read once can be read again");
}

/// Brings a value into the shape of a published type.
///
/// # Errors
/// What does not fit, in Go's words.
pub(crate) fn typed_as(ty: &str, value: &mut Value) -> Result<(), String> {
    let Some(schema) = crate::schema::builtin::schemas().named(ty) else { return Ok(()) };
    typed::shape(schema, value, "", false).map(drop)
}

/// Brings bytes in base64 into the form in which they are written again.
///
/// # Errors
/// Where they are wrong.
pub(crate) fn bytes(text: &mut String) -> Result<(), String> {
    bytes::read(text)
}

/// The same of a value of a published type.
pub(crate) fn drop_empty_of(ty: &str, value: &mut Value) {
    if let Some(schema) = crate::schema::builtin::schemas().named(ty) {
        let done = typed::shape(schema, value, "", false);
        debug_assert!(done.is_ok(), "what was read once can be read again");
    }
}

/// The paths of fields that the schema does not know, in document order. Nothing is changed.
#[must_use]
pub fn unknown_fields(schema: Schema<'_>, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    typed::unknown(schema, value, &mut String::new(), &mut found);
    found
}

/// The words of strict validation, as errors list them and warnings show them one by one.
#[must_use]
pub fn strict_messages(unknown: &[String], duplicates: &[String]) -> Vec<String> {
    let duplicates = duplicates.iter().map(|path| format!("duplicate field \"{path}\""));
    let unknown = unknown.iter().map(|path| format!("unknown field \"{path}\""));
    duplicates.chain(unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_of_two_keys_wins_and_the_pair_is_reported_by_path() {
        let body = br#"{"spec":{"a":1,"a":2,"list":[{"b":1,"b":2}]}}"#;
        for decoded in [json(body).unwrap(), yaml(body).unwrap()] {
            assert_eq!(decoded.value, json!({"spec": {"a": 2, "list": [{"b": 2}]}}));
            assert_eq!(decoded.duplicates, ["spec.a", "spec.list[0].b"]);
        }
    }

    #[test]
    fn of_very_many_repeated_keys_a_hundred_are_reported() {
        let keys: Vec<String> = (0..20_000).map(|at| format!("\"k{}\":{at}", at / 2)).collect();
        let decoded = json(format!("{{{}}}", keys.join(",")).as_bytes()).unwrap();
        assert_eq!((decoded.duplicates.len(), &*decoded.duplicates[99]), (100, "k99"));
        assert_eq!(decoded.value["k9999"], 19_999);
    }

    #[test]
    fn a_key_that_is_repeated_without_end_is_told_of_once_however_long_its_path() {
        let fields = "\"a\":1,".repeat(100_000);
        let long = "x".repeat(1024 * 1024);
        let body = format!("{{\"{long}\":{{{fields}\"b\":1}}}}");
        let decoded = json(body.as_bytes()).unwrap();
        assert_eq!(decoded.duplicates, [format!("{long}.a")]);
    }

    #[test]
    fn yaml_is_read_as_the_json_it_stands_for() {
        let decoded = yaml(b"kind: At\nspec:\n  n: 3\n  s: '3'\n  on: true\n  no: ~\n").unwrap();
        let expected = json!({"kind": "At", "spec": {"n": 3, "s": "3", "on": true, "no": null}});
        assert_eq!(decoded.value, expected);
    }

    #[test]
    fn a_body_that_nests_without_end_is_refused() {
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        assert!(json(deep.as_bytes()).is_err());
        assert!(yaml(deep.as_bytes()).is_err());
    }

    #[test]
    fn a_deep_body_in_yaml_takes_no_deep_stack_of_whoever_asks() {
        let deep = "- ".repeat(MAX_DEPTH - 1) + "x";
        let little = std::thread::Builder::new().stack_size(256 * 1024);
        let read = little.spawn(move || yaml(deep.as_bytes()).is_ok()).unwrap();
        assert!(read.join().unwrap());
    }

    #[test]
    fn how_deep_and_how_long_a_body_may_be_does_not_depend_on_how_it_is_written() {
        let nested = |levels: usize| "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels);
        for (levels, is_read) in [(65, true), (MAX_DEPTH, true), (MAX_DEPTH + 1, false)] {
            let compact = nested(levels);
            let spread = compact.replace(':', ":\n ");
            for body in [compact.as_bytes(), spread.as_bytes()] {
                assert_eq!(json(body).is_ok(), is_read, "{levels} levels of JSON");
                assert_eq!(yaml(body).is_ok(), is_read, "{levels} levels of YAML");
            }
        }
        let long = format!("{{\"a\":[{}1]}}", "1,".repeat(300_000));
        let spread = long.replace(':', ":\n ");
        assert_eq!(yaml(long.as_bytes()).unwrap(), yaml(spread.as_bytes()).unwrap());
    }

    #[test]
    fn a_repeated_key_of_yaml_is_named_with_its_line() {
        let body = b"kind: At\nspec:\n  n: 1\n  n: 2\n";
        let complaint = yaml_complaint(body, &yaml(body).unwrap().duplicates).unwrap();
        assert_eq!(complaint, "line 4: key \"n\" already set in map");
    }

    #[test]
    fn trailing_bytes_are_refused() {
        assert!(json(b"{} {}").is_err());
    }
}
