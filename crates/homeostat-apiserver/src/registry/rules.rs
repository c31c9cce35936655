//! Where the engine meets the schemas: shaping, defaulting, validating and tracking an object.
//!
//! The order on every write is: shape (drop what the kind does not know) → default → admission →
//! validate → track ownership. The modules called here are pure; this one only picks and words.

use serde_json::{Value, json};

use super::hooks::{self, Judged};
use super::options::{FieldValidation, WriteOptions};
use super::update::Area;
use super::{Body, Patch, Writer, convert, metadata, named};
use crate::admission::Inquiry;
use crate::apply::{self, ApplyError, FieldSet, Forms, Manager, Others, PathElement};
use crate::decode::{DecodeError, Emptied};
use crate::kinds::Kind;
use crate::patch::PatchError;
use crate::status::Status;
use crate::{custom, decode, default, patch, validate};

/// A whole object that was sent, in the shape of its kind.
pub(super) fn sent(
    kind: &Kind,
    mut body: Body,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    named::complete_type(kind, &mut body.value);
    named::check_type(kind, &body.value)?;
    let given = body.value.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let object = shape_noting(kind, body, Vec::new(), options, warnings)
        .map_err(|status| undecodable(kind, &given, status))?;
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if version != kind.api_version() {
        return Err(named::other_version(kind, version).warned(std::mem::take(warnings)));
    }
    Ok(object)
}

/// Drops what the kind does not know; says so, or refuses.
pub(crate) fn shape(
    kind: &Kind,
    body: Body,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let (value, complaints, _) = read(kind, body)?;
    judge(complaints, validation, warnings)?;
    Ok(value)
}

/// The same with complaints that come first, and notes what was given and is empty for when the object
/// is judged.
pub(super) fn shape_noting(
    kind: &Kind,
    body: Body,
    mut complaints: Vec<String>,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let (value, others, emptied) = read(kind, body)?;
    options.inquiry.note_empty(emptied);
    complaints.extend(others);
    judge(complaints, options.validation, warnings)?;
    Ok(value)
}

/// Drops what the kind does not know; gives what a strict reader says, and what was given and is empty.
fn read(kind: &Kind, body: Body) -> Result<(Value, Vec<String>, Emptied), Status> {
    let Body { mut value, duplicates } = body;
    // Typed readers find both in one pass, in the order of the document.
    let order = kind.custom.is_none().then(|| decode::DocumentOrder::of(&value, &duplicates));
    let refused = |error: DecodeError| Status::bad_request(error.to_string());
    let dropped = decode::typed(kind, &mut value).map_err(refused)?;
    (hooks::of(kind).read)(&value)
        .map_err(|why| refused(DecodeError::of(kind, &kind.kind, why)))?;
    let messages = decode::strict_messages(&dropped.unknown, &duplicates);
    let messages = match order {
        Some(order) => order.sort(messages),
        None => messages,
    };
    Ok((value, messages, dropped.emptied))
}

/// Whether an object could be read, but not be turned into the type that the server works with.
pub(super) fn is_of_another_type(why: &str) -> bool {
    why.starts_with("strconv.")
}

