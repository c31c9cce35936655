//! The object that a patch makes, and what is told of one that cannot be read: JSON patches and merge
//! patches sort the fields of every object they step into and leave the others as they were written;
//! of a strategic merge patch the patch itself is told.

use serde_json::{Map, Value, json};

use super::options::WriteOptions;
use super::{Patch, named, rules};
use crate::decode;
use crate::field::{FieldError, Reason};
use crate::go;
use crate::kinds::Kind;
use crate::status::Status;

/// What the patch makes of the live object, in the shape of its kind. What cannot be read is a 422
/// about the patch as a whole.
pub(super) fn object(
    kind: &Kind,
    live: &Value,
    patch: &Patch,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let mut value = rules::patched(kind, live, patch)?;
    if matches!(patch, Patch::Strategic(_)) {
        // It is merged into the type of the live object, whatever it calls itself.
        value["kind"] = kind.kind.clone().into();
        value["apiVersion"] = kind.api_version().into();
    }
    let told = || told(kind, live, patch);
    let refused = |why: String| {
        // What only other types cannot hold comes to light when the merge is over.
        if matches!(patch, Patch::Strategic(_)) && rules::is_of_another_type(&why) {
            return Status::unexplained(why);
        }
        let error = FieldError::new("patch", Reason::Invalid, told().into(), why);
        Status::invalid_kind("", "", "", &[error])
    };
    if kind.custom.is_some() {
        check_names(&value, refused, told)?;
    } else {
        let why = |status: Status| why(&status, patch);
        named::check_type(kind, &value).map_err(|status| refused(why(status)))?;
    }
    rules::shape_noting(kind, value.into(), complaints(patch), options, warnings)
        .map_err(|status| refused(why(&status, patch)))
}

/// Whether a custom object still says what it is; what that is, is judged later.
fn check_names(
    object: &Value,
    refused: impl Fn(String) -> Status,
    told: impl Fn() -> String,
) -> Result<(), Status> {
    if let Some(why) = named::unreadable_type(object) {
        return Err(refused(why));
    }
    let is_missing =
        |field: &str| object.get(field).and_then(Value::as_str).is_none_or(str::is_empty);
    if is_missing("kind") {
        return Err(refused(format!("Object 'Kind' is missing in '{}'", told())));
    }
    if is_missing("apiVersion") {
        let words = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
        let mut status = Status::internal(format!("Internal error occurred: {words}"));
        status.details = Some(Box::new(json!({"causes": [{"message": words}]})));
        return Err(status);
    }
    Ok(())
}

/// Why an object cannot be read, without its name.
fn why(status: &Status, patch: &Patch) -> String {
    let why = status.message.rsplit_once("cannot be handled as a ").map_or_else(
        || status.message.as_str(),
        |(_, rest)| rest.split_once(": ").map_or(rest, |(_, why)| why),
    );
    match patch {
        Patch::Strategic(_) => as_converted(why),
        _ => why.to_owned(),
    }
}

/// What Go says where a patch is merged as maps, and only then becomes a type.
fn as_converted(why: &str) -> String {
    if why.starts_with("illegal base64") {
        return format!("error decoding from json: {why}");
    }
    let parts = why.strip_prefix("json: cannot unmarshal ").and_then(|rest| {
        let (found, rest) = rest.split_once(" into Go ")?;
        Some((found, rest.rsplit_once(" of type ")?.1))
    });
    let Some((found, wanted)) = parts else { return why.to_owned() };
    let found = match found {
        "number" => "int64",
        "array" => "slice",
        "object" => "map",
        other => other,
    };
    match wanted {
        _ if wanted.starts_with("[]") => format!("cannot restore slice from {found}"),
        _ if wanted.starts_with("map[") => format!("cannot restore map from {found}"),
        // Go would turn a number into a letter, and is kept from it; the others it cannot turn into
        // each other.
        "string" if found == "int64" => format!("cannot convert {found} to {wanted}"),
        "bool" | "string" | "int32" | "int64" => format!("unrecognized type: {wanted}"),
        _ => format!("cannot restore struct from: {found}"),
    }
}

