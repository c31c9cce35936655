//! Server-side apply of children, left out when nothing would change.
//!
//! The runtime remembers what it applied to a child and what came of it. The same wish and an
//! unchanged child (status aside) need no write; anything else is sent, and the server decides.
//! The child is looked at first, in the cache or (a kind that was not declared) in the API: a
//! stranger's is never written to.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use serde_json::Value;

use super::memory::LastApply;
use super::write::nameless;
use super::{Applied, Change, Context, owner, request};
use crate::error::Result;
use crate::key::Key;
use crate::kind::{Kind, Object};

impl<K: Object> Context<K> {
    /// Server-side apply of a child: owner reference and namespace set, fields of other managers
    /// taken over by force, no write when nothing would change.
    ///
    /// An object of that name without a controller is adopted.
    ///
    /// # Errors
    /// [`crate::Error::NotOurs`] when somebody else controls it, [`crate::Error::InvalidOwner`],
    /// or what the API says.
    pub async fn apply<T: Object>(&self, mut desired: T) -> Result<Applied<T>> {
        let (kind, primary) = (Kind::of::<T>(), self.primary());
        if desired.meta().name.is_none() {
            return Err(nameless(&kind));
        }
        owner::adopt(&*primary, &kind, desired.meta_mut())?;
        let key = Key::of(&desired);
        let wish = wish(&desired).map_err(|error| request::undecodable(&kind, &key, error))?;
        let desired_digest = digest(wish.clone());

        let place = (kind.clone(), key.clone());
        let last = self.memory(|applied| applied.get(&place).cloned());
        let found = self.child::<T>(&kind, &key).await?;
        if let Some((found, found_digest)) = &found {
            owner::check(&*primary, &kind, found.meta(), true)?;
            if let Some(last) = &last
                && last.desired == desired_digest
                && last.result == *found_digest
            {
                return Ok(Applied { object: found.clone(), change: Change::Unchanged });
            }
        }

        let params = PatchParams::apply(self.controller()).force();
        let path = request::to(&kind, key.namespace.as_deref());
        let request = path.patch(&key.name, &params, &Patch::Apply(&wish));
        let answer = self.send(request).await?;
        let object: Arc<T> = Arc::new(answer.decode(&kind, &key)?);
        let revision = object.meta().resource_version.clone().unwrap_or_default();
        let known = found.as_ref().and_then(|(found, _)| found.meta().resource_version.as_ref());
        let known = known.or(last.as_ref().map(|last| &last.revision));
        let change = match known {
            _ if answer.created => Change::Created,
            Some(known) if *known == revision => Change::Unchanged,
            _ => Change::Changed,
        };
        self.note_write("apply", &kind, &key, change);
        self.expect_version(&kind, &key, object.meta());
        let result = serde_json::from_slice(&answer.body).map(intent).map(digest);
        let result = result.map_err(|error| request::undecodable(&kind, &key, error))?;
        let last = LastApply { desired: desired_digest, result, revision };
        self.memory(|applied| applied.insert(place, last));
        Ok(Applied { object, change })
    }

    fn memory<R>(
        &self,
        work: impl FnOnce(&mut std::collections::BTreeMap<(Kind, Key), LastApply>) -> R,
    ) -> R {
        self.run.shared.memories.with(&self.run.key, |memory| work(&mut memory.applied))
    }

    /// The child as it is, with its digest.
    async fn child<T: Object>(&self, kind: &Kind, key: &Key) -> Result<Option<(Arc<T>, u64)>> {
        if let Some(informer) = self.cache_of(kind, key) {
            self.settle(kind, Some(key)).await?;
            let Some(entry) = informer.entry(key) else { return Ok(None) };
            return Ok(Some((entry.decode()?, digest(intent(entry.value()?)))));
        }
        let Some(answer) = self.answer_live(kind, key).await? else { return Ok(None) };
        let value = answer.decode(kind, key)?;
        Ok(Some((Arc::new(answer.decode(kind, key)?), digest(intent(value)))))
    }
}

/// What is sent: the object without what only the server may say.
fn wish<T: Object>(desired: &T) -> serde_json::Result<Value> {
    let mut wish = serde_json::to_value(desired)?;
    if let Some(object) = wish.as_object_mut() {
        object.shift_remove("status");
    }
    if let Some(metadata) = wish.get_mut("metadata").and_then(Value::as_object_mut) {
        let servers =
            ["creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"];
        metadata.retain(|field, _| !servers.contains(&field.as_str()));
    }
    Ok(wish)
}

/// The part of an object that an apply can be about.
fn intent(mut object: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.shift_remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| field != "managedFields" && field != "resourceVersion");
    }
    object
}

/// A number that differs (but for one chance in 2^64) when the value differs; fields in any order.
fn digest(mut value: Value) -> u64 {
    value.sort_all_objects();
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn status_and_revision_do_not_count_as_drift_but_labels_do() {
        let seen = |revision: &str, status: &str, label: &str| {
            digest(intent(json!({
                "status": { "phase": status },
                "metadata": { "resourceVersion": revision, "labels": { "a": label } },
            })))
        };
        assert_eq!(seen("1", "Pending", "x"), seen("2", "Running", "x"));
        assert_ne!(seen("1", "Pending", "x"), seen("1", "Pending", "y"));
    }
}
