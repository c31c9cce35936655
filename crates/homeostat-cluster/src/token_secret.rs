//! Secrets of type `kubernetes.io/service-account-token`: filled with a token of the account they
//! name, and gone with it.
//!
//! The token comes from the API like any other and is bound to the Secret: it ends when the Secret
//! does. No key is needed to make it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Error, Key, Kind, Outcome, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use serde_json::{Value, json};

use crate::write;

const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// The longest that can be asked for.
const LIFETIME: u64 = 1 << 32;

/// The Secrets that name an account.
type Named = Arc<Mutex<BTreeMap<Key, BTreeSet<Key>>>>;

/// The controller; `root_ca` is what a holder of the token verifies the API with.
pub(crate) fn controller(root_ca: &str) -> Controller<Secret> {
    let (named, root_ca): (Named, Arc<str>) = (Named::default(), root_ca.into());
    let of_account = Arc::clone(&named);
    Controller::new(move |secret, ctx| {
        reconcile(secret, ctx, Arc::clone(&named), Arc::clone(&root_ca))
    })
    .named("service-account-tokens")
    .watches::<ServiceAccount>(move |account| {
        let named = of_account.lock().unwrap_or_else(PoisonError::into_inner);
        named.get(&Key::of(account)).into_iter().flatten().cloned().collect()
    })
}

async fn reconcile(
    secret: Arc<Secret>,
    ctx: Context<Secret>,
    named: Named,
    root_ca: Arc<str>,
) -> Result<Outcome> {
    let name = secret.annotations().get(ACCOUNT).filter(|name| !name.is_empty());
    let is_going = secret.metadata.deletion_timestamp.is_some();
    let Some(name) = name.filter(|_| secret.type_.as_deref() == Some(TYPE) && !is_going) else {
        return Ok(Outcome::Done);
    };
    let account = ctx.key().beside(name);
    {
        let mut named = named.lock().unwrap_or_else(PoisonError::into_inner);
        named.entry(account.clone()).or_default().insert(ctx.key().clone());
    }
    let wanted = secret.annotations().get(ACCOUNT_UID).filter(|uid| !uid.is_empty());
    let is_it = |account: &ServiceAccount| wanted.is_none() || account.uid().as_ref() == wanted;
    let mut found = ctx.get::<ServiceAccount>(&account).await?.filter(|one| is_it(one));
    if found.is_none() {
        // The cache may be behind: an account is absent only when the API says so.
        found = ctx.get_live::<ServiceAccount>(&account).await?.filter(|one| is_it(one));
    }
    let Some(found) = found else {
        ctx.delete(secret.as_ref()).await?;
        return Ok(Outcome::Done);
    };
    if let Some(mut patch) = missing(&secret, &found, &root_ca) {
        if patch["data"]["token"].is_null() {
            patch["data"]["token"] = json!(ByteString(token(&secret, &ctx, &account).await?));
        }
        write::patch(ctx.client(), &Kind::of::<Secret>(), ctx.key(), None, &patch).await?;
    }
    Ok(Outcome::Done)
}

/// What the Secret lacks, as a patch whose token is null when there is none yet.
fn missing(secret: &Secret, account: &ServiceAccount, root_ca: &str) -> Option<Value> {
    let held = |field: &str| secret.data.as_ref().and_then(|data| data.get(field));
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let namespace = secret.namespace().unwrap_or_default();
    let mut data = BTreeMap::from([("namespace", bytes(&namespace))]);
    if !root_ca.is_empty() {
        data.insert("ca.crt", bytes(root_ca));
    }
    let token = held("token").filter(|token| !token.0.is_empty());
    let is_complete = token.is_some()
        && secret.annotations().get(ACCOUNT_UID) == account.uid().as_ref()
        && data.iter().all(|(field, value)| held(field) == Some(value));
    let mut data = json!(data);
    data["token"] = json!(token);
    let metadata = json!({"uid": secret.uid(), "resourceVersion": secret.resource_version(),
        "annotations": {ACCOUNT_UID: account.uid()}});
    (!is_complete).then(|| json!({"metadata": metadata, "data": data}))
}

async fn token(secret: &Secret, ctx: &Context<Secret>, account: &Key) -> Result<Vec<u8>> {
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": LIFETIME, "boundObjectRef": {
            "apiVersion": "v1", "kind": "Secret", "name": secret.name_any(), "uid": secret.uid()}},
    });
    let kind = Kind::of::<ServiceAccount>();
    let answer = write::post(ctx.client(), &kind, account, "token", &request).await?;
    let token = answer.as_ref().and_then(|answer| answer["status"]["token"].as_str());
    let token = token.ok_or_else(|| Error::transient("the account is gone, or its token is"))?;
    Ok(token.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_has_everything_is_left_alone() {
        let account: ServiceAccount =
            serde_json::from_value(json!({"metadata": {"name": "a", "uid": "u"}})).unwrap();
        let secret = |data: &Value| -> Secret {
            serde_json::from_value(json!({"metadata": {"name": "s", "namespace": "n",
                "annotations": {ACCOUNT: "a", ACCOUNT_UID: "u"}}, "type": TYPE, "data": data}))
            .unwrap()
        };
        let full = json!({"namespace": "bg==", "ca.crt": "Q0E=", "token": "dA=="});
        assert_eq!(missing(&secret(&full), &account, "CA"), None);
        let patch = missing(&secret(&json!({})), &account, "CA").unwrap();
        assert_eq!(patch["data"], json!({"namespace": "bg==", "ca.crt": "Q0E=", "token": null}));
        let patch = missing(&secret(&full), &account, "another").unwrap();
        assert_eq!(patch["data"]["token"], "dA==", "a new authority does not end the token");
    }
}
