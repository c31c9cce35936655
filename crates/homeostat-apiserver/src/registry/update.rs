//! Update: from a live object and a new form of it to the next revision, or to nothing at all.

use std::sync::Arc;

use serde_json::Value;

use super::create::{Tracking, place, place_in_namespace};
use super::options::WriteOptions;
use super::{
    Body, Registry, Target, Writer, Written, convert, generation, hooks, metadata, owners, rules,
    storage_key, transient, turned_off,
};
use crate::admission::{self, Operation, Review, Wish};
use crate::custom;
use crate::field::{FieldError, Reason};
use crate::kinds::Generation;
use crate::status::Status;
use crate::store::{Expect, Stored};
use crate::warn;

/// Which part of an object a write may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    /// Everything but `status`.
    Main,
    /// Only `status`.
    Status,
    /// Only the fields that the named subresource stands for; the caller sees to it.
    Part(&'static str),
}

impl Area {
    /// Whether a write here is a new wish of the user, as opposed to a report or a placement.
    fn is_desired_state(self) -> bool {
        !matches!(self, Self::Status | Self::Part("binding" | "eviction" | "finalize" | "approval"))
    }

    /// Whether the kind's rules for updates apply. A subresource that exists to change what the
    /// main one may not (a Pod's node, say) checks its own input.
    fn is_ruled(self) -> bool {
        matches!(
            self,
            Self::Main
                | Self::Status
                | Self::Part("scale" | "approval" | "resize" | "ephemeralcontainers")
        )
    }

    /// Whether admission sees the write as one of this object. A subresource that speaks another
    /// kind has that admitted instead.
    fn is_admitted(self) -> bool {
        !matches!(self, Self::Part("binding" | "eviction" | "scale"))
    }

    /// The name of the subresource, empty for the main one.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Part(name) => name,
        }
    }
}

/// How an update treats its object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Update {
    /// The part written.
    pub(crate) area: Area,
    /// Who keeps the books.
    pub(crate) tracking: Tracking,
    /// An absent `resourceVersion` is never an error (patches).
    pub(crate) unconditional: bool,
    /// Copies what may change from what was admitted into the live object, where that is less than
    /// the area says.
    pub(crate) take: Option<fn(&Value, &mut Value)>,
}

impl Registry {
    /// Replaces the object (or its status) by `body`; kinds that allow it are created when absent.
    ///
    /// # Errors
    /// The `Status` that says why not; nothing is written then.
    pub fn update(
        &self,
        target: &Target,
        status: bool,
        body: Body,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let mut warnings = Vec::new();
        let kind = &target.kind;
        let object = rules::sent(kind, body, options, &mut warnings)?;
        check_name(target, &object)?;
        let area = if status { Area::Status } else { Area::Main };
        match self.replace(target, area, object, options) {
            Ok(written) => Ok(Written { warnings, ..written }),
            Err(status) => Err(status.warned(warnings)),
        }
    }

    fn replace(
        &self,
        target: &Target,
        area: Area,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        place(target, &mut object)?;
        let writer = self.writer_for(options);
        let absent = self.store.get(&convert::resource(&target.kind), &target.key()).is_none();
        let creates = absent && target.kind.strategy.create_on_update;
        if creates {
            check_uid(target, "", metadata::uid(&object), options.dry_run)?;
            check_number(metadata::text(&object, "resourceVersion"))?;
        }
        if creates && area == Area::Main {
            if !options.dry_run {
                // Whoever only tries is shown it.
                metadata::set(&mut object, "resourceVersion", Value::Null);
            }
            return writer.create(target, object, options, Tracking::Update);
        }
        let update = Update { area, tracking: Tracking::Update, unconditional: false, take: None };
        writer.update(target, update, options, |_| Ok(object))
    }
}

