//! Writes the context has no method for: statuses of built-in kinds, objects without an owner,
//! deletions with a policy. Each is one request.

use homeostat::kube::{self, Client};
use homeostat::{Context, Error, Key, Kind, Object, Result};
use http::{Method, Request};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What a request that may find nothing answers.
pub(crate) type Found = Option<Value>;

/// Replaces the status of the primary where it differs from what the cache has; fields that are
/// gone are cleared. `metadata` is merged beside it (the uid guards against a namesake). Returns
/// whether anything was written; an object that is gone needs no status.
pub(crate) async fn status<K: Object, S: Serialize + PartialEq>(
    ctx: &Context<K>,
    object: &K,
    old: Option<&S>,
    new: &S,
    mut metadata: Map<String, Value>,
) -> Result<bool> {
    if old == Some(new) && metadata.is_empty() {
        return Ok(false);
    }
    let mut status = to_value(new)?;
    if let Some(before) = old.map(to_value).transpose()? {
        clear_gone(&before, &mut status);
    }
    metadata.insert("uid".into(), json!(object.meta().uid));
    let body = json!({"metadata": metadata, "status": status});
    match ctx.merge_patch_status::<K>(&Key::of(object), &body).await {
        Err(Error::Api(kube::Error::Api(status))) if status.code == 404 => Ok(false),
        written => written.map(|_| true),
    }
}

/// Adds a null for every field of `before` that `after` lacks, at any depth: only so does a merge
/// patch remove it.
fn clear_gone(before: &Value, after: &mut Value) {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return };
    for (name, was) in before {
        match after.get_mut(name) {
            Some(is) => clear_gone(was, is),
            None => drop(after.insert(name.clone(), Value::Null)),
        }
    }
}

/// Server-side apply, with force, to the object of the uid in `body`; nothing is done when a namesake,
/// or none, has taken its place.
pub(crate) async fn apply_by_uid(
    client: &Client,
    kind: &Kind,
    key: &Key,
    subresource: Option<&str>,
    manager: &str,
    body: &Value,
) -> Result<()> {
    let path = format!("{}?fieldManager={manager}&force=true", path(kind, key, subresource));
    match send(client, Method::PATCH, &path, "application/apply-patch+yaml", body).await {
        Err(Error::Api(kube::Error::Api(status))) if status.code == 409 => Ok(()),
        written => written.map(drop),
    }
}

/// JSON merge patch; `None` when the object is gone.
pub(crate) async fn patch(
    client: &Client,
    kind: &Kind,
    key: &Key,
    subresource: Option<&str>,
    body: &Value,
) -> Result<Found> {
    let path = path(kind, key, subresource);
    send(client, Method::PATCH, &path, "application/merge-patch+json", body).await
}

/// Creates an object in `namespace`; `None` when it exists already.
pub(crate) async fn create<K: Object>(
    client: &Client,
    namespace: Option<&str>,
    object: &K,
) -> Result<Found> {
    let path = Kind::of::<K>().path(namespace);
    let body = to_value(object)?;
    match send(client, Method::POST, &path, "application/json", &body).await {
        Err(Error::Api(kube::Error::Api(status))) if status.reason == "AlreadyExists" => Ok(None),
        other => other,
    }
}

/// Posts to a subresource such as `binding`.
pub(crate) async fn post(
    client: &Client,
    kind: &Kind,
    key: &Key,
    subresource: &str,
    body: &Value,
) -> Result<Found> {
    let path = path(kind, key, Some(subresource));
    send(client, Method::POST, &path, "application/json", body).await
}

/// Replaces an object through a subresource such as `finalize`.
pub(crate) async fn put(
    client: &Client,
    kind: &Kind,
    key: &Key,
    subresource: &str,
    body: &Value,
) -> Result<Found> {
    let path = path(kind, key, Some(subresource));
    send(client, Method::PUT, &path, "application/json", body).await
}

/// Deletes the object of that uid with a propagation policy (`Background`, `Foreground`,
/// `Orphan`); `false` when it is gone, or a namesake has its place.
pub(crate) async fn delete(
    client: &Client,
    kind: &Kind,
    key: &Key,
    uid: &str,
    policy: &str,
) -> Result<bool> {
    delete_if(client, kind, key, &json!({"uid": uid}), policy).await
}

/// Deletes the object if the preconditions hold; `false` when they do not, or it is gone.
pub(crate) async fn delete_if(
    client: &Client,
    kind: &Kind,
    key: &Key,
    preconditions: &Value,
    policy: &str,
) -> Result<bool> {
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "v1",
        "propagationPolicy": policy, "preconditions": preconditions,
    });
    let path = path(kind, key, None);
    match send(client, Method::DELETE, &path, "application/json", &options).await {
        Err(Error::Api(kube::Error::Api(status))) if status.code == 409 => Ok(false),
        other => Ok(other?.is_some()),
    }
}

/// The object as the API has it now; `None` when there is none.
pub(crate) async fn read(client: &Client, kind: &Kind, key: &Key) -> Result<Found> {
    send(client, Method::GET, &path(kind, key, None), "application/json", &Value::Null).await
}

/// Sends one request. Not found is an answer, not an error.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    content: &str,
    body: &Value,
) -> Result<Found> {
    let body = if body.is_null() { Vec::new() } else { encode(body)? };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content)
        .body(body)
        .map_err(Error::terminal)?;
    match client.request::<Value>(request).await {
        Ok(value) => Ok(Some(value)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn path(kind: &Kind, key: &Key, subresource: Option<&str>) -> String {
    let collection = kind.path(key.namespace());
    match subresource {
        Some(subresource) => format!("{collection}/{}/{subresource}", key.name()),
        None => format!("{collection}/{}", key.name()),
    }
}

fn to_value(value: &impl Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(Error::terminal)
}

fn encode(value: &Value) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(Error::terminal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_cleared_at_any_depth() {
        let mut after = json!({"a": {"kept": 1}, "list": [{"x": 1}]});
        clear_gone(&json!({"a": {"kept": 0, "gone": 1}, "b": 2, "list": [{"y": 1}]}), &mut after);
        assert_eq!(after, json!({"a": {"kept": 1, "gone": null}, "b": null, "list": [{"x": 1}]}));
    }
}
