//! Which Services the APIServices lead to: kept beside them, so that a write of a Service or an
//! EndpointSlice knows at once whether it is anything to an APIService. It almost never is.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::metadata;
use crate::store::Key;

/// The Service of every APIService that has one, by the APIService's name.
#[derive(Debug, Default)]
pub(super) struct Aggregated(Mutex<BTreeMap<String, Key>>);

impl Aggregated {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Key>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes where an APIService leads to now.
    pub(super) fn note(&self, api_service: &Value) {
        let name = metadata::name(api_service);
        match service_of(api_service) {
            Some(service) => drop(self.all().insert(name.to_owned(), service)),
            None => self.forget(name),
        }
    }

    /// Forgets an APIService that is gone.
    pub(super) fn forget(&self, name: &str) {
        self.all().remove(name);
    }

    /// The names of those that lead to the Service.
    pub(super) fn leading_to(&self, namespace: &str, name: &str) -> Vec<String> {
        let all = self.all();
        let leading = all.iter().filter(|(_, to)| to.namespace == namespace && to.name == name);
        leading.map(|(api_service, _)| api_service.clone()).collect()
    }
}

/// The Service that an APIService leads to; none if the server serves its group itself.
pub(super) fn service_of(api_service: &Value) -> Option<Key> {
    let service = api_service.pointer("/spec/service").filter(|service| service.is_object())?;
    let text = |field: &str| service.get(field).and_then(Value::as_str).unwrap_or_default();
    Some(Key::new(text("namespace"), text("name")))
}
