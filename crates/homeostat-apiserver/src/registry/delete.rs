//! Delete: at once, or marked and left to those who hold it back.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::options::DeleteOptions;
use super::{Registry, Target, Writer, convert, hooks, metadata, seconds, transient};
use crate::admission::{self, Operation, Review, Wish};
use crate::bootstrap;
use crate::kinds::{Kind, Propagation};
use crate::status::Status;
use crate::store::{Expect, StoreError, Stored};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What became of a delete.
#[derive(Debug, Clone)]
pub enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Arc<Stored>),
    /// The object stays until its grace has passed and its finalizers are removed.
    Pending(Arc<Stored>),
}

impl Deleted {
    /// The object, gone or going.
    #[must_use]
    pub fn object(&self) -> &Arc<Stored> {
        match self {
            Self::Gone(object) | Self::Pending(object) => object,
        }
    }
}

impl Registry {
    /// Deletes one object.
    ///
    /// # Errors
    /// 404 when there is none, 409 when a precondition does not hold, 403 when it must stay.
    pub fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<Deleted, Status> {
        self.writer_at(&options.inquiry).delete(target, options)
    }
}

impl Writer<'_> {
    pub(crate) fn delete(
        &self,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let (stored, live) = self.live(target)?;
        check_preconditions(target, &live, options)?;
        if !target.kind.strategy.graceful {
            self.admit_delete(target, options, &live)?;
        } else if let Some(grace) = new_grace(&target.kind, &live, options) {
            let admitted = DeleteOptions { grace: Some(grace), ..options.clone() };
            self.admit_delete(target, &admitted, &live)?;
            let (marked, is_gone) = self.mark(target, options, &live)?;
            if is_gone {
                // Marking it is one delete, taking it away another.
                self.admit_delete(target, &admitted, &marked)?;
            }
        }
        self.delete_admitted(target, options, stored, &live)
    }

    fn admit_delete(
        &self,
        target: &Target,
        options: &DeleteOptions,
        live: &Value,
    ) -> Result<(), Status> {
        // What ends by itself does so under its own name, not under that of another after it.
        let uid = || ends_by_itself(&target.kind).then(|| metadata::uid(live).to_owned());
        let options = &DeleteOptions { uid: options.uid.clone().or_else(uid), ..options.clone() };
        let mut review = Review {
            namespace: &target.namespace,
            name: if options.of_many { "" } else { &target.name },
            old: Some(live),
            ..Review::new(self, &target.kind, Operation::Delete, Wish::Delete(options))
        };
        admission::mutate(&mut review)?;
        admission::validate(&review).map(drop)
    }

    /// Deletes an object about which nobody is asked.
    pub(crate) fn delete_admitted(
        &self,
        target: &Target,
        options: &DeleteOptions,
        stored: Arc<Stored>,
        live: &Value,
    ) -> Result<Deleted, Status> {
        let kind = &target.kind;
        let (object, is_gone) = self.mark(target, options, live)?;
        if is_gone {
            let marked = metadata::is_deleting(&object) && object != *live;
            if options.dry_run {
                let shown =
                    if marked { transient(&stored.key, &object) } else { (*stored).clone() };
                return Ok(Deleted::Gone(Arc::new(shown)));
            }
            let last = if marked {
                // Watchers see the mark before the object goes.
                let expect = Expect::Revision(stored.revision);
                self.commit(kind, &stored.key, expect, object.clone(), false)?
            } else {
                stored
            };
            return Ok(Deleted::Gone(self.remove(kind, &last, &object)?));
        }
        if object == *live {
            return Ok(Deleted::Pending(stored));
        }
        if options.dry_run {
            return Ok(Deleted::Pending(Arc::new(transient(&stored.key, &object))));
        }
        let expect = Expect::Revision(stored.revision);
        let marked = self.write(kind, &stored.key, expect, Some(live), object)?;
        Ok(Deleted::Pending(marked))
    }

    /// The object with whatever mark the delete leaves on it, and whether it goes at once.
    fn mark(
        &self,
        target: &Target,
        options: &DeleteOptions,
        live: &Value,
    ) -> Result<(Value, bool), Status> {
        let kind = &target.kind;
        let mut object = live.clone();
        (hooks::of(kind).delete)(self, kind, &mut object)?;
        set_propagation(kind, &mut object, options.propagation);
        let wanted = grace_seconds(kind, live, options);
        let held = !metadata::finalizers(&object).is_empty() || has_spec_finalizers(kind, &object);
        match metadata::grace(live) {
            // A second delete only ever shortens the wait.
            Some(pending)
                if metadata::is_deleting(live) && options.grace.is_some() && wanted < pending =>
            {
                let now = self.time;
                // A time that was cut off at the end of the calendar says nothing of its beginning.
                let begun = deletion_time(live).checked_sub(SignedDuration::from_secs(pending));
                let begun = begun.map_or(now, |begun| begun.min(now));
                mark(&mut object, begun, wanted);
            }
            _ if metadata::is_deleting(live) => {}
            _ if kind.strategy.graceful || held => {
                mark(&mut object, self.time, wanted);
                if ends_by_itself(kind) {
                    metadata::set(&mut object, "deletionGracePeriodSeconds", Value::Null);
                } else if metadata::generation(&object) > 0 {
                    let next = metadata::generation(&object).wrapping_add(1);
                    metadata::set(&mut object, "generation", next.into());
                }
            }
            _ => {}
        }
        let is_gone =
            if metadata::is_deleting(&object) { self.is_finished(kind, &object) } else { !held };
        Ok((object, is_gone))
    }

    /// Whether a deletion is pending that nothing holds back any more.
    pub(crate) fn is_finished(&self, kind: &Kind, object: &Value) -> bool {
        metadata::is_deleting(object)
            && metadata::finalizers(object).is_empty()
            && metadata::grace(object).unwrap_or(0) == 0
            && !has_spec_finalizers(kind, object)
    }

    /// Takes the object out of the store.
    pub(crate) fn remove(
        &self,
        kind: &Kind,
        stored: &Stored,
        object: &Value,
    ) -> Result<Arc<Stored>, Status> {
        let resource = convert::resource(kind);
        let last = self.registry.store.delete(&resource, &stored.key, stored.revision).map_err(
            |error| match error {
                StoreError::Failed => Status::internal(error.to_string()),
                _ => Status::modified(kind, &stored.key.name),
            },
        )?;
        self.registry.rbac.removed(&resource, &stored.key);
        if bootstrap::is_kept(&resource, &stored.key) {
            self.registry.disturb();
        }
        (hooks::of(kind).removed)(self, kind, object);
        Ok(last)
    }
}

