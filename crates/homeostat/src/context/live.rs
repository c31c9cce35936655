//! Lists from the API, for kinds that no cache of the controller covers.

use std::sync::Arc;

use kube::api::ListParams;
use serde::Deserialize;
use serde_json::Value;

use super::{Context, request};
use crate::error::Result;
use crate::journal::ReadFrom;
use crate::key::Key;
use crate::kind::{AnyObject, Kind, View};

#[derive(Deserialize)]
struct Items {
    #[serde(default)]
    items: Vec<Value>,
}

impl<K: AnyObject> Context<K> {
    /// All that match.
    pub(super) async fn list_live<T: View>(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Arc<T>>> {
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
        let params = ListParams { label_selector: Some(selector.to_owned()), ..Default::default() };
        let params = if selector.is_empty() { ListParams::default() } else { params };
        let answer = self.send(request::to(kind, namespace).list(&params)).await?;
        let Items { mut items } = answer.decode(kind, &list(namespace))?;
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            // Items of a list come without version and kind; readers should not have to know.
            item.entry("apiVersion").or_insert_with(|| kind.api_version().into());
            item.entry("kind").or_insert_with(|| kind.kind().into());
        }
        self.note_read(kind, None, ReadFrom::Api, items.len());
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
