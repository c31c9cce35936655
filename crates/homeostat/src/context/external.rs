//! The book of things outside: intent before the call, id after it, and what the policy says when
//! the object goes.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kube::api::Patch;
use serde_json::json;

use super::{Change, Context};
use crate::error::{Error, Result};
use crate::external::{
    Entry, Existing, External, Find, Outside, Policy, Removal, annotation, finalizer,
};
use crate::kind::AnyObject;

/// How often a stranger's thing is looked at again: it tells nobody when it goes.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// So long a call is given that somebody's intent says is under way, before it is made here.
const UNDER_WAY: Duration = Duration::from_secs(2);

impl<K: AnyObject> Context<K> {
    /// Makes sure of one thing outside the cluster, as `policy` says. `name` tells the things of one
    /// object apart: a short lower-case word that never changes.
    ///
    /// Before the first call that makes something, a token is on record in the primary (annotation
    /// `external.homeostat.dev/<name>`), so that what a crash or a lost answer leaves behind is found
    /// and finished instead of being made twice. What is removed by somebody else is made anew, unless
    /// a stranger's has taken its place. The outside sends no events: return
    /// [`crate::Outcome::RequeueAfter`] to look again.
    ///
    /// An object with several things asks for all of them before it returns, also when the first is
    /// [`Outside::Removed`]: each holds the object back by a finalizer of its own, as several of
    /// [`Self::finalizer`] do.
    ///
    /// ```
    /// # use homeostat::external::{External, Outside, Policy};
    /// # use homeostat::k8s_openapi::api::core::v1::ConfigMap;
    /// # use homeostat::{Context, Outcome, Result};
    /// # async fn reconcile<A, B>(ctx: Context<ConfigMap>, zone: A, record: B) -> Result<Outcome>
    /// # where A: External, B: External {
    /// let zone = ctx.external("zone", Policy::default(), &zone).await?;
    /// let record = ctx.external("record", Policy::default(), &record).await?;
    /// if let (Outside::Removed, _) | (_, Outside::Removed) = (&zone, &record) {
    ///     return Ok(Outcome::Done);
    /// }
    /// # Ok(Outcome::Done)
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotOurs`] for a stranger's thing: a reconcile that ends with it runs again every
    /// 30 s, so that the object goes on by itself once the thing is gone. What the thing or the API
    /// says.
    pub async fn external<E: External>(
        &self,
        name: &str,
        policy: Policy,
        thing: &E,
    ) -> Result<Outside<E::Found>> {
        let Policy::Manage { existing, removal } = policy else {
            if self.is_held_by(&finalizer(name)) {
                // It was ours to remove under another policy, and holds the object back since.
                self.finalizer(&finalizer(name), || async { Ok(()) }).await?;
                return Ok(Outside::Removed);
            }
            let found = thing.find(Find::Name).await?;
            return Ok(found.map_or(Outside::Absent, |found| Outside::Present {
                found,
                change: Change::Unchanged,
            }));
        };
        let is_going = self.primary().meta().deletion_timestamp.is_some();
        if is_going || removal == Removal::Delete {
            let clean = || async {
                match removal {
                    Removal::Delete => self.remove_external(name, thing).await,
                    Removal::Retain => Ok(()),
                }
            };
            if self.finalizer(&finalizer(name), clean).await? {
                return Ok(Outside::Removed);
            }
        }
        let (found, change) = match self.external_entry(name)? {
            None => self.begin_external(name, existing, thing).await?,
            Some(Entry { token, id: None }) => self.finish_external(name, token, thing).await?,
            Some(Entry { id: Some(id), .. }) => match thing.find(Find::Id(&id)).await? {
                Some(found) => thing.update(found).await?,
                // Removed by somebody else. A new token: the old one stands for what is gone.
                None => self.begin_external(name, existing, thing).await?,
            },
        };
        Ok(Outside::Present { found, change })
    }

    /// Whether the primary is being deleted and waits for that finalizer.
    fn is_held_by(&self, finalizer: &str) -> bool {
        let primary = self.primary();
        let mut finalizers = primary.meta().finalizers.iter().flatten();
        primary.meta().deletion_timestamp.is_some() && finalizers.any(|one| one == finalizer)
    }

    /// Nothing that is there is on record: it is somebody's, or it is to be made.
    async fn begin_external<E: External>(
        &self,
        name: &str,
        existing: Existing,
        thing: &E,
    ) -> Result<(E::Found, Change)> {
        let token = self.env().uid();
        match (thing.find(Find::Name).await?, existing) {
            (None, _) => self.make_external(name, token, thing).await,
            (Some(found), Existing::Adopt) => {
                let id = Some(thing.id(&found));
                self.write_external(name, &Entry { token, id }).await?;
                thing.update(found).await
            }
            (Some(found), Existing::Refuse) => {
                self.run.waits_outside.store(true, Ordering::Relaxed);
                Err(Error::NotOurs {
                    object: format!("{name} {}", thing.id(&found)),
                    owner: "not on record here".to_owned(),
                    remedy: "rename or remove it, and this object goes on by itself",
                })
            }
        }
    }

    /// When to look again after a terminal error, if nothing else would say that its cause is gone.
    pub(crate) fn look_again(&self, error: &Error) -> Option<Duration> {
        // The primary itself was decoded, or there would be no context.
        let is_of_others = matches!(error, Error::Decode { .. });
        let is_outside = self.run.waits_outside.load(Ordering::Relaxed);
        (is_of_others || is_outside).then_some(LOOK_AGAIN)
    }

    /// A call went out, and what came of it is not known.
    async fn finish_external<E: External>(
        &self,
        name: &str,
        token: String,
        thing: &E,
    ) -> Result<(E::Found, Change)> {
        let (found, is_older) = match self.find_intended(&token, thing).await? {
            Some(found) => (found, true),
            None => (thing.create(&token).await?, false),
        };
        self.write_external(name, &Entry { token, id: Some(thing.id(&found)) }).await?;
        if is_older {
            // Made for a wish that may have changed since, and perhaps not to its end.
            let (found, change) = thing.update(found).await?;
            let is_same = change == Change::Unchanged;
            return Ok((found, if is_same { Change::Created } else { change }));
        }
        Ok((found, Change::Created))
    }

    /// What came of a call whose intent is on record. It may be under way still, in another process or,
    /// when its answer got lost, where it went: an intent is heard of before its call is over.
    async fn find_intended<E: External>(&self, token: &str, thing: &E) -> Result<Option<E::Found>> {
        let found = thing.find(Find::Token(token)).await?;
        if found.is_some() {
            return Ok(found);
        }
        self.env().sleep(UNDER_WAY).await;
        thing.find(Find::Token(token)).await
    }

    /// Puts the intent on record, makes it, and puts the id on record.
    async fn make_external<E: External>(
        &self,
        name: &str,
        token: String,
        thing: &E,
    ) -> Result<(E::Found, Change)> {
        self.write_external(name, &Entry { token: token.clone(), id: None }).await?;
        let found = thing.create(&token).await?;
        self.write_external(name, &Entry { token, id: Some(thing.id(&found)) }).await?;
        Ok((found, Change::Created))
    }

    async fn remove_external<E: External>(&self, name: &str, thing: &E) -> Result<()> {
        let id = match self.external_entry(name)? {
            None => None,
            Some(Entry { id: Some(id), .. }) => Some(id),
            Some(Entry { token, id: None }) => {
                self.find_intended(&token, thing).await?.map(|found| thing.id(&found))
            }
        };
        match id {
            Some(id) => thing.delete(&id).await,
            None => Ok(()),
        }
    }

    fn external_entry(&self, name: &str) -> Result<Option<Entry>> {
        let primary = self.primary();
        let text = primary.meta().annotations.as_ref().and_then(|all| all.get(&annotation(name)));
        text.map(|text| serde_json::from_str(text)).transpose().map_err(|error| {
            let (annotation, key) = (annotation(name), self.key());
            Error::terminal(format!("annotation {annotation} of {key} cannot be decoded: {error}"))
        })
    }

    /// Guarded by the version that was looked at: two processes never both begin.
    async fn write_external(&self, name: &str, entry: &Entry) -> Result<()> {
        let primary = self.primary();
        let meta = primary.meta();
        let text = serde_json::to_string(entry).map_err(Error::terminal)?;
        let patch = json!({ "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "annotations": { annotation(name): text },
        }});
        self.patch_part::<K>(None, "external", (self.kind(), self.key()), &Patch::Merge(patch))
            .await?;
        Ok(())
    }
}