/// Namespaces and definitions have an end of their own, which knows no grace.
fn ends_by_itself(kind: &Kind) -> bool {
    kind.custom.is_none()
        && matches!(
            kind.resource().as_str(),
            "namespaces" | "customresourcedefinitions.apiextensions.k8s.io"
        )
}

/// Namespaces keep finalizers in `spec`, too.
fn has_spec_finalizers(kind: &Kind, object: &Value) -> bool {
    kind.custom.is_none()
        && kind.group.is_empty()
        && kind.plural == "namespaces"
        && object
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|all| !all.is_empty())
}

fn mark(object: &mut Value, begun: Timestamp, grace: i64) {
    let due = begun.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
    metadata::set(object, "deletionTimestamp", seconds(due).into());
    metadata::set(object, "deletionGracePeriodSeconds", grace.into());
}

fn deletion_time(object: &Value) -> Timestamp {
    metadata::text(object, "deletionTimestamp").parse().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// How long the object may take to finish. Only kinds that something runs for have any.
fn grace_seconds(kind: &Kind, object: &Value, options: &DeleteOptions) -> i64 {
    if !kind.strategy.graceful {
        return 0;
    }
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let unscheduled = text("/spec/nodeName").is_empty();
    let finished = matches!(text("/status/phase"), "Succeeded" | "Failed");
    if unscheduled || finished {
        return 0;
    }
    let own = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    match options.grace.or(own).unwrap_or(30) {
        negative if negative < 0 => 1,
        grace => grace,
    }
}

/// The grace that the delete gives an object which something runs for; none where it changes nothing
/// about the end that the object has before it already.
fn new_grace(kind: &Kind, live: &Value, options: &DeleteOptions) -> Option<i64> {
    match metadata::grace(live).filter(|_| metadata::is_deleting(live)) {
        Some(pending) => options.grace.filter(|grace| *grace < pending),
        None => Some(grace_seconds(kind, live, options)),
    }
}

pub(super) fn check_preconditions(
    target: &Target,
    live: &Value,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let check = |name: &str, wanted: &Option<String>, actual: &str, guess: &str| match wanted {
        Some(wanted) if wanted != actual => {
            let why = format!(
                "the {name} in the precondition ({wanted}) does not match the {name} in record \
                 ({actual}). The object might have been {guess}"
            );
            Err(Status::conflict_of_kind(&target.kind, &target.name, &why))
        }
        _ => Ok(()),
    };
    let revision = metadata::text(live, "resourceVersion");
    check("UID", &options.uid, metadata::uid(live), "deleted and then recreated")?;
    check("ResourceVersion", &options.revision, revision, "modified")
}

/// Writes what shall happen to dependents into the finalizers, for the garbage collector.
fn set_propagation(kind: &Kind, object: &mut Value, asked: Option<Propagation>) {
    if super::convert::resource(kind) == super::expiry::EVENTS {
        return;
    }
    let current: Vec<String> =
        metadata::finalizers(object).into_iter().map(str::to_owned).collect();
    let already = current.iter().any(|name| name == ORPHAN || name == FOREGROUND);
    let policy = match asked {
        Some(policy) => policy,
        None if already => return,
        None => kind.strategy.propagation,
    };
    let mut finalizers: Vec<String> =
        current.iter().filter(|name| *name != ORPHAN && *name != FOREGROUND).cloned().collect();
    match policy {
        Propagation::Background => {}
        Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
        Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
    }
    if finalizers != current {
        metadata::set_finalizers(object, &finalizers);
    }
}
