//! Create: from a body to a new object.

use serde_json::{Value, json};

use super::options::WriteOptions;
use super::update::Area;
use super::{
    Body, Registry, Target, Writer, Written, hooks, metadata, names, owners, rules, turned_off,
};
use crate::admission::{self, Operation, Review, Wish};
use crate::auth::{RoleWrite, User};
use crate::kinds::{Generation, Kind};
use crate::schema::Type;
use crate::status::Status;
use crate::store::{Expect, Key};
use crate::warn;

/// How often a made-up name is drawn again when it is taken.
const NAME_ATTEMPTS: usize = 8;

impl Registry {
    /// Creates the object in `body`.
    ///
    /// # Errors
    /// The `Status` that says why not; nothing is written then.
    pub fn create(
        &self,
        target: &Target,
        body: Body,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let mut warnings = Vec::new();
        let mut object = rules::sent(&target.kind, body, options, &mut warnings)?;
        metadata::set(&mut object, SELF_LINK, Value::Null);
        let writer = self.writer_for(options);
        match writer.create(target, object, options, Tracking::Update) {
            Ok(mut written) => {
                warnings.append(&mut written.warnings);
                Ok(Written { warnings, ..written })
            }
            Err(status) => Err(status.warned(warnings)),
        }
    }
}

/// Who keeps the books of field ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// The engine, from what changed.
    Update,
    /// Server-side apply did already.
    Done,
}

impl Writer<'_> {
    /// Creates an object that was shaped already.
    pub(crate) fn create(
        &self,
        target: &Target,
        mut object: Value,
        options: &WriteOptions,
        tracking: Tracking,
    ) -> Result<Written, Status> {
        let kind = &target.kind;
        if kind.strategy.empty_counts {
            // There is nothing that it would be a change of.
            crate::decode::drop_empty(kind, &mut object);
        }
        place(target, &mut object)?;
        for field in SYSTEM_FIELDS {
            metadata::set(&mut object, field, Value::Null);
        }
        rules::default(kind, &mut object);
        (hooks::of(kind).complete)(None, &mut object);
        if tracking == Tracking::Update {
            owners::name_once(&mut object, &options.inquiry, owners::Moment::Written);
            // Before admission and the hooks: nobody owns what the server adds of its own accord.
            rules::track(self, kind, None, &mut object, &options.manager, Area::Main)?;
        }
        let given = metadata::name(&object).to_owned();
        let mut name;
        let mut review = Review {
            namespace: &target.namespace,
            name: &given,
            object,
            ..Review::new(self, kind, Operation::Create, Wish::Write(options))
        };
        admission::mutate(&mut review)?;
        owners::name_once(&mut review.object, &options.inquiry, owners::Moment::Admitted);
        place_in_namespace(target, &mut review.object)?;
        prepare(kind, &mut review.object);
        self.check_grant(target, options, None, &review.object)?;
        let object = &mut review.object;
        let generate_name = metadata::text(object, "generateName").to_owned();
        name = metadata::name(object).to_owned();
        if name.is_empty() && !generate_name.is_empty() {
            name = options.inquiry.name(0, || names::generate(&self.registry.env, &generate_name));
            metadata::set(object, "name", name.clone().into());
            (hooks::of(kind).complete)(None, object);
        }
        let uid = options.inquiry.uid(|| self.registry.env.uid());
        metadata::set(object, "uid", uid.into());
        metadata::set(object, "creationTimestamp", self.now().into());
        let user = options.user.clone().unwrap_or_else(User::admin);
        (hooks::of(kind).asked)(&user, object);
        warn::about_request(kind, object).into_iter().for_each(|words| options.inquiry.warn(words));
        turned_off::drop_turned_off(kind, object);
        (hooks::of(kind).create)(self, kind, object)?;
        rules::validate(self, kind, object, None, Area::Main, options)?;
        warn::about(kind, object, None).into_iter().for_each(|words| options.inquiry.warn(words));
        if !options.dry_run {
            if !matches!(metadata::text(object, "resourceVersion"), "" | "0") {
                let words = "resourceVersion should not be set on objects to be created";
                return Err(Status::unexplained(words));
            }
            metadata::set(object, "resourceVersion", Value::Null);
            metadata::set(object, SELF_LINK, Value::Null);
        }
        if given.is_empty() {
            review.name = &name;
        }
        let charges = admission::validate(&review)?;
        let mut object = review.object;
        crate::default::empty_lists(kind, &mut object);
        (hooks::of(kind).kept)(&mut object);
        for attempt in 1.. {
            let key = Key::new(metadata::namespace(&object), name.clone());
            // Only a name that was made up is tried again.
            let spare = given.is_empty().then(|| object.clone());
            let result = if !options.dry_run {
                self.write(kind, &key, Expect::Absent, None, object)
            } else if self.registry.store.get(&super::convert::resource(kind), &key).is_some() {
                Err(Status::already_exists(kind, &name))
            } else {
                self.commit(kind, &key, Expect::Absent, object, true)
            };
            object = spare.unwrap_or_default();
            match result {
                Ok(stored) => {
                    if !options.dry_run {
                        self.charge(&target.namespace, charges);
                    }
                    return Ok(Written { object: stored, created: true, warnings: Vec::new() });
                }
                Err(status) if status.reason != "AlreadyExists" => return Err(status),
                Err(mut status) if !given.is_empty() || attempt == NAME_ATTEMPTS => {
                    let taken = self.registry.store.get(&super::convert::resource(kind), &key);
                    if taken.is_some_and(|taken| metadata::is_deleting(&taken.value())) {
                        status.message = format!("object is being deleted: {}", status.message);
                    }
                    if !generate_name.is_empty() {
                        status.message.push_str(
                            ", the server was not able to generate a unique name for the object",
                        );
                        if let Some(details) = &mut status.details {
                            details["retryAfterSeconds"] = 1.into();
                        }
                    }
                    return Err(status);
                }
                Err(_) => {
                    let draw = || names::generate(&self.registry.env, &generate_name);
                    name = options.inquiry.name(attempt, draw);
                    metadata::set(&mut object, "name", name.clone().into());
                }
            }
        }
        Err(Status::internal("no name was tried"))
    }

    /// Nobody gives away more than they have.
    pub(crate) fn check_grant(
        &self,
        target: &Target,
        options: &WriteOptions,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<(), Status> {
        let Some(user) = &options.user else { return Ok(()) };
        let Target { kind, namespace, name } = target;
        self.registry.rbac.check_grant(user, &RoleWrite { kind, namespace, name, old, new })
    }
}

