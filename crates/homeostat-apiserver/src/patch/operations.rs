//! The operations of a JSON patch (RFC 6902), one by one, as the library that kube-apiserver uses reads
//! and refuses them: a field that is copied or replaced need not be there, a value that is left out
//! is null, lists count from behind with negative numbers. It bounds nothing.

use serde_json::{Map, Value};

use crate::go::{json_type, quoted};

const MISSING: &str = "missing value";

/// Why a patch is none, in Go's words.
pub(super) fn misread(operations: &Value) -> Option<String> {
    let wrong = |value: &Value, ty: &str| {
        format!("json: cannot unmarshal {} into Go value of type jsonpatch.{ty}", json_type(value))
    };
    let Some(list) = operations.as_array() else { return Some(wrong(operations, "Patch")) };
    let odd = list.iter().find(|operation| !operation.is_object() && !operation.is_null());
    odd.map(|operation| wrong(operation, "Operation"))
}

/// The text in a field of an operation.
pub(super) fn text<'a>(operation: &'a Value, field: &str) -> Option<&'a str> {
    operation.get(field).and_then(Value::as_str)
}

/// Carries out one operation.
///
/// # Errors
/// Why it does not apply; the document may be changed then.
pub(super) fn apply(document: &mut Value, operation: &Value) -> Result<(), String> {
    let value = || operation.get("value").cloned().unwrap_or_default();
    match text(operation, "op").unwrap_or("unknown") {
        "add" => {
            let path = undecoded(operation, "add")?;
            let place = find(document, path).ok_or_else(|| nowhere("add", path))?;
            place.add(value()).map_err(|why| format!("error in add for path: '{path}': {why}"))
        }
        "remove" => {
            let path = undecoded(operation, "remove")?;
            let place = find(document, path).ok_or_else(|| nowhere("remove", path))?;
            let removed = place.remove();
            removed.map(drop).map_err(|why| format!("error in remove for path: '{path}': {why}"))
        }
        "replace" => replace(document, decoded(operation, "replace", "path")?, value()),
        "test" => test(document, decoded(operation, "test", "path")?, operation.get("value")),
        "move" => {
            let from = decoded(operation, "move", "from")?;
            let source = find(document, from).ok_or_else(|| absent("move", "from path", from))?;
            let key = source.key.clone();
            let moved = source.get().map(drop).and_then(|()| source.remove());
            let moved = moved.map_err(|why| format!("error in move for path: '{key}': {why}"))?;
            let path = decoded(operation, "move", "path")?;
            let place =
                find(document, path).ok_or_else(|| absent("move", "destination path", path))?;
            place.add(moved).map_err(|why| format!("error in move for path: '{path}': {why}"))
        }
        "copy" => {
            let from = decoded(operation, "copy", "from")?;
            let source = find(document, from).ok_or_else(|| absent("copy", "from path", from))?;
            let copied = source.get().map(|value| value.cloned().unwrap_or_default());
            let copied =
                copied.map_err(|why| format!("error in copy for from: '{from}': {why}"))?;
            let path = undecoded(operation, "copy")?;
            let place =
                find(document, path).ok_or_else(|| absent("copy", "destination path", path))?;
            place.add(copied).map_err(|why| format!("error while adding value during copy: {why}"))
        }
        other => Err(format!("Unexpected kind: {other}")),
    }
}

fn nowhere(what: &str, path: &str) -> String {
    absent(what, "path", &format!("\"{path}\""))
}

fn absent(what: &str, of: &str, path: &str) -> String {
    format!("{what} operation does not apply: doc is missing {of}: {path}: {MISSING}")
}

/// A path of an operation, of whose errors only one is told.
fn undecoded<'a>(operation: &'a Value, what: &str) -> Result<&'a str, String> {
    let path = text(operation, "path");
    path.ok_or_else(|| format!("{what} operation failed to decode path: {MISSING}"))
}

/// A path of an operation, whose errors are told as they are.
fn decoded<'a>(operation: &'a Value, what: &str, field: &str) -> Result<&'a str, String> {
    let why = match operation.get(field) {
        Some(Value::String(path)) => return Ok(path),
        None | Some(Value::Null) => {
            let comma = if field == "from" { "," } else { "" };
            format!("operation{comma} missing {field} field: {MISSING}")
        }
        Some(other) => {
            format!("json: cannot unmarshal {} into Go value of type string", json_type(other))
        }
    };
    Err(format!("{what} operation failed to decode {field}: {why}"))
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array: %!w(<nil>)".to_owned());
        }
        *document = value;
        return Ok(());
    }
    let place = find(document, path).ok_or_else(|| absent("replace", "path", path))?;
    if place.get().is_err() {
        return Err(absent("replace", "key", path));
    }
    place.set(value);
    Ok(())
}

fn test(document: &mut Value, path: &str, value: Option<&Value>) -> Result<(), String> {
    let failed = || format!("testing value {path} failed: test failed");
    if path.is_empty() {
        return if value == Some(&*document) { Ok(()) } else { Err(failed()) };
    }
    let place = find(document, path).ok_or_else(|| {
        format!("test operation does not apply: is missing path: {path}: {MISSING}")
    })?;
    let found = place.get().map_err(|why| format!("error in test for path: '{path}': {why}"))?;
    // Null is as good as nothing.
    let holds = match found.filter(|found| !found.is_null()) {
        Some(found) => value == Some(found),
        None => value.is_none_or(Value::is_null),
    };
    if holds { Ok(()) } else { Err(failed()) }
}

