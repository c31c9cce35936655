//! Secrets: `stringData` is a way to write `data`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Hooks, NONE};

pub(super) const HOOKS: Hooks = Hooks { complete: encode, ..NONE };

fn encode(_: Option<&Value>, secret: &mut Value) {
    let Some(object) = secret.as_object_mut() else { return };
    let Some(Value::Object(plain)) = object.shift_remove("stringData") else { return };
    let data = object.entry("data").or_insert_with(|| json!({}));
    if !data.is_object() {
        *data = json!({});
    }
    for (key, value) in plain {
        data[key] = STANDARD.encode(value.as_str().unwrap_or_default()).into();
    }
}
