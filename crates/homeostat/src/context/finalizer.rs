//! Finalizers: the primary stays until its cleanup has run.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::api::Patch;
use serde_json::json;

use super::{Context, EventType, request};
use crate::error::Result;
use crate::kind::AnyObject;

/// What a reconcile did about finalizers.
#[derive(Debug, Default)]
pub(super) struct Asked {
    names: BTreeSet<String>,
    /// Whether it took one away: then it runs again, and may ask for others.
    has_removed: bool,
}

impl<K: AnyObject> Context<K> {
    /// Keeps `name` among the finalizers while the primary lives; once it is being deleted runs
    /// `cleanup` and removes the name (uid guarded). Returns `true` when deletion is in progress
    /// and the reconcile, having asked for all its finalizers, should return
    /// [`crate::Outcome::Done`].
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
    /// With several, ask for all of them before returning: `true` says that the primary is going, not
    /// that nobody else holds it. What returns after the first is `true` in every later run, too, and
    /// never comes to the second; once it returns [`crate::Outcome::Done`] a Warning event
    /// `FinalizerNotAskedFor` names that one.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use homeostat::k8s_openapi::api::core::v1::ConfigMap;
    /// # use homeostat::kube::ResourceExt;
    /// # use homeostat::{Context, Controller, Outcome, Result};
    /// # async fn close() -> Result<()> { Ok(()) }
    /// # async fn unregister() -> Result<()> { Ok(()) }
    /// async fn reconcile(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ///     // `|` and not `||`, which would not ask for the second.
    ///     let is_going = ctx.finalizer("example.com/account", close).await?
    ///         | ctx.finalizer("example.com/name", unregister).await?;
    ///     if is_going {
    ///         return Ok(Outcome::Done);
    ///     }
    ///     // open an account, register a name
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// #     let running = cluster.start(Controller::new(reconcile)).await;
    /// #     cluster.create::<ConfigMap>(serde_json::json!({ "metadata": { "name": "web" } })).await;
    /// #     let held = |web: &ConfigMap| web.finalizers().len() == 2;
    /// #     cluster.until_one::<ConfigMap>("web", "two finalizers", held).await;
    /// #     cluster.api::<ConfigMap>().delete("web", &Default::default()).await.unwrap();
    /// #     cluster.until_gone::<ConfigMap>("web").await;
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
        self.ask_for(name);
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
            self.note(|diary| diary.finalizers.has_removed = true);
        }
        Ok(true)
    }

    fn ask_for(&self, name: &str) {
        self.note(|diary| diary.finalizers.names.insert(name.to_owned()));
        let mut known = lock(&self.run.shared.finalizers);
        if !known.contains(name) {
            known.insert(name.to_owned());
        }
    }

    /// Says, once for a key, which finalizers of this controller hold back a primary whose reconcile
    /// has ended well, asked for others and left nothing to wake it.
    pub(crate) fn name_forgotten_finalizers(&self) {
        let asked = self.noted(|diary| std::mem::take(&mut diary.finalizers)).unwrap_or_default();
        // Who asked for none may be waiting for something else before.
        if asked.names.is_empty() || asked.has_removed {
            return;
        }
        let primary = self.primary();
        let meta = primary.meta();
        if meta.deletion_timestamp.is_none() {
            return;
        }
        let known = lock(&self.run.shared.finalizers);
        let is_forgotten = |name: &&String| known.contains(*name) && !asked.names.contains(*name);
        let held: Vec<&str> =
            meta.finalizers.iter().flatten().filter(is_forgotten).map(String::as_str).collect();
        let held = held.join(", ");
        drop(known);
        if held.is_empty()
            || self.memory(|memory| std::mem::replace(&mut memory.finalizer_named, true))
        {
            return;
        }
        let note = format!(
            "held by {held}, which the reconcile did not ask for: with several finalizers, or things \
             outside, it has to ask for all of them before it returns"
        );
        tracing::warn!("{note}");
        self.event(EventType::Warning, "FinalizerNotAskedFor", note);
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
