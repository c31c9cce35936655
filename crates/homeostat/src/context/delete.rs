//! Deletions, each of one object and no other: the uid is a precondition. Never of a stranger's
//! object that only has the name of a child.

use std::ops::Deref;

use kube::Resource as _;
use kube::api::{DeleteParams, Preconditions};
use kube::core::PartialObjectMeta;

use super::write::nameless;
use super::{Context, request};
use crate::cache::Expect;
use crate::error::Result;
use crate::key::Key;
use crate::kind::{AnyObject, Kind};

impl<K: AnyObject> Context<K> {
    /// Deletes an object that was read or written: it and no other of that name (uid precondition).
    /// Already gone, or another one in its place, is success. Dependents go in the background.
    ///
    /// An object without a uid, as the reconcile would make it, is a child by its name: beside the
    /// primary, unless it says otherwise. The child of that name is deleted if there is one; a
    /// stranger's is left alone, and [`crate::Error::NotOurs`] names its owner.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use homeostat::kube::ResourceExt;
    /// use homeostat::{Context, Controller, Outcome, Result};
    ///
    /// fn secret_of(config: &ConfigMap) -> Secret {
    ///     let mut secret = Secret::default();
    ///     secret.metadata.name = Some(config.name_any());
    ///     secret
    /// }
    ///
    /// async fn reconcile(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ///     if config.labels().contains_key("secret") {
    ///         ctx.apply(secret_of(&config)).await?;
    ///     } else {
    ///         ctx.delete(&secret_of(&config)).await?;
    ///     }
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// #     let running = cluster.start(Controller::new(reconcile).owns::<Secret>()).await;
    /// #     let labelled = |label: Option<&str>| serde_json::json!({
    /// #         "metadata": { "name": "web", "labels": { "secret": label } }
    /// #     });
    /// #     cluster.create::<ConfigMap>(labelled(Some("yes"))).await;
    /// #     cluster.until_one::<Secret>("web", "a secret", |_| true).await;
    /// #     cluster.patch::<ConfigMap>("web", labelled(None)).await;
    /// #     cluster.until_gone::<Secret>("web").await;
    /// #     running.stop().await.unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    /// What the API says: also a conflict (409) of whoever refuses, as a webhook may, while the
    /// object is there. Terminal for an object without a name.
    pub async fn delete<O>(&self, object: O) -> Result<()>
    where
        O: Deref<Target: AnyObject>,
    {
        self.delete_with(object, &DeleteParams::background()).await
    }

    /// Deletes an object with other parameters (grace, propagation, a resourceVersion as a further
    /// precondition); the uid precondition is set. With `dry_run` the API only says whether it would.
    ///
    /// # Errors
    /// As [`Self::delete`]; a conflict when the object has another resourceVersion than is asked for.
    pub async fn delete_with<O>(&self, object: O, params: &DeleteParams) -> Result<()>
    where
        O: Deref<Target: AnyObject>,
    {
        let kind = self.kind_of(&*object)?;
        if object.meta().name.is_none() {
            return Err(nameless(&kind, "deleted"));
        }
        let key = self.key_of_child(&kind, &*object);
        let said = object.meta().uid.clone();
        drop(object);
        let uid = match said {
            Some(uid) => uid,
            None => match self.uid_of_child(&kind, &key).await? {
                Some(uid) => uid,
                None => return Ok(()),
            },
        };
        self.delete_uid((&kind, &key), uid, params.clone()).await
    }

    /// The uid of the child of that key; `None` if there is none.
    async fn uid_of_child(&self, kind: &Kind, key: &Key) -> Result<Option<String>> {
        if kind == self.kind() && *key == self.run.key {
            return Ok(self.primary().meta().uid.clone());
        }
        let Some(found) = self.metadata(kind, key).await? else { return Ok(None) };
        self.claim::<PartialObjectMeta>((kind, key), &found.metadata, false).await?;
        Ok(found.metadata.uid.clone())
    }

    async fn delete_uid(
        &self,
        (kind, key): (&Kind, &Key),
        uid: String,
        mut params: DeleteParams,
    ) -> Result<()> {
        let preconditions = params.preconditions.take().unwrap_or_default();
        let any_version = preconditions.resource_version.is_none();
        params.preconditions = Some(Preconditions { uid: Some(uid.clone()), ..preconditions });
        let is_meant = !params.dry_run;
        if is_meant {
            self.memory(|memory| memory.disown(&(kind.clone(), key.clone())));
        }
        let path = request::to(kind, key.namespace());
        match self.send(path.delete(key.name(), &params)).await {
            Ok(_) => {}
            Err(error) if request::is_not_found(&error) => return Ok(()),
            Err(error) if error.is_conflict() && any_version => {
                // Another one has its place, or it is there and somebody else says no.
                let found = match self.get_live_of::<PartialObjectMeta>(kind, key).await {
                    // Who may not look tries again.
                    Err(look) if look.is_forbidden() => return Err(error),
                    found => found?,
                };
                let is_there = found.is_some_and(|found| found.metadata.uid == Some(uid));
                return if is_there { Err(error) } else { Ok(()) };
            }
            Err(error) => return Err(error),
        }
        if is_meant {
            self.note_deleted(kind, key);
            self.expect_end(kind, key, Some(&uid), Expect::Deleting);
        }
        Ok(())
    }
}
