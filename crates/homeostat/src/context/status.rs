//! The primary's status: written only when it differs, times and generations filled in.
//!
//! `compose` is pure: the object, the wish and the time give a merge patch or nothing. The patch
//! carries the resourceVersion it was computed from, so a status never overwrites a newer one.

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Patch;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::voice::{Voice, is_of, is_runtimes, is_same, says};
use super::{Change, Context, Shared};
use crate::condition::{DEGRADED, READY};
use crate::error::{Error, GIVEN_UP, Result};
use crate::kind::{AnyObject, Kind};

/// What the runtime itself says about the primary after a reconcile.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mark<'a> {
    /// A terminal error: `Degraded` is `True` and `Ready` is `False`, but for what the reconcile
    /// itself said of either.
    Degraded { reason: &'a str, message: &'a str },
    /// It went well: what the runtime said after a terminal error goes away.
    Well,
}

impl<K: AnyObject> Context<K> {
    /// Writes the primary's status if it differs: `observedGeneration` set in status and
    /// conditions (where the types have it), `lastTransitionTime` only when a condition's status
    /// changes. The status given is the whole status: what it leaves out is removed. For a kind known
    /// only at run time `observedGeneration` is kept up where the status has one already.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
    /// use homeostat::{Context, Controller, Outcome, Result, condition};
    ///
    /// async fn reconcile(
    ///     budget: Arc<PodDisruptionBudget>,
    ///     ctx: Context<PodDisruptionBudget>,
    /// ) -> Result<Outcome> {
    ///     let ready = condition::new("Ready", true, "Counted", "nothing is missing");
    ///     let mut status = budget.status.clone().unwrap_or_default();
    ///     status.conditions = Some(vec![ready]);
    ///     ctx.status(status).await?;
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// #     let running = cluster.start(Controller::new(reconcile)).await;
    /// #     let web = serde_json::json!({ "metadata": { "name": "web" }, "spec": { "minAvailable": 1 } });
    /// #     cluster.create::<PodDisruptionBudget>(web).await;
    /// #     let told = |web: &PodDisruptionBudget| {
    /// #         let status: Option<&PodDisruptionBudgetStatus> = web.status.as_ref();
    /// #         status.is_some_and(|it| it.observed_generation == Some(1) && it.conditions.is_some())
    /// #     };
    /// #     cluster.until_one("web", "a status", told).await;
    /// #     cluster.quiet().await; // what is said already is not written again
    /// #     running.stop().await.unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    /// Terminal when `status` is not the status of the kind, or the controller knows the metadata of
    /// its primaries alone; a conflict when the primary changed
    /// meanwhile; otherwise what the API says.
    pub async fn status<S: Serialize>(&self, status: S) -> Result<Change> {
        if K::metadata_api() {
            let why = "its controller knows the metadata alone; write it with merge_patch_status";
            return Err(Error::terminal(format!(
                "the status of {} is not known: {why}",
                self.kind()
            )));
        }
        let wish = serde_json::to_value(status).map_err(Error::terminal)?;
        let Value::Object(wish) = wish else {
            return Err(Error::terminal("a status must be an object"));
        };
        let primary = self.primary();
        // Carried over from the status before, the runtime's words are still the runtime's.
        let is_own = |one: &&Value| !is_runtimes(one);
        let listed = wish.get("conditions").and_then(Value::as_array);
        let said = |type_| listed?.iter().find(|one| is_of(one, type_)).filter(is_own);
        let ready = said(READY).is_some();
        let reason = |one: &Value| Some(one.get("reason")?.as_str()?.to_owned());
        let degraded = said(DEGRADED)
            .map(|one| SaidDegraded { is_so: says(one, "status", "True"), reason: reason(one) });
        let composed = compose(self.subject(&primary), wish, Stamp::Everything, self.now())?;
        let change = match composed {
            None => Change::Unchanged,
            Some(patch) => {
                let (object, patch) = ((self.kind(), self.key()), Patch::Merge(&patch));
                self.patch_part::<K>(Some("status"), "status", object, &patch).await?;
                Change::Changed
            }
        };
        // What could not be written was not said: nobody sees it.
        self.run.said_ready.store(ready, Ordering::Relaxed);
        self.note(|diary| diary.said_degraded = degraded);
        Ok(change)
    }

    /// Marks the primary, if its status has conditions and this is news. Returns the
    /// resourceVersion that the write gave.
    pub(crate) async fn mark(&self, mark: Mark<'_>) -> Result<Option<String>> {
        let ours = self.ours_to_mark(mark);
        let patch = marked(self.subject(&self.primary()), mark, ours, self.now())?;
        let Some(patch) = patch else { return Ok(None) };
        let patched = self
            .patch_part::<K>(
                Some("status"),
                "status",
                (self.kind(), self.key()),
                &Patch::Merge(&patch),
            )
            .await?;
        Ok(patched.meta().resource_version.clone())
    }

