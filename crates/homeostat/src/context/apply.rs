//! Server-side apply of children, left out when nothing would change.
//!
//! The runtime remembers what it applied to a child and what came of it. The same wish and an
//! unchanged child (status aside) need no write; anything else is sent, and the server decides. What
//! an earlier process applied it does not know (caches keep no managed fields, which would tell), so
//! a child is sent once by each process; the server writes nothing if nothing changes.
//! The child is looked at first, in the cache or (a kind that was not declared) in the API: a
//! stranger's is never written to.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use serde_json::Value;

use super::barrier::Part;
use super::claim::Origin;
use super::memory::LastApply;
use super::write::nameless;
use super::{Applied, Change, Context, Memory, Wish, claim, owner, request};
use crate::cache::share;
use crate::error::{Error, Result};
use crate::journal::ReadFrom;
use crate::key::Key;
use crate::kind::{AnyObject, Kind};

impl<K: AnyObject> Context<K> {
    /// Server-side apply of a child: owner reference and namespace set, fields of other managers
    /// taken over by force, no request when nothing would change. The first apply of a child by a
    /// process is always sent: what it asks for is there already after a restart, and then the API
    /// writes nothing, wakes nobody, and the change is [`Change::Unchanged`].
    ///
    /// An object of that name that nobody controls is adopted: it becomes the primary's child and
    /// goes with it, and an event `Adopted` on the primary names it. That is what
    /// `SetControllerReference` and an update do in Go. A reconcile that must not adopt uses
    /// [`Self::create`], which refuses what it did not make, or looks first with [`Self::get`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use homeostat::kube::ResourceExt;
    /// use homeostat::{Change, Context, Controller, Outcome, Result};
    ///
    /// async fn reconcile(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ///     let mut copy = Secret { string_data: config.data.clone(), ..Secret::default() };
    ///     copy.metadata.name = Some(config.name_any());
    ///     let applied = ctx.apply(copy).await?;
    ///     if applied.change != Change::Unchanged {
    ///         ctx.announce(&applied); // an event, such as `Created`
    ///     }
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// #     let running = cluster.start(Controller::new(reconcile).owns::<Secret>()).await;
    /// #     let web = serde_json::json!({ "metadata": { "name": "web" }, "data": { "a": "b" } });
    /// #     cluster.create::<ConfigMap>(web).await;
    /// #     let owned = |copy: &Secret| copy.owner_references()[0].name == "web";
    /// #     cluster.until_one::<Secret>("web", "a child", owned).await;
    /// #     // Whoever removes it only makes work.
    /// #     cluster.api::<Secret>().delete("web", &Default::default()).await.unwrap();
    /// #     cluster.until_one::<Secret>("web", "another child", owned).await;
    /// #     running.stop().await.unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::NotOurs`] when somebody else controls it: it is left alone and followed, so
    /// the reconcile runs again when it goes or its controller gives it up.
    /// [`crate::Error::InvalidOwner`], or what the API says. A child that cannot be changed into
    /// what is asked for is followed too.
    pub async fn apply<T: AnyObject>(&self, desired: T) -> Result<Applied<T>> {
        self.apply_as(desired, Origin::Ours).await
    }

