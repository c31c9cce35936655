//! Lists from the API: for kinds that no cache of the controller covers, and for whoever must know what
//! is there this moment. They never ask a cache, and wait for none.

use std::sync::Arc;

use kube::api::ListParams;
use serde::Deserialize;
use serde_json::Value;

use super::{Context, request};
use crate::cache::selector;
use crate::error::Result;
use crate::journal::ReadFrom;
use crate::key::Key;
use crate::kind::{AnyObject, Kind, Object, View};

#[derive(Deserialize)]
struct Items {
    #[serde(default)]
    items: Vec<Value>,
}

impl<K: AnyObject> Context<K> {
    /// The objects of a kind in the primary's namespace (in all that the controller looks after if either
    /// has none) whose labels match `selector` (`a=b,c in (d,e)`; all of them for an empty one), as the
    /// API has them this moment, in key order.
    ///
    /// [`Self::list_labelled`] asks the cache where there is one, and has seen what this key wrote
    /// either way. This is for what others may have written a moment ago, and costs a request of the
    /// size of the whole list: all of it is of one moment, and must come within the time limit of a
    /// request. A controller of several namespaces asks for one after the other.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use homeostat::{Context, Controller, Outcome, Result};
    ///
    /// /// Says how many secrets of its own somebody else has made for it.
    /// async fn reconcile(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    ///     let made = ctx.list_live::<Secret>(&format!("for={}", ctx.key().name())).await?;
    ///     let note = serde_json::json!({ "data": { "made": made.len().to_string() } });
    ///     ctx.merge_patch_primary(&note).await?;
    ///     Ok(Outcome::Done)
    /// }
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// #     let labelled = serde_json::json!({ "name": "s", "labels": { "for": "web" } });
    /// #     cluster.create::<Secret>(serde_json::json!({ "metadata": labelled })).await;
    /// #     cluster.create::<Secret>(serde_json::json!({ "metadata": { "name": "t" } })).await;
    /// #     let running = cluster.start(Controller::new(reconcile)).await;
    /// #     cluster.create::<ConfigMap>(serde_json::json!({ "metadata": { "name": "web" } })).await;
    /// #     let says = |web: &ConfigMap| web.data.as_ref().is_some_and(|data| data["made"] == "1");
    /// #     cluster.until_one::<ConfigMap>("web", "a number", says).await;
    /// #     running.stop().await.unwrap();
    /// # });
    /// ```
    ///
    /// # Errors
    /// Terminal for a selector that cannot be read, and for an object that does not fit the type, which
    /// is named; otherwise what the API says.
    pub async fn list_live<T: Object>(&self, selector: &str) -> Result<Vec<Arc<T>>> {
        self.list_live_of(&Kind::of::<T>(), self.run.key.namespace(), selector).await
    }

    /// The same for a kind known only at run time, in `namespace` (in all that the controller looks
    /// after for `None`).
    ///
    /// # Errors
    /// As [`Self::list_live`].
    pub async fn list_live_of<T: View>(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Arc<T>>> {
        selector::parse(selector)?;
        let namespace = namespace.filter(|_| kind.is_namespaced());
        let items = self.items_live(kind, namespace, selector).await?;
        items.into_iter().map(|item| decode(kind, item)).collect()
    }

    /// Those whose controller has that uid.
    pub(super) async fn list_live_owned<T: View>(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        uid: &str,
    ) -> Result<Vec<Arc<T>>> {
        let mut items = self.items_live(kind, namespace, "").await?;
        items.retain(|item| {
            let owners = item["metadata"]["ownerReferences"].as_array();
            let mut owners = owners.into_iter().flatten();
            owners.any(|owner| owner["controller"] == true && owner["uid"] == uid)
        });
        items.into_iter().map(|item| decode(kind, item)).collect()
    }

    async fn items_live(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>> {
        let limits = self.run.shared.namespaces.as_ref();
        let items = match limits.filter(|_| namespace.is_none() && kind.is_namespaced()) {
            None => self.items_of_one(kind, namespace, selector).await?,
            Some(limits) => {
                let mut items = Vec::new();
                for namespace in limits.get() {
                    items.extend(self.items_of_one(kind, Some(&namespace), selector).await?);
                }
                items
            }
        };
        self.note_read(kind, None, ReadFrom::Api, items.len());
        Ok(items)
    }

    /// What one request lists.
    async fn items_of_one(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>> {
        let params = ListParams { label_selector: Some(selector.to_owned()), ..Default::default() };
        let params = if selector.is_empty() { ListParams::default() } else { params };
        let answer = self.send(request::to(kind, namespace).list(&params)).await?;
        let Items { mut items } = answer.decode(kind, &list(namespace))?;
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            // Items of a list come without version and kind; readers should not have to know.
            item.entry("apiVersion").or_insert_with(|| kind.api_version().into());
            item.entry("kind").or_insert_with(|| kind.kind().into());
        }
        Ok(items)
    }
}

fn decode<T: View>(kind: &Kind, item: Value) -> Result<Arc<T>> {
    let said = |field: &str| item["metadata"][field].as_str();
    let key = Key::new(said("namespace"), said("name").unwrap_or_default());
    let decoded = serde_json::from_value(item);
    decoded.map(Arc::new).map_err(|error| request::undecodable(kind, &key, error))
}

fn list(namespace: Option<&str>) -> Key {
    Key::new(namespace, "(list)")
}