impl Writer<'_> {
    /// The live object, decoded, with what is stored.
    pub(crate) fn live(&self, target: &Target) -> Result<(Arc<Stored>, Value), Status> {
        let stored = self
            .registry
            .store
            .get(&convert::resource(&target.kind), &target.key())
            .ok_or_else(|| Status::not_found(&target.kind, &target.name))?;
        let value = self.form(&target.kind, &stored)?;
        Ok((stored, value))
    }

    /// Makes the next form of the live object with `change` and commits it.
    pub(crate) fn update(
        &self,
        target: &Target,
        update: Update,
        options: &WriteOptions,
        change: impl FnOnce(&Value) -> Result<Value, Status>,
    ) -> Result<Written, Status> {
        self.update_judged(target, update, options, change, || Ok(()))
    }

    /// The same, with somebody else who must agree before the commit.
    pub(crate) fn update_judged(
        &self,
        target: &Target,
        update: Update,
        options: &WriteOptions,
        change: impl FnOnce(&Value) -> Result<Value, Status>,
        judge: impl FnOnce() -> Result<(), Status>,
    ) -> Result<Written, Status> {
        let kind = &target.kind;
        let (stored, live) = self.live(target)?;
        let mut object = change(&live)?;
        place(target, &mut object)?;
        // A status that calls its object something else is one of this kind all the same.
        let is_renamed = update.area == Area::Status && custom::is_stranger(kind, &object);
        if !update.unconditional {
            let (actual, given) = (metadata::uid(&live), metadata::uid(&object));
            check_uid(target, actual, given, options.dry_run)?;
            owners::name_once(&mut object, &options.inquiry, owners::Moment::Written);
        }
        rules::default(kind, &mut object);
        (hooks::of(kind).complete)(Some(&live), &mut object);
        // Fields belong to those who wrote them, not to whoever caused the server to set them.
        if update.tracking == Tracking::Update {
            let mut owned = rules::owned(kind, &object);
            let tracked = owned.as_mut().unwrap_or(&mut object);
            if is_renamed {
                // Nobody can say who owns what of something unknown.
                metadata::set(tracked, "managedFields", Value::Null);
            } else {
                rules::track(self, kind, Some(&live), tracked, &options.manager, update.area)?;
            }
            if let Some(owned) = owned {
                metadata::copy(&mut object, &owned, "managedFields");
            }
        }
        let mut review = Review {
            subresource: update.area.subresource(),
            namespace: &target.namespace,
            name: &target.name,
            object,
            old: Some(&live),
            ..Review::new(self, kind, Operation::Update, Wish::Write(options))
        };
        if update.area.is_admitted() {
            admission::mutate(&mut review)?;
        }
        let object = &mut review.object;
        owners::name_once(object, &options.inquiry, owners::Moment::Admitted);
        place_in_namespace(target, object)?;
        check_revision(target, update, &live, object)?;
        if let Some(take) = update.take {
            let admitted = std::mem::replace(object, live.clone());
            metadata::copy(object, &admitted, "managedFields");
            take(&admitted, object);
        }
        if update.area == Area::Main {
            self.check_grant(target, options, Some(&live), object)?;
        }
        reset(target, update.area, &live, object);
        if is_renamed {
            custom::prune(kind.schema.root(), object);
            rules::default(kind, object);
        }
        let written = (kind.strategy.generation == Generation::AsWrittenAndLabels)
            .then(|| generation::after_update(kind, &live, object));
        turned_off::drop_turned_off(kind, object);
        if update.area == Area::Main {
            (hooks::of(kind).update)(self, kind, &live, object)?;
        } else {
            (hooks::of(kind).part)(self, update.area.subresource(), &live, object);
        }
        if update.area.is_desired_state() {
            let next = written.unwrap_or_else(|| {
                let compared = hooks::of(kind).compared.map(|compared| compared(object));
                generation::after_update(kind, &live, compared.as_ref().unwrap_or(object))
            });
            metadata::set(object, "generation", next.map_or(Value::Null, Value::from));
        }
        refuse_new_finalizers(target, &live, object)?;
        if update.area.is_ruled() {
            rules::validate(self, kind, object, Some(&live), update.area, options)?;
        }
        let words = match update.area {
            Area::Main => warn::about(kind, object, Some(&live)),
            Area::Status => warn::about_status(kind, object),
            Area::Part(_) => Vec::new(),
        };
        words.into_iter().for_each(|words| options.inquiry.warn(words));
        rules::keep(kind, object);
        metadata::copy(object, &live, "resourceVersion");
        rules::settle(&live, object);
        let charges =
            if update.area.is_admitted() { admission::validate(&review)? } else { Vec::new() };
        judge()?;
        let mut object = review.object;
        let done = |object| Ok(Written { object, created: false, warnings: Vec::new() });
        if self.is_finished(kind, &object) {
            // Watchers see the last state that was stored; the client sees what it asked for.
            if !options.dry_run {
                self.remove(kind, &stored, &object)?;
            }
            return done(Arc::new(transient(&stored.key, &object)));
        }
        crate::default::empty_lists(kind, &mut object);
        if !options.dry_run {
            // It is not stored: whoever only tries is shown it, as is whose change ended the object.
            metadata::set(&mut object, "selfLink", Value::Null);
        }
        // A write that changes nothing still moves the object to the version that is stored now.
        let moves = kind
            .custom
            .as_ref()
            .is_some_and(|custom| stored.api_version != custom.versions.stored_as());
        if object == live && !moves {
            return done(stored);
        }
        let expect = Expect::Revision(stored.revision);
        if options.dry_run {
            return done(self.commit(kind, &stored.key, expect, object, true)?);
        }
        let committed = self.write(kind, &stored.key, expect, Some(&live), object)?;
        self.charge(&target.namespace, charges);
        done(committed)
    }
}

