//! What a test can make an object of.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// An object from JSON.
///
/// # Panics
/// When the JSON is not such an object.
pub fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A Pod template with the label `app` and one container, as JSON.
#[must_use]
pub fn pod_template(app: &str, image: &str) -> Value {
    json!({ "metadata": { "labels": { "app": app } }, "spec": {
        "containers": [{ "name": "c", "image": image }], "terminationGracePeriodSeconds": 1 } })
}

/// An object, or the JSON of one.
pub trait IntoObject<T> {
    /// The object itself.
    fn into_object(self) -> T;
}

impl<T: Clone> IntoObject<T> for &T {
    fn into_object(self) -> T {
        self.clone()
    }
}

impl<T: DeserializeOwned> IntoObject<T> for Value {
    fn into_object(self) -> T {
        object(self)
    }
}
