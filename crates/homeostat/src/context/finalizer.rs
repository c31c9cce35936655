//! Finalizers: the primary stays until its cleanup has run.

use kube::api::Patch;
use serde_json::json;

use super::{Context, request};
use crate::error::Result;
use crate::kind::AnyObject;

impl<K: AnyObject> Context<K> {
    /// Keeps `name` among the finalizers while the primary lives; once it is being deleted runs
    /// `cleanup` and removes the name (uid guarded). Returns `true` when deletion is in progress
    /// and the reconcile should return [`crate::Outcome::Done`].
    ///
    /// `cleanup` may run more than once: when it fails, or when removing the name does. Call this
    /// before making anything that `cleanup` has to undo.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// use homeostat::k8s_openapi::api::core::v1::ConfigMap;
    /// use homeostat::kube::ResourceExt;
    /// use homeostat::{Context, Controller, Outcome, Result};
    ///
    /// # type Accounts = Arc<Mutex<Vec<String>>>;
    /// async fn reconcile(config: Arc<ConfigMap>, ctx: Context<ConfigMap>, accounts: Accounts)
    ///     -> Result<Outcome>
    /// {
    ///     let name = config.name_any();
    ///     let close = || async {
    ///         accounts.lock().unwrap().retain(|account| *account != name);
    ///         Ok(())
    ///     };
    ///     if ctx.finalizer("example.com/account", close).await? {
    ///         return Ok(Outcome::Done); // on its way out
    ///     }
    ///     accounts.lock().unwrap().push(name.clone());
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// #     let accounts = Accounts::default();
    /// #     let of = accounts.clone();
    /// #     let controller = Controller::new(move |config, ctx| reconcile(config, ctx, of.clone()));
    /// #     let running = cluster.start(controller).await;
    /// #     cluster.create::<ConfigMap>(serde_json::json!({ "metadata": { "name": "web" } })).await;
    /// #     let held = |web: &ConfigMap| web.finalizers() == ["example.com/account"];
    /// #     cluster.until_one::<ConfigMap>("web", "a finalizer", held).await;
    /// #     cluster.quiet().await;
    /// #     assert!(accounts.lock().unwrap().contains(&"web".to_owned()));
    /// #     cluster.api::<ConfigMap>().delete("web", &Default::default()).await.unwrap();
    /// #     cluster.until_gone::<ConfigMap>("web").await;
    /// #     assert!(accounts.lock().unwrap().is_empty());
    /// #     running.stop().await.unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    /// What `cleanup` or the API says; a conflict when the primary changed meanwhile.
    pub async fn finalizer<F, Fut>(&self, name: &str, cleanup: F) -> Result<bool>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<()>>,
    {
        let primary = self.primary();
        let meta = primary.meta();
        let present = meta.finalizers.iter().flatten().any(|finalizer| finalizer == name);
        if meta.deletion_timestamp.is_none() {
            if !present {
                let mut finalizers = meta.finalizers.clone().unwrap_or_default();
                finalizers.push(name.to_owned());
                self.write_finalizers(&finalizers).await?;
            }
            return Ok(false);
        }
        if present {
            cleanup().await?;
            // Cleanup may have written the primary; its finalizers are those of the newest version.
            let mut finalizers = self.primary().meta().finalizers.clone().unwrap_or_default();
            finalizers.retain(|finalizer| finalizer != name);
            match self.write_finalizers(&finalizers).await {
                Err(error) if request::is_not_found(&error) => {}
                other => other?,
            }
        }
        Ok(true)
    }

    /// Replaces the list, if the primary is still the version we know: two writers never lose
    /// each other's finalizer.
    async fn write_finalizers(&self, finalizers: &[String]) -> Result<()> {
        let primary = self.primary();
        let meta = primary.meta();
        let patch = json!({ "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "finalizers": finalizers,
        }});
        let whose = (self.kind(), self.key());
        self.patch_part::<K>(None, "finalizer", whose, &Patch::Merge(patch)).await?;
        Ok(())
    }
}