    /// Whether [`Self::mark`] would write.
    pub(crate) fn needs_mark(&self, mark: Mark<'_>) -> bool {
        if !self.run.shared.marks_status {
            return false;
        }
        if matches!(mark, Mark::Well) && self.run.is_sound.load(Ordering::Relaxed) {
            return false; // The usual case: the object need not be looked into.
        }
        if K::metadata_api() {
            return false; // Whether there are conditions is not known.
        }
        let ours = self.ours_to_mark(mark);
        let patch = marked(self.subject(&self.primary()), mark, ours, self.now());
        patch.is_ok_and(|patch| patch.is_some())
    }

    /// The conditions that the reconcile has left to the runtime.
    fn ours_to_mark(&self, mark: Mark<'_>) -> &'static [&'static str] {
        let ready = self.run.said_ready.load(Ordering::Relaxed);
        // That a key is given up is for the runtime alone to say.
        let overrules = matches!(mark, Mark::Degraded { reason: GIVEN_UP, .. });
        let said = self.noted(|diary| diary.said_degraded.is_some()).unwrap_or_default();
        let degraded = !overrules && said;
        match (ready, degraded) {
            (false, false) => &[READY, DEGRADED],
            (true, false) => &[DEGRADED],
            (false, true) => &[READY],
            (true, true) => &[],
        }
    }

    /// The reason for which this reconcile itself called the primary degraded.
    pub(crate) fn said_degraded(&self) -> Option<String> {
        let said = self.noted(|diary| diary.said_degraded.clone()).flatten()?;
        said.reason.filter(|_| said.is_so)
    }

    fn subject<'a>(&'a self, primary: &'a K) -> Subject<'a, K> {
        let Shared { name: controller, marks_status: is_marked, .. } = &*self.run.shared;
        let voice = Voice { controller, generation: self.run.generation };
        Subject { kind: self.kind(), primary, voice, is_marked: *is_marked }
    }
}

/// What a reconcile itself said of [`DEGRADED`].
#[derive(Debug, Clone)]
pub(super) struct SaidDegraded {
    is_so: bool,
    reason: Option<String>,
}

/// Whose status it is.
struct Subject<'a, K> {
    kind: &'a Kind,
    primary: &'a K,
    /// With the generation that the reconcile was given: a later one, of which it may have heard by
    /// its own writes, it has not acted on.
    voice: Voice<'a>,
    /// Whether the runtime speaks there.
    is_marked: bool,
}

/// Which parts of a status are about the current generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stamp {
    Everything,
    /// The status as a whole and only the conditions of those types.
    Only(&'static [&'static str]),
}

