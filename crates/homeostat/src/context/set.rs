//! All children of a kind at once: apply what is desired, delete what is not any more.

use std::collections::BTreeSet;

use super::write::nameless;
use super::{Applied, Context};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::{AnyObject, Kind, Object};

impl<K: AnyObject> Context<K> {
    /// Makes `desired` the children of that kind: each is applied as by [`Self::apply`], in order,
    /// and then every other object of the kind that the primary controls is deleted. An empty list
    /// deletes them all.
    ///
    /// Nothing is deleted when one cannot be applied. What the reconcile makes of the same kind by
    /// other means (such as [`Self::create`]) counts as not desired.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use homeostat::kube::ResourceExt;
    /// use homeostat::{Context, Controller, Outcome, Result};
    ///
    /// /// One Secret for each word of the config map; those of words that went go too.
    /// async fn reconcile(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ///     let secret = |word: &String| {
    ///         let mut secret = Secret::default();
    ///         secret.metadata.name = Some(format!("{}-{word}", config.name_any()));
    ///         secret
    ///     };
    ///     ctx.apply_set(config.data.iter().flat_map(|data| data.keys()).map(secret).collect()).await?;
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// #     let running = cluster.start(Controller::new(reconcile).owns::<Secret>()).await;
    /// #     let words = serde_json::json!({ "a": "", "b": "" });
    /// #     cluster.create::<ConfigMap>(serde_json::json!({ "metadata": { "name": "web" }, "data": words })).await;
    /// #     cluster.until::<Secret>("two", |all| all.len() == 2).await;
    /// #     cluster.patch::<ConfigMap>("web", serde_json::json!({ "data": { "a": null } })).await;
    /// #     cluster.until_gone::<Secret>("web-a").await;
    /// #     running.stop().await.unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    /// As [`Self::apply`] and [`Self::delete`]; terminal when two have the same name or one has none.
    pub async fn apply_set<T: Object>(&self, desired: Vec<T>) -> Result<Vec<Applied<T>>> {
        self.apply_set_of(&Kind::of::<T>(), desired).await
    }

    /// The same for a kind known only at run time, which must be declared; see
    /// [`crate::controller::Related`].
    ///
    /// # Errors
    /// As [`Self::apply_set`]; terminal when one is not of that kind.
    pub async fn apply_set_of<T: AnyObject>(
        &self,
        kind: &Kind,
        desired: Vec<T>,
    ) -> Result<Vec<Applied<T>>> {
        let mut wanted = BTreeSet::new();
        for child in &desired {
            let name = child.meta().name.as_deref().ok_or_else(|| nameless(kind, "applied"))?;
            if self.kind_of(child)? != *kind {
                return Err(Error::terminal(format!("{name} is not a {kind}")));
            }
            if !wanted.insert(self.key_of_child(kind, child)) {
                return Err(Error::terminal(format!("{kind} {name} is desired twice")));
            }
        }
        let mut applied = Vec::with_capacity(desired.len());
        for child in desired {
            applied.push(self.apply(child).await?);
        }
        for child in self.owned_of::<T>(kind).await? {
            let going = child.meta().deletion_timestamp.is_some();
            if !going && !wanted.contains(&Key::of(&*child)) {
                self.delete(child).await?;
            }
        }
        Ok(applied)
    }

    /// The key that a child will have: beside the primary unless it says otherwise.
    pub(super) fn key_of_child<T: AnyObject>(&self, kind: &Kind, child: &T) -> Key {
        let key = Key::of(child);
        match key.namespace() {
            Some(_) if kind.is_namespaced() => key,
            _ => self.key_beside(kind, key.name()),
        }
    }
}
