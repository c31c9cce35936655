//! What every namespace has from the start: the ServiceAccount `default` and the ConfigMap
//! `kube-root-ca.crt`. Both come back when they are deleted or changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Key, Kind, Outcome, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use crate::write;

const ACCOUNT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";
const FILE: &str = "ca.crt";

/// The controller; `root_ca` is published in every namespace.
pub(crate) fn controller(root_ca: &str) -> Controller<Namespace> {
    let root_ca: Arc<str> = root_ca.into();
    Controller::new(move |namespace, ctx| reconcile(namespace, ctx, Arc::clone(&root_ca)))
        .named("namespace-defaults")
        .watches::<ServiceAccount>(|account| namespace_of(account, ACCOUNT))
        .watches::<ConfigMap>(|map| namespace_of(map, ROOT_CA))
}

fn namespace_of(object: &impl ResourceExt, name: &str) -> Vec<Key> {
    let namespace = object.namespace().filter(|_| object.name_any() == name);
    namespace.into_iter().map(Key::cluster).collect()
}

async fn reconcile(
    namespace: Arc<Namespace>,
    ctx: Context<Namespace>,
    root_ca: Arc<str>,
) -> Result<Outcome> {
    if namespace.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::Done);
    }
    let name = namespace.name_any();
    let key = |object: &str| Key::namespaced(name.as_str(), object);
    if ctx.get::<ServiceAccount>(&key(ACCOUNT)).await?.is_none() {
        let account = ServiceAccount { metadata: named(ACCOUNT), ..ServiceAccount::default() };
        write::create(ctx.client(), Some(&name), &account).await?;
    }
    let data = BTreeMap::from([(FILE.to_owned(), root_ca.to_string())]);
    match ctx.get::<ConfigMap>(&key(ROOT_CA)).await? {
        None => {
            let mut metadata = named(ROOT_CA);
            let note = "Contains a CA bundle that can be used to verify the kube-apiserver when \
                using internal endpoints such as the internal service IP or \
                kubernetes.default.svc. No other usage is guaranteed across distributions of \
                Kubernetes clusters.";
            metadata.annotations =
                Some([("kubernetes.io/description".to_owned(), note.to_owned())].into());
            let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
            write::create(ctx.client(), Some(&name), &map).await?;
        }
        Some(map) if map.data.as_ref() != Some(&data) => {
            let patch = json!({"data": {FILE: &*root_ca}});
            write::patch(ctx.client(), &Kind::of::<ConfigMap>(), &key(ROOT_CA), None, &patch)
                .await?;
        }
        Some(_) => {}
    }
    Ok(Outcome::Done)
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}