/// What a strict reader says about the patch itself.
fn complaints(patch: &Patch) -> Vec<String> {
    match patch {
        Patch::Json(operations) => {
            let known = ["op", "path", "from", "value"];
            let each = operations.value.as_array().into_iter().flatten().enumerate();
            let unknown: Vec<String> = each
                .flat_map(|(at, operation)| {
                    let fields = operation.as_object().into_iter().flat_map(Map::keys);
                    let fields = fields.filter(|field| !known.contains(&field.as_str()));
                    fields.map(move |field| format!("[{at}].{field}"))
                })
                .collect();
            let messages = decode::strict_messages(&unknown, &operations.duplicates);
            let messages =
                decode::DocumentOrder::of(&operations.value, &operations.duplicates).sort(messages);
            messages.iter().map(|message| format!("json patch {message}")).collect()
        }
        Patch::Merge(patch) | Patch::Strategic(patch) => {
            decode::strict_messages(&[], &patch.duplicates)
        }
        Patch::Apply(_) => Vec::new(),
    }
}

/// What is told of the object that a patch makes of the live one.
fn told(kind: &Kind, live: &Value, patch: &Patch) -> String {
    if let Patch::Strategic(patch) = patch {
        return go::printed(&patch.value);
    }
    let live = match &kind.custom {
        Some(_) => go::internal::in_order(live),
        None => go::written(kind.schema.root(), live),
    };
    let Ok(mut object) = rules::patched(kind, &live, patch) else { return String::new() };
    match patch {
        Patch::Json(operations) => {
            let operations = operations.value.as_array().into_iter().flatten();
            let paths = operations.flat_map(|operation| [&operation["path"], &operation["from"]]);
            for path in paths.filter_map(Value::as_str) {
                sort_on_the_way(&mut object, path);
            }
        }
        Patch::Merge(patch) => sort_merged(&mut object, &patch.value),
        Patch::Strategic(_) | Patch::Apply(_) => {}
    }
    go::json(&object)
}

fn sort_on_the_way(object: &mut Value, path: &str) {
    let mut place = object;
    for name in path.split('/').skip(1) {
        place.as_object_mut().map(Map::sort_keys);
        let name = name.replace("~1", "/").replace("~0", "~");
        let below = match place {
            Value::Object(fields) => fields.get_mut(&name),
            Value::Array(items) => name.parse().ok().and_then(|at: usize| items.get_mut(at)),
            _ => None,
        };
        let Some(below) = below else { return };
        place = below;
    }
}

fn sort_merged(object: &mut Value, patch: &Value) {
    let (Some(fields), Some(patch)) = (object.as_object_mut(), patch.as_object()) else { return };
    fields.sort_keys();
    for (name, patch) in patch {
        if let Some(field) = fields.get_mut(name) {
            sort_merged(field, patch);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Patch, told};
    use crate::kinds::builtin;

    #[test]
    fn what_a_patch_steps_into_is_sorted_and_the_rest_stays_in_order() {
        let kind = builtin().iter().find(|kind| kind.kind == "ConfigMap").unwrap();
        let live = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"uid": "u", "name":
            "n"}, "data": {"b": "1", "a": "<2>"}});
        let body = |value: serde_json::Value| value.into();
        let merge = Patch::Merge(body(json!({"data": {"c": 1}})));
        assert_eq!(
            told(kind, &live, &merge),
            r#"{"apiVersion":"v1","data":{"a":"\u003c2\u003e","b":"1","c":1},"kind":"ConfigMap","metadata":{"name":"n","uid":"u"}}"#
        );
        let strategic = Patch::Strategic(body(json!({"data": {"c": 1, "a": null}})));
        assert_eq!(told(kind, &live, &strategic), "map[data:map[a:<nil> c:1]]");
    }
}