/// Refuses what a strict reader complains of, or tells it, or neither.
fn judge(
    complaints: Vec<String>,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    match validation {
        FieldValidation::Strict if !complaints.is_empty() => {
            let words = format!("strict decoding error: {}", complaints.join(", "));
            return Err(Status::bad_request(words));
        }
        FieldValidation::Warn => warnings.extend(complaints),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    Ok(())
}

/// A whole object that cannot be read names its kind, as it was `given`; a patch does not.
pub(crate) fn undecodable(kind: &Kind, given: &str, mut status: Status) -> Status {
    if status.message.starts_with("strict decoding error") {
        let version = &kind.version;
        status.message = format!(
            "{given} in version {version:?} cannot be handled as a {given}: {}",
            status.message
        );
    }
    status
}

/// The configuration of an apply, as it was written.
pub(crate) fn applicable(kind: &Kind, body: Body) -> Result<(Value, Vec<String>), Status> {
    let Body { value, duplicates } = body;
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or("");
    if text("kind") != kind.kind || text("apiVersion") != kind.api_version() {
        let (group, version) =
            text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        let words = format!("invalid object type: {group}/{version}, Kind={}", text("kind"));
        return Err(Status::bad_request(words));
    }
    Ok((value, duplicates))
}

/// Refuses keys that a configuration has twice, or tells of them, or neither: when it has been merged.
pub(crate) fn judge_duplicates(
    duplicates: &[String],
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    match validation {
        FieldValidation::Strict if !duplicates.is_empty() => {
            let words = format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
                duplicates.join("\n  ")
            );
            return Err(Status::bad_request(words));
        }
        FieldValidation::Warn => warnings.extend_from_slice(duplicates),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    Ok(())
}

/// An object without what nobody owns and nothing keeps, where its kind is told such things.
pub(super) fn owned(kind: &Kind, object: &Value) -> Option<Value> {
    match hooks::of(kind).compared {
        Some(compared) => Some(compared(object)),
        None if kind.strategy.empty_counts => {
            let mut owned = object.clone();
            decode::drop_empty(kind, &mut owned);
            Some(owned)
        }
        None => None,
    }
}

/// Brings an object that was found to be right into the form it is kept in.
pub(super) fn keep(kind: &Kind, object: &mut Value) {
    (hooks::of(kind).kept)(object);
    if kind.strategy.empty_counts {
        decode::drop_empty(kind, object);
    }
}

/// Fills in what the client left to the server.
pub(crate) fn default(kind: &Kind, object: &mut Value) {
    if kind.custom.is_none() {
        default::builtin(kind, object);
    } else if !custom::is_stranger(kind, object) {
        default::apply_defaults(kind.schema.root(), object);
    }
}

/// Refuses an object that breaks its kind's rules. The client is told of those that were broken
/// before already.
pub(crate) fn validate(
    writer: &Writer<'_>,
    kind: &Kind,
    object: &Value,
    old: Option<&Value>,
    area: Area,
    options: &WriteOptions,
) -> Result<(), Status> {
    let inquiry = &*options.inquiry;
    let restored = match area {
        Area::Main => as_given(kind, object, old, inquiry),
        // Of what was given, only this is taken.
        Area::Part("ephemeralcontainers") => {
            inquiry.restored(object, |pointer| pointer.starts_with("/spec/ephemeralContainers/"))
        }
        Area::Part("resize") => {
            inquiry.restored(object, |pointer| pointer.starts_with("/spec/resources"))
        }
        Area::Status | Area::Part(_) => None,
    };
    let object = restored.as_ref().unwrap_or(object);
    let (mut forgiven, mut waits) = (Vec::new(), false);
    let mut errors = (hooks::of(kind).judge)(
        writer,
        &Judged {
            user: options.user.as_deref(),
            verb: match old {
                None => "create",
                Some(_) if options.is_patch => "patch",
                Some(_) => "update",
            },
            part: area.subresource(),
            live: old,
            object,
        },
    );
    errors.extend(validate::judged(kind, object, old, &mut || {
        let verdict = inquiry.judge(kind, object, old);
        waits = verdict.is_none();
        let verdict = verdict.unwrap_or_default();
        forgiven = verdict.forgiven;
        verdict.refused
    }));
    if waits {
        return Err(Inquiry::unanswered());
    }
    forgiven.iter().for_each(|error| inquiry.warn(error.to_string()));
    if let Some(old) = old {
        errors.extend(validate::change(kind, area.subresource(), object, old));
    }
    if kind.custom.is_some() && area == Area::Status {
        // A status of its own is described from there.
        for error in &mut errors {
            if let Some(rest) = error.detail.strip_prefix("status.") {
                error.detail = rest.to_owned();
            }
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    let name = metadata::name(object);
    if custom::is_stranger(kind, object) {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        return Err(Status::invalid_kind(group, text("kind"), name, &errors));
    }
    Err(Status::invalid(kind, name, &errors))
}

/// A Pod, or an object with a template of Pods, with what was given and is empty.
fn as_given(kind: &Kind, object: &Value, old: Option<&Value>, inquiry: &Inquiry) -> Option<Value> {
    let template = kind.strategy.template?;
    // The template of a Job stays as it is, and what is given and is empty is no change of it.
    let is_compared = old.is_some() && kind.is("jobs.batch");
    inquiry.restored(object, |pointer| match pointer.strip_prefix(template) {
        Some("/metadata/labels") => !template.is_empty(),
        Some(below) => below.starts_with("/spec/") && !is_compared,
        None => false,
    })
}

/// What writes through a subresource never own besides: resource, subresource, fields.
const RESET: &[(&str, &str, &[&[&str]])] = &[
    ("namespaces", "finalize", &[&["status"]]),
    (SIGNING_REQUESTS, "approval", &[&["spec"], &["status", "certificate"]]),
    (SIGNING_REQUESTS, "status", &[&["status", "conditions"]]),
];
const SIGNING_REQUESTS: &str = "certificatesigningrequests.certificates.k8s.io";

/// The fields that a write through this part of the object never owns.
fn reset_fields(kind: &Kind, area: Area) -> FieldSet {
    let mut set = FieldSet::default();
    let mut add = |path: &[&str]| set.insert(path.iter().map(|name| PathElement::field(*name)));
    for (_, _, fields) in RESET.iter().filter(|(name, part, _)| {
        kind.custom.is_none() && kind.is(name) && *part == area.subresource()
    }) {
        fields.iter().for_each(|path| add(path));
    }
    match area {
        Area::Main => {
            kind.strategy.create_only.iter().for_each(|field| add(&[field]));
            if kind.strategy.status {
                add(&["status"]);
            }
        }
        Area::Part(_) => {}
        Area::Status => {
            for name in kind.schema.root().node().properties.keys() {
                if !matches!(name.as_str(), "status" | "apiVersion" | "kind" | "metadata") {
                    add(&[name]);
                }
            }
            let leaves = kind.strategy.status_leaves;
            if leaves.contains(&"annotations") {
                add(&["metadata"]);
            } else {
                leaves.iter().for_each(|field| add(&["metadata", field]));
            }
        }
    }
    set
}

/// The other forms of a kind that has some, in which others may own fields.
fn other_forms<'w>(writer: &'w Writer<'w>, kind: &'w Kind) -> Option<Box<dyn Others + 'w>> {
    match &kind.custom {
        Some(custom) => Some(Box::new(writer.others(&custom.versions))),
        None if convert::has_other_forms(kind) => Some(Box::new(convert::OtherForms { kind })),
        None => None,
    }
}

/// Templates in objects of built-in kinds. Their metadata can hold a list of owners, too, and what those
/// own is all that can have another form than its type has.
const TEMPLATES: &[&str] =
    &["/template", "/spec/template", "/spec/jobTemplate", "/spec/jobTemplate/spec/template"];

fn has_typed_owners(object: &Value) -> bool {
    if object.get("spec").is_none() && object.get("template").is_none() {
        return true;
    }
    let claims = object.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
    let templates = TEMPLATES.iter().filter_map(|path| object.pointer(path));
    let mut owners = templates
        .chain(claims.into_iter().flatten())
        .filter_map(|template| template.pointer("/metadata/managedFields")?.as_array())
        .flatten();
    owners.all(|owner| {
        owner.get("fieldsV1").is_none_or(|fields| fields.is_object() || fields.is_null())
    })
}

/// Records who owns the fields that changed.
pub(crate) fn track(
    writer: &Writer<'_>,
    kind: &Kind,
    live: Option<&Value>,
    object: &mut Value,
    manager: &str,
    area: Area,
) -> Result<(), Status> {
    let manager = Manager {
        name: manager,
        api_version: &kind.api_version(),
        subresource: area.subresource(),
        now: writer.time,
    };
    let reset = reset_fields(kind, area);
    let schema = kind.schema.root();
    let is_typed = match kind.custom {
        Some(_) => apply::is_typed(schema, object),
        None => has_typed_owners(object),
    };
    if !is_typed {
        // Nobody can be said to own what has no place.
        metadata::set(object, "managedFields", Value::Null);
        return Ok(());
    }
    let others = other_forms(writer, kind);
    let forms = Forms { schema, others: others.as_deref(), blank: None };
    if live.is_some_and(|live| unknown_to_owners(kind, others.as_deref(), live, object).is_some()) {
        metadata::set(object, "managedFields", Value::Null);
        return Ok(());
    }
    let tracked = match live {
        Some(_) => apply::track_update(forms, live, object, &manager, &reset),
        None => apply::track_create(forms, &default::blank(kind), object, &manager, &reset),
    };
    match tracked {
        Ok(()) => {}
        Err(ApplyError::Pending) => return Err(Inquiry::unanswered()),
        Err(error) => {
            tracing::warn!(%error, "who owns what is forgotten");
            metadata::set(object, "managedFields", Value::Null);
        }
    }
    Ok(())
}

/// What one of the other versions in which somebody owns a part of the object does not know of it: there
/// kube-apiserver cannot say any more who owns what. A webhook answers for what it makes of an object;
/// without one it is taken as it is.
fn unknown_to_owners(
    kind: &Kind,
    others: Option<&dyn Others>,
    live: &Value,
    object: &Value,
) -> Option<String> {
    let others = others.filter(|_| kind.custom.is_some() && !convert::is_by_webhook(kind))?;
    let own = kind.api_version();
    let owners = live.pointer("/metadata/managedFields").and_then(Value::as_array)?;
    let versions = owners.iter().filter_map(|owner| owner["apiVersion"].as_str());
    let versions: std::collections::BTreeSet<&str> =
        versions.filter(|version| *version != own).collect();
    if versions.is_empty() {
        return None;
    }
    let mut object = object.clone();
    metadata::set(&mut object, "managedFields", Value::Null);
    let mut schemas = versions.into_iter().filter_map(|version| others.schema(version));
    schemas.find_map(|schema| apply::fits(schema, &object).err())
}

/// Leaves the times of ownership alone when nothing else changed.
pub(crate) fn settle(live: &Value, object: &mut Value) {
    apply::keep_times(live, object);
}

/// The live object with the patch applied.
pub(crate) fn patched(kind: &Kind, live: &Value, patch: &Patch) -> Result<Value, Status> {
    let result = match patch {
        Patch::Json(operations) => patch::json(live, &operations.value),
        Patch::Merge(patch) => Ok(patch::merge(live, &patch.value)),
        Patch::Strategic(patch) => patch::strategic(kind.schema.root(), live, &patch.value),
        Patch::Apply(_) => {
            return Err(Status::internal("an apply is not a patch of the live object"));
        }
    };
    refused(result)
}

/// A patch that does not fit, as the API words it.
pub(crate) fn refused(result: Result<Value, PatchError>) -> Result<Value, Status> {
    result.map_err(|error| {
        let words = error.to_string();
        match error.status() {
            400 => Status::bad_request(words),
            413 => Status::too_large(words),
            422 => {
                tracing::debug!(%words, "a patch does not fit");
                let why = "the server rejected our request due to an error in our request";
                let mut status = Status::new(422, "Invalid", why);
                status.details = Some(Box::new(json!({})));
                status
            }
            _ => Status::unexplained(words),
        }
    })
}

/// The live object (or none) with the applied configuration merged in.
pub(crate) fn applied(
    writer: &Writer<'_>,
    kind: &Kind,
    live: Option<&Value>,
    config: &Value,
    options: &WriteOptions,
    area: Area,
) -> Result<Value, Status> {
    let manager = Manager {
        name: &options.manager,
        api_version: &kind.api_version(),
        subresource: area.subresource(),
        now: writer.time,
    };
    let reset = reset_fields(kind, area);
    let schema = kind.schema.root();
    let others = other_forms(writer, kind);
    let blank = kind.custom.is_none().then(|| default::blank(kind));
    let forms = Forms { schema, others: others.as_deref(), blank: blank.as_ref() };
    let merged = apply::apply(forms, live, config, &manager, options.force, &reset);
    let merged = merged.map_err(|error| {
        let words = error.to_string();
        match error {
            ApplyError::Conflicts(conflicts) => {
                let causes: Vec<(String, String)> = conflicts
                    .iter()
                    .map(|conflict| (conflict.field(), conflict.message()))
                    .collect();
                Status::apply_conflict(&words, &causes)
            }
            ApplyError::Invalid(_) => Status::bad_request(words),
            ApplyError::Pending => Inquiry::unanswered(),
            ApplyError::Untypable(_)
            | ApplyError::ManagedFields(_)
            | ApplyError::Unconverted(_) => Status::unexplained(words),
        }
    })?;
    match live.and_then(|live| unknown_to_owners(kind, others.as_deref(), live, &merged)) {
        Some(why) => Err(Status::unexplained(format!("failed to convert new object: {why}"))),
        None => Ok(merged),
    }
}