    /// [`Self::apply`] of a child that others make for the primary, without naming it as the owner:
    /// the claims that a StatefulSet's controller makes from the template of ours. Nobody controls
    /// one of those at first, yet it was never a stranger's: it becomes the primary's child without
    /// an event `Adopted`, unless it is older than the primary.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub async fn apply_made_for_us<T: AnyObject>(&self, desired: T) -> Result<Applied<T>> {
        self.apply_as(desired, Origin::MadeForUs).await
    }

    async fn apply_as<T: AnyObject>(&self, mut desired: T, origin: Origin) -> Result<Applied<T>> {
        let (kind, primary) = (self.kind_of(&desired)?, self.primary());
        if desired.meta().name.is_none() {
            return Err(nameless(&kind, "applied"));
        }
        owner::adopt((self.kind(), primary.meta()), &kind, desired.meta_mut())?;
        let key = Key::of(&desired);
        let asked = asked(&desired).map_err(|error| request::undecodable(&kind, &key, error))?;
        let desired_digest = digest(asked.clone());

        let place = (kind.clone(), key.clone());
        let last = self.memory(|memory| memory.last_apply(&place).cloned());
        let wish = match &last {
            None => Wish::First,
            Some(last) if last.desired == desired_digest => Wish::Same,
            Some(_) => Wish::Different,
        };
        let found = self.child::<T>(&kind, &key).await?;
        if let Some(found) = &found {
            self.claim::<T>((&kind, &key), found.object.meta(), true).await?;
            if let Some(last) = &last
                && wish == Wish::Same
                && last.result == found.digest
            {
                self.memory(|memory| memory.applied(place, last.clone()));
                let (object, change) = (found.object.clone(), Change::Unchanged);
                return Ok(Applied { object, change, wish });
            }
        }

        let params = PatchParams::apply(self.controller()).force();
        let path = request::to(&kind, key.namespace());
        let request = path.patch(key.name(), &params, &Patch::Apply(&asked));
        let answer = match self.send(request).await {
            Err(error) if error.is_refusal_of_content() => {
                let is_seen = found.is_some();
                return Err(Box::pin(self.refused::<T>((&kind, &key), is_seen, error)).await);
            }
            answer => answer?,
        };
        let object: Arc<T> = Arc::new(answer.decode(&kind, &key)?);
        let mut value: Value = answer.decode(&kind, &key)?;
        let revision = object.meta().resource_version.clone().unwrap_or_default();
        let change = if answer.created {
            Change::Created
        } else if let Some(found) = &found {
            let was = found.object.meta().resource_version.as_deref();
            let share = share::of(self.controller(), &value);
            change(was == Some(&*revision), wish == Wish::Different, found.share, share)
        } else if last.as_ref().is_some_and(|last| last.revision == revision) {
            Change::Unchanged
        } else {
            Change::Changed
        };
        let was_a_strangers =
            |child: &Child<T>| claim::was_a_strangers(child.object.meta(), origin, primary.meta());
        if found.as_ref().is_some_and(was_a_strangers) {
            self.tell_adoption(&kind, &key);
        }
        let before = found.as_ref().map(|child| &*child.body);
        self.note_change("apply", (&kind, &key), change, before, &answer.body);
        self.expect_version(&kind, &key, object.meta());
        // As the cache will show it.
        self.run.shared.follows.caches().transform(&kind, &mut value);
        let result = digest(intent(value));
        let last = LastApply { desired: desired_digest, result, revision, age: 0 };
        self.memory(|memory| memory.applied(place, last));
        Ok(Applied { object, change, wish })
    }

    /// The API refuses what was applied. What cannot become what we ask for is in the way as a
    /// stranger's is: its end is told. Returns what is wrong.
    async fn refused<T: AnyObject>(
        &self,
        (kind, key): (&Kind, &Key),
        is_seen: bool,
        error: Error,
    ) -> Error {
        let is_behind = !is_seen && self.cache_of(kind, key, Part::Whole).is_some();
        let followed = async {
            // The cache may be behind: somebody may have been quicker.
            let found = match is_behind {
                true => self.get_live_of::<PartialObjectMeta>(kind, key).await?,
                false => None,
            };
            if is_seen || found.is_some() {
                self.follow_of::<T>(kind, key).await?;
            }
            Ok::<_, Error>(found)
        };
        match followed.await {
            Ok(Some(found)) => {
                let claimed = self.claim::<T>((kind, key), &found.metadata, true).await;
                claimed.err().unwrap_or(error)
            }
            Ok(None) => error,
            Err(unseen) => {
                tracing::debug!(error = unseen.chain(), "what is in the way is not followed");
                error
            }
        }
    }

    pub(super) fn memory<R>(&self, work: impl FnOnce(&mut Memory) -> R) -> R {
        self.run.shared.memories.with(&self.run.key, work)
    }

    async fn child<T: AnyObject>(&self, kind: &Kind, key: &Key) -> Result<Option<Child<T>>> {
        let manager = self.controller();
        if let Some(informer) = self.cache_of(kind, key, Part::Whole) {
            self.settle(kind, key, &informer).await?;
            let entry = informer.entry(key);
            self.note_read(kind, Some(key), ReadFrom::Cache, usize::from(entry.is_some()));
            let Some(entry) = entry else { return Ok(None) };
            let (object, share) = (informer.typed(&entry)?, entry.header.share(manager));
            let body = Bytes::from(entry.json().into_owned());
            return Ok(Some(Child { object, digest: digest(intent(entry.value()?)), share, body }));
        }
        let Some(answer) = self.answer_live(kind, key).await? else { return Ok(None) };
        let (object, mut value) = (Arc::new(answer.decode(kind, key)?), answer.decode(kind, key)?);
        let share = share::of(manager, &value);
        self.run.shared.follows.caches().transform(kind, &mut value);
        Ok(Some(Child { object, digest: digest(intent(value)), share, body: answer.body }))
    }
}

/// A child as it is.
struct Child<T> {
    object: Arc<T>,
    digest: u64,
    /// What we have applied to it; `None` when we have not.
    share: Option<u64>,
    body: Bytes,
}

/// What an apply did to a child that was there.
///
/// A new revision alone says little: the child as found may be older than the one the apply met,
/// and between the two others wrote (a Deployment's controller its status). Our share of the
/// managed fields tells: whoever changes a field of ours takes it away from us, and an apply that
/// changes something dates the share anew.
fn change(same_revision: bool, news: bool, before: Option<u64>, after: Option<u64>) -> Change {
    let same = same_revision || (!news && after.is_some() && before == after);
    if same { Change::Unchanged } else { Change::Changed }
}

/// What is sent: the object without what only the server may say.
fn asked<T: AnyObject>(desired: &T) -> serde_json::Result<Value> {
    let mut asked = serde_json::to_value(desired)?;
    if let Some(object) = asked.as_object_mut() {
        object.shift_remove("status");
    }
    if let Some(metadata) = asked.get_mut("metadata").and_then(Value::as_object_mut) {
        let servers =
            ["creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"];
        metadata.retain(|field, _| !servers.contains(&field.as_str()));
    }
    Ok(asked)
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

    #[test]
    fn what_others_wrote_before_an_apply_is_not_its_change() {
        let share = |revision: &str, fields: &Value| {
            let ours = json!({ "manager": "us", "operation": "Apply", "fieldsV1": fields });
            let status = json!({ "manager": "us", "operation": "Apply", "subresource": "status",
                "time": format!("2026-01-01T00:00:0{revision}Z") });
            let theirs = json!({ "manager": "them", "operation": "Apply", "time": revision });
            share::of("us", &json!({ "metadata": { "managedFields": [ours, status, theirs] } }))
        };
        let (whole, robbed) = (json!({ "f:spec": { "f:replicas": {} } }), json!({ "f:spec": {} }));
        let met = |found: &Value, revision: &str, news| {
            change(revision == "1", news, share("1", found), share(revision, &whole))
        };
        assert_eq!(met(&whole, "2", false), Change::Unchanged, "only their share is new");
        assert_eq!(met(&robbed, "2", false), Change::Changed, "a field was taken back");
        assert_eq!(met(&whole, "2", true), Change::Changed, "another wish for the same fields");
        assert_eq!(met(&whole, "1", true), Change::Unchanged, "nothing was written");
    }
}
