//! Writes to objects that a selection of fields leaves out: the cache of the selection will not show
//! them, and what fields an object has only the API knows. It is asked once for each write, and only
//! where a cache has to answer: for an index.

use kube::api::ListParams;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::barrier::Pending;
use super::{Context, request};
use crate::error::Result;
use crate::key::Key;
use crate::kind::{AnyObject, Kind};

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    items: Vec<IgnoredAny>,
}

impl<K: AnyObject> Context<K> {
    /// Takes note of those writes of this key that the declared cache of `kind` will not show, because
    /// it is one of certain fields, which the objects do not have.
    pub(super) async fn leave_out_what_is_not_selected(&self, kind: &Kind) {
        let shared = &self.run.shared;
        let Some(cache) = shared.caches.get(kind).filter(|cache| cache.has_fields()) else {
            return;
        };
        for ((_, key), write) in shared.writes_to(&self.run.key, kind, None) {
            let Some(informer) = cache.informer(key.namespace()) else { continue };
            let may_come = informer.entry(&key).is_none() && !write.is_shown_by(&key, &informer);
            // Who gets no answer waits for the cache.
            if may_come && self.is_selected(kind, &key).await.is_ok_and(|selected| !selected) {
                self.leave_out(kind, &key, &write);
            }
        }
    }

    /// Whether the object belongs to the selection of its declared cache, as the API has it.
    async fn is_selected(&self, kind: &Kind, key: &Key) -> Result<bool> {
        let Some(cache) = self.run.shared.caches.get(kind) else { return Ok(false) };
        let (labels, fields) = cache.selection();
        // The cache's own first: permissions may be for the names in it.
        let name = format!("metadata.name={}", key.name());
        let fields = fields.map_or_else(|| name.clone(), |fields| format!("{fields},{name}"));
        let params = ListParams {
            label_selector: labels.map(str::to_owned),
            field_selector: Some(fields),
            ..ListParams::default()
        };
        let answer = self.send(request::to(kind, key.namespace()).list(&params)).await?;
        let Found { items } = answer.decode(kind, key)?;
        Ok(!items.is_empty())
    }

    fn leave_out(&self, kind: &Kind, key: &Key, write: &Pending) {
        let place = (kind.clone(), key.clone());
        self.run.shared.memories.with_known(&self.run.key, |memory| {
            // Unless there was another write meanwhile; the same one may have been heard of.
            let is_it =
                |known: &&mut Pending| (&known.uid, &known.until) == (&write.uid, &write.until);
            if let Some(known) = memory.pending.get_mut(&place).filter(is_it) {
                known.left_out = true;
            }
        });
    }
}
