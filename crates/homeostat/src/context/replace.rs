//! Whole objects in the place of what is there, as Go's `Update` writes them. Never over a version
//! that the reconcile has not seen.

use std::sync::Arc;

use kube::api::PostParams;

use super::barrier::Part;
use super::write::nameless;
use super::{Context, request};
use crate::error::{Error, Result};
use crate::kind::AnyObject;

impl<K: AnyObject> Context<K> {
    /// Replaces an object by `object`, which was read and changed: every field that it leaves out is
    /// gone afterwards, but for the status, which has a write of its own ([`Self::status`]). If
    /// somebody else has written it since it was read, nothing is replaced and the reconcile runs
    /// again at once from fresh state. Later reads find what was written.
    ///
    /// It is for objects that are somebody else's, where all of them must be what was looked at: an
    /// entry taken from a list, a counter. What a controller makes is better applied with
    /// [`Self::apply`], and single fields are better patched with [`Self::merge_patch`]: a type that
    /// does not know a field of the server's drops it here.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use homeostat::{Context, Controller, Outcome, Result};
    ///
    /// /// Takes a number from the secret `numbers`: no two config maps have the same.
    /// async fn reconcile(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ///     let taken = config.data.as_ref().is_some_and(|data| data.contains_key("number"));
    ///     let Some(numbers) = ctx.follow::<Secret>("numbers").await?.filter(|_| !taken) else {
    ///         return Ok(Outcome::Done);
    ///     };
    ///     let mut numbers = Secret::clone(&numbers);
    ///     let Some((number, _)) = numbers.data.get_or_insert_default().pop_first() else {
    ///         return Ok(Outcome::Done);
    ///     };
    ///     ctx.replace(numbers).await?; // a conflict if another took one meanwhile
    ///     ctx.merge_patch_primary(&serde_json::json!({ "data": { "number": number } })).await?;
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// #     let data = serde_json::json!({ "1": "", "2": "" });
    /// #     let numbers = serde_json::json!({ "metadata": { "name": "numbers" }, "data": data });
    /// #     cluster.create::<Secret>(numbers).await;
    /// #     for name in ["a", "b"] {
    /// #         cluster.create::<ConfigMap>(serde_json::json!({ "metadata": { "name": name } })).await;
    /// #     }
    /// #     let running = cluster.start(Controller::new(reconcile)).await;
    /// #     let all_taken = |all: &[ConfigMap]| {
    /// #         let data = |config: &ConfigMap| config.data.clone().unwrap_or_default();
    /// #         let number = |config| data(config).remove("number");
    /// #         let taken: std::collections::BTreeSet<_> = all.iter().filter_map(number).collect();
    /// #         taken.len() == 2
    /// #     };
    /// #     cluster.until::<ConfigMap>("two numbers", all_taken).await;
    /// #     running.stop().await.unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    /// A conflict when the object has changed since; terminal without a name or a resourceVersion.
    /// Otherwise what the API says; that there is no such object too.
    pub async fn replace<T: AnyObject>(&self, object: T) -> Result<Arc<T>> {
        let kind = self.kind_of(&object)?;
        if object.meta().name.is_none() {
            return Err(nameless(&kind, "replaced"));
        }
        let key = self.key_of_child(&kind, &object);
        if object.meta().resource_version.as_deref().is_none_or(str::is_empty) {
            return Err(Error::terminal(format!(
                "{kind} {key} cannot be replaced by an object without a resourceVersion: read it, \
                 change what was read, and replace it by that"
            )));
        }
        let body = serde_json::to_vec(&object).map_err(|e| request::undecodable(&kind, &key, e))?;
        let params =
            PostParams { field_manager: Some(self.controller().to_owned()), ..Default::default() };
        let request = request::to(&kind, key.namespace()).replace(key.name(), &params, body);
        // Looked at before the write: its event may come before its answer.
        let cached = self.cache_of(&kind, &key, Part::Whole).and_then(|all| all.entry(&key));
        if cached.is_none() {
            self.look_if_restless(&kind, &key).await;
        }
        let answer = self.send(request).await?;
        self.wrote("replace", (&kind, &key), cached.as_deref(), &answer)
    }
}