/// The merge patch that makes the status of `primary` say `wish`; `None` when it does already.
fn compose<K: AnyObject>(
    Subject { kind, primary, voice, is_marked }: Subject<'_, K>,
    mut wish: Map<String, Value>,
    stamp: Stamp,
    now: Timestamp,
) -> Result<Option<Value>> {
    let unreadable = |error: serde_json::Error| {
        Error::terminal(format!("the status given for {kind} cannot be decoded: {error}"))
    };
    let mut object = serde_json::to_value(primary).map_err(unreadable)?;
    let old = object.get_mut("status").map(Value::take).unwrap_or_default();
    let old_conditions = conditions(&old);
    let generation = voice.generation;

    // Without a type nothing says which fields there are: only those that are used already.
    let typed = Kind::is_known_of::<K>();
    let has_field = |new: &Map<String, Value>, old: Option<&Value>| {
        let field = "observedGeneration";
        typed || new.contains_key(field) || old.is_some_and(|old| old.get(field).is_some())
    };
    if let Some(generation) = generation
        && has_field(&wish, Some(&old))
    {
        wish.insert("observedGeneration".to_owned(), generation.into());
    }
    // What the runtime says stays until the runtime takes it back, for whichever controller; for one
    // without a voice it says nothing, so what stays is another's.
    let mentioned = |type_: Option<&Value>| {
        let listed = wish.get("conditions").and_then(Value::as_array);
        listed.into_iter().flatten().any(|new| new.get("type") == type_)
    };
    let stays = |old: &Value| if is_marked { is_runtimes(old) } else { voice.is_anothers(old) };
    let is_kept = |old: &&Value| stays(old) && !mentioned(old.get("type"));
    let kept: Vec<Value> = match stamp {
        Stamp::Everything => old_conditions.iter().filter(is_kept).cloned().collect(),
        Stamp::Only(_) => Vec::new(),
    };
    let listed = wish.get("conditions").unwrap_or(&Value::Null);
    if listed.is_null() && !kept.is_empty() {
        wish.insert("conditions".to_owned(), Value::Array(Vec::new()));
    }
    if let Some(Value::Array(conditions)) = wish.get_mut("conditions") {
        if stamp == Stamp::Everything {
            // Carried over, it stays as the runtime left it.
            for said in conditions.iter_mut().filter(|one| is_runtimes(one)) {
                let before = old_conditions.iter().find(|old| is_same(old, said));
                before.into_iter().for_each(|before| said.clone_from(before));
            }
        }
        for condition in conditions
            .iter_mut()
            .filter(|one| !old_conditions.contains(one) || !is_runtimes(one))
            .filter_map(Value::as_object_mut)
        {
            let type_ = condition.get("type").cloned().unwrap_or_default();
            let before = old_conditions.iter().find(|old| old.get("type") == Some(&type_));
            let kept = before.filter(|old| old.get("status") == condition.get("status"));
            let time = kept.and_then(|old| old.get("lastTransitionTime")).cloned();
            let time = time.unwrap_or_else(|| json!(Time(whole_seconds(now))));
            condition.insert("lastTransitionTime".to_owned(), time);
            let current = stamp == Stamp::Everything
                || matches!(stamp, Stamp::Only(only) if only.iter().any(|only| type_ == *only));
            if let Some(generation) = generation.filter(|_| current)
                && has_field(condition, before)
            {
                condition.insert("observedGeneration".to_owned(), generation.into());
            }
        }
        conditions.extend(kept);
    }

    // Through the type and back: fields it does not have (such as `observedGeneration`) fall out.
    let had_wish = !wish.is_empty();
    object["status"] = Value::Object(wish);
    let typed: K = serde_json::from_value(object).map_err(unreadable)?;
    let mut object = serde_json::to_value(typed).map_err(unreadable)?;
    let new = object.get_mut("status").map(Value::take).unwrap_or_default();
    if new.is_null() && had_wish {
        return Err(Error::terminal(format!("{kind} has no status")));
    }
    let meta = primary.meta();
    Ok(difference(&old, &new).map(|status| {
        json!({
            "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version },
            "status": status,
        })
    }))
}

/// The merge patch for a mark in the conditions that are ours to write; `None` when it says nothing new or the kind has no conditions.
fn marked<K: AnyObject>(
    subject: Subject<'_, K>,
    mark: Mark<'_>,
    ours: &'static [&'static str],
    now: Timestamp,
) -> Result<Option<Value>> {
    let object = serde_json::to_value(subject.primary).map_err(Error::terminal)?;
    let mut status = match object.get("status") {
        Some(Value::Object(status)) => status.clone(),
        _ => Map::new(),
    };
    if !Kind::is_known_of::<K>() && !status.contains_key("conditions") {
        return Ok(None); // No type says whether the kind has conditions.
    }
    let mut list = conditions(&Value::Object(status.clone()));
    let voice = subject.voice;
    match mark {
        Mark::Well => {
            let before = list.len();
            let taken_back =
                |one: &Value| voice.is_ours(one) && ours.iter().any(|of| is_of(one, of));
            list.retain(|one| !taken_back(one));
            if list.len() == before {
                return Ok(None);
            }
        }
        Mark::Degraded { reason, message } => {
            let message = voice.sign(message);
            for type_ in ours {
                let so = if *type_ == DEGRADED { "True" } else { "False" };
                let condition =
                    json!({ "type": type_, "status": so, "reason": reason, "message": message });
                match list.iter().position(|one| is_of(one, type_)) {
                    Some(at) if voice.is_anothers(&list[at]) => {} // Its event comes when it is free.
                    Some(at) => list[at] = condition,
                    None => list.push(condition),
                }
            }
        }
    }
    status.insert("conditions".to_owned(), Value::Array(list));
    let patch = compose(subject, status, Stamp::Only(ours), now)?;
    // A type without conditions drops them on the way; what is left is not worth a write.
    Ok(patch.filter(|patch| patch["status"].get("conditions").is_some()))
}

fn conditions(status: &Value) -> Vec<Value> {
    status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The API keeps no fractions of a second.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// The merge patch (RFC 7396) from `old` to `new`; `None` when they are equal.
fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Some(new.clone()) };
    let removed = old.keys().filter(|field| !new.contains_key(*field));
    let mut patch: Map<_, _> = removed.map(|field| (field.clone(), Value::Null)).collect();
    for (field, value) in new {
        let change = match old.get(field) {
            Some(before) => difference(before, value),
            None if value.is_null() => None,
            None => Some(value.clone()),
        };
        patch.extend(change.map(|change| (field.clone(), change)));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}
