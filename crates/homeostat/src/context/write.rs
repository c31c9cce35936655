//! Objects that are made once. Each one is journaled, and later reads of the same key wait for it.
//! It never writes to what is there.

use std::sync::Arc;

use kube::api::PostParams;

use super::barrier::Part;
use super::{Context, owner, request};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::{AnyObject, Kind};

impl<K: AnyObject> Context<K> {
    /// Creates a child once: exists already and is ours → that one; a stranger's →
    /// [`crate::Error::NotOurs`], also when nobody controls it. The owner reference and the
    /// namespace are set. A child that has a `generateName` and no name is a new one every time.
    ///
    /// What is in the way is followed: the reconcile runs again when it goes or changes.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use homeostat::kube::ResourceExt;
    /// use homeostat::{Context, Controller, Outcome, Result};
    ///
    /// /// Has as many Secrets as the config map says.
    /// async fn reconcile(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ///     let wanted = config.annotations().get("count").and_then(|text| text.parse().ok()).unwrap_or(0);
    ///     let owned = ctx.owned::<Secret>().await?; // with all that was made before
    ///     for _ in owned.len()..wanted {
    ///         let mut secret = Secret::default();
    ///         secret.metadata.generate_name = Some(format!("{}-", config.name_any()));
    ///         ctx.create(secret).await?;
    ///     }
    ///     for secret in owned.into_iter().skip(wanted) {
    ///         ctx.delete(secret).await?;
    ///     }
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// #     let running = cluster.start(Controller::new(reconcile).owns::<Secret>()).await;
    /// #     let counted = |count: &str| serde_json::json!({
    /// #         "metadata": { "name": "web", "annotations": { "count": count } }
    /// #     });
    /// #     cluster.create::<ConfigMap>(counted("3")).await;
    /// #     cluster.until::<Secret>("three", |all| all.len() == 3).await;
    /// #     cluster.patch::<ConfigMap>("web", counted("1")).await;
    /// #     cluster.until::<Secret>("one", |all| all.len() == 1).await;
    /// #     running.stop().await.unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidOwner`], [`Error::NotOurs`], or what the API says.
    pub async fn create<T: AnyObject>(&self, mut desired: T) -> Result<Arc<T>> {
        let (kind, primary) = (self.kind_of(&desired)?, self.primary());
        let owner = (self.kind(), primary.meta());
        owner::adopt(owner, &kind, desired.meta_mut())?;
        let named = desired.meta().name.is_some();
        let mut key = Key::of(&desired);
        if named && let Some(found) = self.get_cached::<T>(&kind, &key).await? {
            self.claim::<T>((&kind, &key), found.meta(), false).await?;
            return Ok(found);
        }
        let body =
            serde_json::to_vec(&desired).map_err(|e| request::undecodable(&kind, &key, e))?;
        let params =
            PostParams { field_manager: Some(self.controller().to_owned()), ..Default::default() };
        let path = request::to(&kind, key.namespace());
        let answer = match self.send(path.create(&params, body)).await {
            Err(error) if named && error.is_conflict() => {
                // Made by an earlier reconcile whose answer got lost, or by a stranger.
                let Some(found) = self.get_live_of::<T>(&kind, &key).await? else {
                    return Err(error);
                };
                self.claim::<T>((&kind, &key), found.meta(), false).await?;
                self.expect_version(&kind, &key, found.meta());
                return Ok(found);
            }
            answer => answer?,
        };
        let created: T = answer.decode(&kind, &key)?;
        key = Key::of(&created);
        self.note_created(&kind, &key, &answer.body);
        self.expect_version(&kind, &key, created.meta());
        Ok(Arc::new(created))
    }

    /// The object in the cache, if its kind is declared.
    pub(super) async fn get_cached<T: AnyObject>(
        &self,
        kind: &Kind,
        key: &Key,
    ) -> Result<Option<Arc<T>>> {
        let Some(informer) = self.cache_of(kind, key, Part::Whole) else { return Ok(None) };
        self.settle(kind, key, &informer).await?;
        informer.get(key)
    }
}

/// The error for a child that has no name.
pub(super) fn nameless(kind: &Kind, what: &str) -> Error {
    Error::terminal(format!("a {kind} without a name cannot be {what}"))
}