/// A replacement says its name.
pub(super) fn check_name(target: &Target, object: &Value) -> Result<(), Status> {
    if !metadata::name(object).is_empty() {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        target.name
    )))
}

/// The `resourceVersion` of the new form must be that of the live object, if it is given.
fn check_revision(
    target: &Target,
    update: Update,
    live: &Value,
    object: &Value,
) -> Result<(), Status> {
    let kind = &target.kind;
    let revision = metadata::text(object, "resourceVersion");
    check_number(revision)?;
    if revision.is_empty() || revision == "0" {
        if !update.unconditional && !kind.strategy.unconditional_update {
            let error = FieldError::new(
                "metadata.resourceVersion",
                Reason::Invalid,
                0.into(),
                "must be specified for an update",
            );
            return Err(Status::invalid_kind(&kind.group, &kind.plural, &target.name, &[error]));
        }
    } else if revision != metadata::text(live, "resourceVersion") {
        return Err(Status::modified(kind, &target.name));
    }
    Ok(())
}

fn check_number(revision: &str) -> Result<(), Status> {
    if !revision.is_empty() && revision.parse::<u64>().is_err() {
        let words = format!("strconv.ParseUint: parsing {revision:?}: invalid syntax");
        return Err(Status::unexplained(words));
    }
    Ok(())
}

/// The uid of the new form must be that of the live object, if it is given.
pub(super) fn check_uid(
    target: &Target,
    actual: &str,
    given: &str,
    dry_run: bool,
) -> Result<(), Status> {
    if given.is_empty() || given == actual {
        return Ok(());
    }
    // What is not to be stored is looked at before it gets to the storage, which has a prefix.
    let prefix = if dry_run { "" } else { "/registry" };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {prefix}{}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, \
         UID in object meta: {actual}",
        storage_key::of(target)
    );
    Err(Status::conflict(&target.kind, &target.name, &why))
}

/// Puts back whatever this write may not touch.
fn reset(target: &Target, area: Area, live: &Value, object: &mut Value) {
    let kind = &target.kind;
    if area == Area::Main {
        for field in kind.strategy.create_only {
            metadata::set_top(object, field, live.get(*field).cloned());
        }
    }
    match area {
        Area::Main | Area::Part("finalize") if kind.strategy.status => {
            metadata::set_top(object, "status", live.get("status").cloned());
        }
        Area::Main | Area::Part(_) => {}
        Area::Status => {
            let status = object.get("status").cloned();
            let written = std::mem::replace(object, live.clone());
            metadata::set_top(object, "status", status);
            if kind.custom.is_some() {
                metadata::copy(object, &written, "managedFields");
            } else {
                metadata::set_top(object, "metadata", written.get("metadata").cloned());
                for field in kind.strategy.status_leaves {
                    metadata::copy(object, live, field);
                }
            }
        }
    }
    for field in ["generation", "creationTimestamp"] {
        metadata::copy(object, live, field);
    }
    // What is left out stays; what is given must be the same.
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if metadata::field(object, field).is_none_or(Value::is_null) {
            metadata::copy(object, live, field);
        }
    }
}

/// Once an object is being deleted, finalizers only ever go.
fn refuse_new_finalizers(target: &Target, live: &Value, object: &Value) -> Result<(), Status> {
    if !metadata::is_deleting(live) {
        return Ok(());
    }
    let known = metadata::finalizers(live);
    let new: Vec<&str> =
        metadata::finalizers(object).into_iter().filter(|name| !known.contains(name)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        new.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
    );
    let error = FieldError::forbidden("metadata.finalizers", why);
    Err(Status::invalid(&target.kind, &target.name, &[error]))
}
