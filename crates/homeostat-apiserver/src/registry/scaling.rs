//! Writes of the scale subresource: from the Scale of an object to another number in the object.

use std::cell::RefCell;

use serde_json::{Value, json};

use super::create::Tracking;
use super::options::WriteOptions;
use super::scale::{places, view};
use super::subresource::{PartWrite, read_part};
use super::update::{Area, Update, check_uid};
use super::{Patch, Registry, Target, Writer, Written, create, metadata, patch, posted, rules};
use crate::admission::{self, Operation, Review, Wish};
use crate::apply::scale::{own_object, own_scale};
use crate::field::{FieldError, Reason};
use crate::kinds::Kind;
use crate::status::Status;

const AREA: Area = Area::Part("scale");
/// Stands for the number of an object that has none, so that a patch which leaves it out is seen.
const NONE: i64 = i32::MIN as i64;

impl Registry {
    pub(crate) fn set_scale(
        &self,
        target: &Target,
        write: &PartWrite,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let kind = &target.kind;
        let places = places(kind).ok_or_else(Status::no_such_resource)?;
        let form = posted::form(kind, "scale")?;
        let writer = self.writer_at(&options.inquiry);
        // Who owns the number is told in the Scale.
        let update =
            Update { area: AREA, tracking: Tracking::Done, unconditional: true, take: None };
        let numbers = |version: &str| number_place(kind, version);
        // Admission sees the two scales, not the object behind them.
        let scales = RefCell::new((Value::Null, Value::Null));
        let change = |live: &Value| {
            let shown = view(kind, &places, live);
            let mut current = shown.clone();
            if kind.custom.is_some() && live.pointer(&places.spec).is_none() {
                current["spec"]["replicas"] = NONE.into();
            }
            own_scale(live, &mut current, &numbers).map_err(Status::unexplained)?;
            let scale = wanted(&writer, write, form, target, &current, options)?;
            check_uid(target, metadata::uid(live), metadata::uid(&scale), options.dry_run)?;
            let mut review = review(&writer, target, options, scale, &current);
            admission::mutate(&mut review)?;
            let scale = review.object;
            let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
            check_number(target, replicas)?;
            let mut object = live.clone();
            metadata::copy(&mut object, &scale, "resourceVersion");
            set_pointer(&mut object, &places.spec, replicas.into());
            own_object(&mut object, &scale, &kind.api_version(), &numbers)
                .map_err(Status::unexplained)?;
            let mut judged = view(kind, &places, &object);
            metadata::copy(&mut judged, live, "resourceVersion");
            scales.replace((judged, shown));
            Ok(object)
        };
        let judge = || {
            let (scale, shown) = scales.take();
            admission::validate(&review(&writer, target, options, scale, &shown)).map(drop)
        };
        writer.update_judged(target, update, options, change, judge)
    }
}

/// Where objects keep their number in a version: `None` if nobody knows the version.
fn number_place(kind: &Kind, version: &str) -> Option<Option<Vec<String>>> {
    let names = |path: &str| path.trim_start_matches('.').split('.').map(str::to_owned).collect();
    if let Some(custom) = &kind.custom {
        let known = custom.versions.has(version);
        return known.then(|| custom.versions.replicas(version).map(names));
    }
    // Versions of old, in which somebody may have come to own it.
    let old = kind.group == "apps" && matches!(version, "apps/v1beta1" | "apps/v1beta2");
    (version == kind.api_version() || old).then(|| Some(names("spec.replicas")))
}

fn check_number(target: &Target, replicas: i64) -> Result<(), Status> {
    // What a definition has to say about its numbers comes with the object.
    if let Some(custom) = &target.kind.custom {
        if replicas != NONE {
            return Ok(());
        }
        let path = custom.scale.as_ref().map_or("", |scale| scale.spec.as_str());
        let words = format!("the spec replicas field {path:?} cannot be empty");
        return Err(Status::bad_request(words));
    }
    if replicas >= 0 {
        return Ok(());
    }
    let why = "must be greater than or equal to 0";
    let error = FieldError::new("spec.replicas", Reason::Invalid, replicas.into(), why);
    Err(Status::invalid_kind("autoscaling", "Scale", &target.name, &[error]))
}

/// The change from one `Scale` to another, as admission sees it.
fn review<'r>(
    writer: &'r Writer<'r>,
    target: &'r Target,
    options: &'r WriteOptions,
    object: Value,
    old: &'r Value,
) -> Review<'r> {
    Review {
        subresource: "scale",
        namespace: &target.namespace,
        name: &target.name,
        form: posted::form(&target.kind, "scale").ok(),
        object,
        old: Some(old),
        ..Review::new(writer, &target.kind, Operation::Update, Wish::Write(options))
    }
}

/// The `Scale` that a write asks for, with those who own its number then.
fn wanted(
    writer: &Writer<'_>,
    write: &PartWrite,
    form: &Kind,
    target: &Target,
    current: &Value,
    options: &WriteOptions,
) -> Result<Value, Status> {
    if let PartWrite::Patch(Patch::Apply(body)) = write {
        let (config, duplicates) = rules::applicable(form, body.clone())?;
        create::place(target, &mut config.clone())?;
        if target.kind.custom.is_some() && current.pointer("/metadata/managedFields").is_none() {
            let who =
                "failed to create manager for existing fields: failed to convert live object (/;";
            return Err(unconverted(who));
        }
        let merged = rules::applied(writer, form, Some(current), &config, options, AREA)?;
        if target.kind.custom.is_some() {
            return Err(unconverted(&format!("failed to convert new object (/{};", target.name)));
        }
        let merged = patch::shaped(form, merged)?;
        let mut warnings = Vec::new();
        rules::judge_duplicates(&duplicates, options.validation, &mut warnings)?;
        warnings.into_iter().for_each(|warning| options.inquiry.warn(warning));
        return Ok(merged);
    }
    let mut scale = read_part(form, target, write, current, options)?;
    crate::default::fill_blanks(form.schema.root(), &mut scale);
    rules::track(writer, form, Some(current), &mut scale, &options.manager, AREA)?;
    Ok(scale)
}

/// kube-apiserver cannot apply the Scale of a custom resource: it takes it for one of the resource's
/// own versions.
fn unconverted(what: &str) -> Status {
    Status::unexplained(format!(
        "{what} autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid \
         group/version: autoscaling/v1"
    ))
}

/// Sets the value at a pointer, making the objects on the way.
fn set_pointer(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for name in pointer.split('/').skip(1) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[name];
    }
    *place = value;
}
