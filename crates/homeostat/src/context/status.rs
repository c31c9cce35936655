//! The primary's status: written only when it differs, times and generations filled in.
//!
//! `compose` is pure: the object, the wish and the time give a merge patch or nothing. The patch
//! carries the resourceVersion it was computed from, so a status never overwrites a newer one.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Change, Context};
use crate::condition::DEGRADED;
use crate::error::{Error, REASONS, Result};
use crate::kind::{AnyObject, Kind};

/// What the runtime itself says about the primary after a reconcile.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mark<'a> {
    /// A terminal error: `Degraded` is `True`.
    Degraded { reason: &'a str, message: &'a str },
    /// It went well: a `Degraded` that the runtime set goes away.
    Well,
}

impl<K: AnyObject> Context<K> {
    /// Writes the primary's status if it differs: `observedGeneration` set in status and
    /// conditions (where the types have it), `lastTransitionTime` only when a condition's status
    /// changes. The status given is the whole status: what it leaves out is removed. For a kind known
    /// only at run time `observedGeneration` is kept up where the status has one already.
    ///
    /// # Errors
    /// Terminal when `status` is not the status of the kind; a conflict when the primary changed
    /// meanwhile; otherwise what the API says.
    pub async fn status<S: Serialize>(&self, status: S) -> Result<Change> {
        let wish = serde_json::to_value(status).map_err(Error::terminal)?;
        let Value::Object(wish) = wish else {
            return Err(Error::terminal("a status must be an object"));
        };
        let primary = self.primary();
        let composed = compose((self.kind(), &*primary), wish, Stamp::Everything, self.now())?;
        let Some(patch) = composed else { return Ok(Change::Unchanged) };
        self.patch_part::<K>(Some("status"), "status", (self.kind(), self.key()), &patch).await?;
        Ok(Change::Changed)
    }

    /// Marks the primary, if its status has conditions and this is news. Returns the
    /// resourceVersion that the write gave.
    pub(crate) async fn mark(&self, mark: Mark<'_>) -> Result<Option<String>> {
        let Some(patch) = marked((self.kind(), &*self.primary()), mark, self.now())? else {
            return Ok(None);
        };
        let patched = self
            .patch_part::<K>(Some("status"), "status", (self.kind(), self.key()), &patch)
            .await?;
        Ok(patched.meta().resource_version.clone())
    }

    /// Whether [`Self::mark`] would write.
    pub(crate) fn needs_mark(&self, mark: Mark<'_>) -> bool {
        marked((self.kind(), &*self.primary()), mark, self.now()).is_ok_and(|patch| patch.is_some())
    }
}

/// Which parts of a status are about the current generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stamp {
    Everything,
    /// The status as a whole and only the condition of that type.
    Only(&'static str),
}

/// The merge patch that makes the status of `primary` say `wish`; `None` when it does already.
fn compose<K: AnyObject>(
    (kind, primary): (&Kind, &K),
    mut wish: Map<String, Value>,
    stamp: Stamp,
    now: Timestamp,
) -> Result<Option<Value>> {
    let unreadable = |source| {
        let object = format!("the status given for {kind}");
        Error::Decode { object, source }
    };
    let mut object = serde_json::to_value(primary).map_err(unreadable)?;
    let old = object.get_mut("status").map(Value::take).unwrap_or_default();
    let old_conditions = conditions(&old);

    // Without a type nothing says which fields there are: only those that are used already.
    let typed = Kind::is_known_of::<K>();
    let has_field = |new: &Map<String, Value>, old: Option<&Value>| {
        let field = "observedGeneration";
        typed || new.contains_key(field) || old.is_some_and(|old| old.get(field).is_some())
    };
    if let Some(generation) = primary.meta().generation
        && has_field(&wish, Some(&old))
    {
        wish.insert("observedGeneration".to_owned(), generation.into());
    }
    if let Some(Value::Array(conditions)) = wish.get_mut("conditions") {
        for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
            let type_ = condition.get("type").cloned().unwrap_or_default();
            let before = old_conditions.iter().find(|old| old.get("type") == Some(&type_));
            let kept = before.filter(|old| old.get("status") == condition.get("status"));
            let time = kept.and_then(|old| old.get("lastTransitionTime")).cloned();
            let time = time.unwrap_or_else(|| json!(Time(whole_seconds(now))));
            condition.insert("lastTransitionTime".to_owned(), time);
            let current =
                stamp == Stamp::Everything || matches!(stamp, Stamp::Only(only) if type_ == only);
            if let Some(generation) = primary.meta().generation.filter(|_| current)
                && has_field(condition, before)
            {
                condition.insert("observedGeneration".to_owned(), generation.into());
            }
        }
        // What the runtime says stays until the runtime takes it back.
        let mentioned = conditions.iter().any(is_degraded);
        let ours = |condition: &&Value| is_degraded(condition) && is_runtimes(condition);
        if stamp == Stamp::Everything && !mentioned {
            conditions.extend(old_conditions.iter().find(ours).cloned());
        }
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

/// The merge patch for a mark; `None` when it says nothing new or the kind has no conditions.
fn marked<K: AnyObject>(
    (kind, primary): (&Kind, &K),
    mark: Mark<'_>,
    now: Timestamp,
) -> Result<Option<Value>> {
    let object = serde_json::to_value(primary).map_err(Error::terminal)?;
    let mut status = match object.get("status") {
        Some(Value::Object(status)) => status.clone(),
        _ => Map::new(),
    };
    if !Kind::is_known_of::<K>() && !status.contains_key("conditions") {
        return Ok(None); // No type says whether the kind has conditions.
    }
    let mut list = conditions(&Value::Object(status.clone()));
    let at = list.iter().position(is_degraded);
    match mark {
        Mark::Well => match at {
            Some(at) if is_runtimes(&list[at]) => drop(list.remove(at)),
            _ => return Ok(None),
        },
        Mark::Degraded { reason, message } => {
            let condition =
                json!({ "type": DEGRADED, "status": "True", "reason": reason, "message": message });
            match at {
                Some(at) => list[at] = condition,
                None => list.push(condition),
            }
        }
    }
    status.insert("conditions".to_owned(), Value::Array(list));
    let patch = compose((kind, primary), status, Stamp::Only(DEGRADED), now)?;
    // A type without conditions drops them on the way; what is left is not worth a write.
    Ok(patch.filter(|patch| patch["status"].get("conditions").is_some()))
}

fn conditions(status: &Value) -> Vec<Value> {
    status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn is_degraded(condition: &Value) -> bool {
    condition.get("type").is_some_and(|type_| type_ == DEGRADED)
}

fn is_runtimes(condition: &Value) -> bool {
    let reason = condition.get("reason").and_then(Value::as_str);
    reason.is_some_and(|reason| REASONS.contains(&reason))
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