/// What clients cannot say of a new object.
const SYSTEM_FIELDS: [&str; 4] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
/// The same, but shown to those who only try to make one by a PUT or an apply.
const SELF_LINK: &str = "selfLink";

/// What the server alone decides about a new object, whatever admission made of it.
fn prepare(kind: &Kind, object: &mut Value) {
    let strategy = &kind.strategy;
    if !matches!(strategy.generation, Generation::None | Generation::SpecChanges) {
        metadata::set(object, "generation", 1.into());
    }
    if strategy.status && !hooks::of(kind).keeps_status {
        let empty = kind.custom.is_none().then(|| empty_status(kind));
        metadata::set_top(object, "status", empty);
    }
}

/// The status of an object nobody has looked at yet: zero wherever a number is always shown.
fn empty_status(kind: &Kind) -> Value {
    let mut status = json!({});
    let Some(schema) = kind.schema.root().field("status") else { return status };
    let node = schema.node();
    for field in &node.required {
        if schema.field(field).is_some_and(|field| field.node().ty == Type::Integer) {
            status[field] = 0.into();
        }
    }
    if node.properties.contains_key("loadBalancer") {
        status["loadBalancer"] = json!({});
    }
    crate::default::fill_blanks(schema, &mut status);
    status
}

/// Makes the object's name and namespace those of the URL, or refuses.
pub(crate) fn place(target: &Target, object: &mut Value) -> Result<(), Status> {
    place_in_namespace(target, object)?;
    let name = metadata::name(object);
    if !target.name.is_empty() {
        if name.is_empty() {
            metadata::set(object, "name", target.name.clone().into());
        } else if name != target.name {
            return Err(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                target.name
            )));
        }
    }
    Ok(())
}

/// Makes the object's namespace that of the URL, or refuses.
pub(super) fn place_in_namespace(target: &Target, object: &mut Value) -> Result<(), Status> {
    let namespace = metadata::namespace(object);
    if target.kind.namespaced {
        if namespace.is_empty() {
            metadata::set(object, "namespace", target.namespace.clone().into());
        } else if namespace != target.namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    } else if !namespace.is_empty() {
        metadata::set(object, "namespace", Value::Null);
    }
    Ok(())
}