/// A place in the document: the object or list it is in, and its name or number there.
struct Place<'a> {
    around: Around<'a>,
    key: String,
}

enum Around<'a> {
    Object(&'a mut Map<String, Value>),
    List(&'a mut Vec<Value>),
}

/// The place that a path leads to, if what is around it is there.
fn find<'a>(document: &'a mut Value, path: &str) -> Option<Place<'a>> {
    let mut parts = path.split_once('/')?.1.split('/').map(named);
    let key = parts.next_back()?;
    let mut around = document;
    for part in parts {
        around = match around {
            Value::Object(fields) => fields.get_mut(&part)?,
            Value::Array(items) => {
                let at = number(&part, items.len()).ok().flatten()?;
                items.get_mut(at)?
            }
            _ => return None,
        };
    }
    let around = match around {
        Value::Object(fields) => Around::Object(fields),
        Value::Array(items) => Around::List(items),
        _ => return None,
    };
    Some(Place { around, key })
}

/// What is at a path.
pub(super) fn at<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').skip(1).map(named).try_fold(document, |around, part| match around {
        Value::Object(fields) => fields.get(&part),
        Value::Array(items) => items.get(number(&part, items.len()).ok().flatten()?),
        _ => None,
    })
}

fn named(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// The place in a list of that length, if it has one there.
fn number(key: &str, length: usize) -> Result<Option<usize>, String> {
    let number: i64 = key
        .parse()
        .map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", quoted(key)))?;
    let number = if number < 0 { number.saturating_add_unsigned(length as u64) } else { number };
    Ok(usize::try_from(number).ok().filter(|at| *at < length))
}

fn no_index(key: &str) -> String {
    format!("Unable to access invalid index: {key}: invalid index referenced")
}

impl Place<'_> {
    fn get(&self) -> Result<Option<&Value>, String> {
        match &self.around {
            Around::Object(fields) => Ok(fields.get(&self.key)),
            Around::List(items) => {
                let at = number(&self.key, items.len())?.ok_or_else(|| no_index(&self.key))?;
                Ok(items.get(at))
            }
        }
    }

    fn set(self, value: Value) {
        match self.around {
            Around::Object(fields) => {
                fields.insert(self.key, value);
            }
            Around::List(items) => {
                let at = number(&self.key, items.len()).ok().flatten();
                if let Some(item) = at.and_then(|at| items.get_mut(at)) {
                    *item = value;
                }
            }
        }
    }

    fn add(self, value: Value) -> Result<(), String> {
        match self.around {
            Around::Object(fields) => {
                fields.insert(self.key, value);
            }
            Around::List(items) if self.key == "-" => items.push(value),
            Around::List(items) => {
                let at = number(&self.key, items.len() + 1)
                    .map_err(|why| {
                        format!("value was not a proper array index: '{}': {why}", self.key)
                    })?
                    .ok_or_else(|| no_index(&self.key))?;
                items.insert(at, value);
            }
        }
        Ok(())
    }

    fn remove(self) -> Result<Value, String> {
        match self.around {
            Around::Object(fields) => fields.shift_remove(&self.key).ok_or_else(|| {
                format!("Unable to remove nonexistent key: {}: {MISSING}", self.key)
            }),
            Around::List(items) => {
                let at = number(&self.key, items.len())?.ok_or_else(|| no_index(&self.key))?;
                Ok(items.remove(at))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn applied(operations: &Value) -> Result<Value, String> {
        let mut document = json!({"a": {"b": 1, "n": null}, "l": [1, 2, 3]});
        for operation in operations.as_array().unwrap() {
            super::apply(&mut document, operation)?;
        }
        Ok(document)
    }

    #[test]
    fn what_is_not_there_is_as_good_as_null() {
        let op = |op: &str, path: &str| json!({"op": op, "path": path});
        let copy = json!({"op": "copy", "from": "/a/x", "path": "/a/y"});
        let tests = json!([copy, op("test", "/a/x"), op("test", "/a/n"), op("replace", "/a/z")]);
        assert_eq!(applied(&tests).unwrap()["a"], json!({"b": 1, "n": null, "y": null, "z": null}));
        let error = applied(&json!([op("test", "/a/b")])).unwrap_err();
        assert_eq!(error, "testing value /a/b failed: test failed");
    }

    #[test]
    fn lists_are_counted_from_both_ends() {
        let add = |path: &str| json!([{"op": "add", "path": path, "value": 9}]);
        for (path, list) in [
            ("/l/0", json!([9, 1, 2, 3])),
            ("/l/3", json!([1, 2, 3, 9])),
            ("/l/-", json!([1, 2, 3, 9])),
            ("/l/-1", json!([1, 2, 3, 9])),
            ("/l/-4", json!([9, 1, 2, 3])),
        ] {
            assert_eq!(applied(&add(path)).unwrap()["l"], list, "{path}");
        }
        for (path, why) in [
            ("/l/4", "Unable to access invalid index: 4: invalid index referenced"),
            (
                "/l/x",
                "value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
        ] {
            let error = applied(&add(path)).unwrap_err();
            assert_eq!(error, format!("error in add for path: '{path}': {why}"));
        }
        let removed = applied(&json!([{"op": "remove", "path": "/l/-3"}])).unwrap();
        assert_eq!(removed["l"], json!([2, 3]));
    }
}
