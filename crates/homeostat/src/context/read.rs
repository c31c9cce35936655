//! Reads: from the cache for declared kinds, from the API for others.

use std::sync::Arc;

use kube::api::{GetParams, ListParams};
use kube::core::ObjectList;

use super::request::Answer;
use super::{Context, request};
use crate::cache::selector;
use crate::error::Result;
use crate::journal::ReadFrom;
use crate::key::Key;
use crate::kind::{Kind, Object};

impl<K: Object> Context<K> {
    /// The object of that name in the primary's namespace; `None` if there is none.
    ///
    /// # Errors
    /// [`crate::Error::Stale`] when the cache does not catch up with this key's writes within 5 s.
    pub async fn get<T: Object>(&self, name: &str) -> Result<Option<Arc<T>>> {
        self.get_key(&self.child_key::<T>(name)).await
    }

    /// The object of that key; `None` if there is none.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn get_key<T: Object>(&self, key: &Key) -> Result<Option<Arc<T>>> {
        let kind = Kind::of::<T>();
        if let Some(informer) = self.cache_of(&kind, key) {
            self.settle(&kind, Some(key)).await?;
            let found = informer.get(key)?;
            self.note_read(&kind, Some(key), ReadFrom::Cache, usize::from(found.is_some()));
            return Ok(found);
        }
        self.get_live(key).await
    }

    /// All objects of a kind in the primary's namespace (all namespaces if the primary has none),
    /// in key order.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn list<T: Object>(&self) -> Result<Vec<Arc<T>>> {
        self.list_labelled("").await
    }

    /// The objects of a kind in the primary's namespace whose labels match `selector`
    /// (`a=b,c in (d,e)`), in key order.
    ///
    /// # Errors
    /// A selector that cannot be read is terminal; otherwise as [`Self::get`].
    pub async fn list_labelled<T: Object>(&self, selector: &str) -> Result<Vec<Arc<T>>> {
        self.list_in(self.run.key.namespace.as_deref(), selector).await
    }

    /// The objects of a kind in `namespace` (in all of them for `None`) whose labels match.
    ///
    /// # Errors
    /// As [`Self::list_labelled`].
    pub async fn list_in<T: Object>(
        &self,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Arc<T>>> {
        let kind = Kind::of::<T>();
        let namespace = namespace.filter(|_| kind.is_namespaced());
        if let Some(informer) = self.cache(&kind, namespace) {
            let selector = selector::parse(selector)?;
            self.settle(&kind, None).await?;
            let found = informer.select(namespace, &selector);
            self.note_read(&kind, None, ReadFrom::Cache, found.len());
            return Ok(found);
        }
        self.list_live(&kind, namespace, selector).await
    }

    /// The objects of a kind whose controller (by uid) is the primary, in key order.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn owned<T: Object>(&self) -> Result<Vec<Arc<T>>> {
        let (kind, primary) = (Kind::of::<T>(), self.primary());
        let uid = primary.meta().uid.as_deref().unwrap_or_default();
        let namespace = self.run.key.namespace.as_deref().filter(|_| kind.is_namespaced());
        if let Some(informer) = self.cache(&kind, namespace) {
            self.settle(&kind, None).await?;
            let controlled =
                |owner: Option<&crate::cache::Owner>| owner.is_some_and(|o| *o.uid == *uid);
            let entries = informer.by_owner(uid).into_iter();
            let ours = entries.filter(|entry| controlled(entry.header.controller()));
            let found: Vec<Arc<T>> =
                ours.map(|entry| informer.typed(&entry)).collect::<Result<_>>()?;
            self.note_read(&kind, None, ReadFrom::Cache, found.len());
            return Ok(found);
        }
        let mut all = self.list_live::<T>(&kind, namespace, "").await?;
        all.retain(|object| {
            let owners = object.meta().owner_references.iter().flatten();
            owners.into_iter().any(|owner| owner.controller == Some(true) && owner.uid == uid)
        });
        Ok(all)
    }

    /// The object as the API has it this moment.
    ///
    /// # Errors
    /// What the API says, except that there is no such object.
    pub async fn get_live<T: Object>(&self, key: &Key) -> Result<Option<Arc<T>>> {
        let kind = Kind::of::<T>();
        let answer = self.answer_live(&kind, key).await?;
        answer.map(|answer| answer.decode(&kind, key).map(Arc::new)).transpose()
    }

    /// The same, as it came.
    pub(super) async fn answer_live(&self, kind: &Kind, key: &Key) -> Result<Option<Answer>> {
        let path = request::to(kind, key.namespace.as_deref());
        let answer = match self.send(path.get(&key.name, &GetParams::default())).await {
            Ok(answer) => Some(answer),
            Err(error) if request::is_not_found(&error) => None,
            Err(error) => return Err(error),
        };
        self.note_read(kind, Some(key), ReadFrom::Api, usize::from(answer.is_some()));
        Ok(answer)
    }

    async fn list_live<T: Object>(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Arc<T>>> {
        let params = ListParams { label_selector: Some(selector.to_owned()), ..Default::default() };
        let params = if selector.is_empty() { ListParams::default() } else { params };
        let answer = self.send(request::to(kind, namespace).list(&params)).await?;
        let place = Key { namespace: namespace.map(Arc::from), name: Arc::from("(list)") };
        let list: ObjectList<T> = answer.decode(kind, &place)?;
        self.note_read(kind, None, ReadFrom::Api, list.items.len());
        Ok(list.items.into_iter().map(Arc::new).collect())
    }

    /// The key of an object beside the primary.
    pub(super) fn child_key<T: Object>(&self, name: &str) -> Key {
        let namespace = self.run.key.namespace.clone();
        let namespace = namespace.filter(|_| Kind::of::<T>().is_namespaced());
        Key { namespace, name: Arc::from(name) }
    }
}
