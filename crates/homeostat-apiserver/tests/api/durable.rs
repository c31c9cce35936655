//! What a server with a data directory promises to its clients.

use std::collections::BTreeSet;

use homeostat_apiserver::store::StorageError;
use homeostat_apiserver::{DataDirectory, Identity, Server, ServerConfig};
use homeostat_env::Env;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The last client's task gives the directory back when it gets to run.
async fn take(place: &TempDir) -> DataDirectory {
    loop {
        match DataDirectory::open(&place.path().join("data")) {
            Err(StorageError::InUse { .. }) => tokio::task::yield_now().await,
            opened => return opened.unwrap(),
        }
    }
}

pub(super) async fn start(place: &TempDir) -> Client {
    let directory = take(place).await;
    let server = Server::open(ServerConfig::new(Env::system()), &directory).await.unwrap();
    Client::new(server, "default")
}

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn a_server_that_is_opened_again_has_every_object_with_its_uid_and_revision() {
    let place = TempDir::new().unwrap();
    let (before, kept) = {
        let client = start(&place).await;
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let map = of(json!({"metadata": {"name": "kept"}, "data": {"a": "1"}}));
        let kept = maps.create(&PostParams::default(), &map).await.unwrap();
        let all = Api::<Namespace>::all(client).list(&ListParams::default()).await.unwrap();
        (all, kept)
    };
    let client = start(&place).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    assert_eq!(maps.get("kept").await.unwrap(), kept);
    let after = Api::<Namespace>::all(client).list(&ListParams::default()).await.unwrap();
    assert_eq!(after.items, before.items);
    let map = of(json!({"metadata": {"name": "next"}}));
    let next: ConfigMap = maps.create(&PostParams::default(), &map).await.unwrap();
    let revision = |map: &ConfigMap| map.resource_version().unwrap().parse::<u64>().unwrap();
    assert!(revision(&next) > revision(&kept));
    assert_ne!(next.uid(), kept.uid());
}

#[tokio::test]
async fn what_somebody_took_from_the_roles_of_every_cluster_is_back_after_a_restart() {
    let place = TempDir::new().unwrap();
    let (role, kept, binding) =
        ("system:basic-user", "system:discovery", "system:public-info-viewer");
    let before = {
        let client = start(&place).await;
        let roles: Api<ClusterRole> = Api::all(client.clone());
        let bindings: Api<ClusterRoleBinding> = Api::all(client);
        let before = roles.get(role).await.unwrap();
        let nothing = Patch::Merge(json!({"rules": []}));
        roles.patch(role, &PatchParams::default(), &nothing).await.unwrap();
        let by_hand = json!({"rbac.authorization.kubernetes.io/autoupdate": "false"});
        let mine = Patch::Merge(json!({"metadata": {"annotations": by_hand}, "rules": []}));
        roles.patch(kept, &PatchParams::default(), &mine).await.unwrap();
        let mut other = bindings.get(binding).await.unwrap();
        bindings.delete(binding, &DeleteParams::default()).await.unwrap();
        other.metadata = ObjectMeta { name: other.metadata.name, ..ObjectMeta::default() };
        other.role_ref.name = "view".to_owned();
        bindings.create(&PostParams::default(), &other).await.unwrap();
        before
    };
    let client = start(&place).await;
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let allowed = |role: &ClusterRole| -> BTreeSet<String> {
        let each = |rule: &PolicyRule| {
            let resources = rule.resources.clone().unwrap_or_default();
            resources.into_iter().map(|one| format!("{:?} {one}", rule.verbs)).collect::<Vec<_>>()
        };
        role.rules.iter().flatten().flat_map(each).collect()
    };
    assert!(!allowed(&before).is_empty());
    assert_eq!(allowed(&roles.get(role).await.unwrap()), allowed(&before));
    assert!(allowed(&roles.get(kept).await.unwrap()).is_empty());
    let bindings: Api<ClusterRoleBinding> = Api::all(client);
    assert_eq!(bindings.get(binding).await.unwrap().role_ref.name, binding);
}

#[tokio::test]
async fn custom_resources_are_served_again_and_events_still_end() {
    let place = TempDir::new().unwrap();
    let resource = ApiResource {
        group: "example.com".into(),
        version: "v1".into(),
        api_version: "example.com/v1".into(),
        kind: "Lamp".into(),
        plural: "lamps".into(),
    };
    {
        let client = start(&place).await;
        let definition = of(json!({
            "metadata": {"name": "lamps.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object",
                        "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        }));
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let lamps: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
        let lamp = of(json!({"apiVersion": "example.com/v1", "kind": "Lamp",
            "metadata": {"name": "desk"}, "spec": {"on": true}}));
        lamps.create(&PostParams::default(), &lamp).await.unwrap();
        let event = of(json!({"metadata": {"name": "e"}, "reason": "Lit",
            "involvedObject": {"kind": "Lamp", "name": "desk", "namespace": "default"}}));
        Api::<Event>::default_namespaced(client)
            .create(&PostParams::default(), &event)
            .await
            .unwrap();
    }
    let client = start(&place).await;
    let lamps: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    assert_eq!(lamps.get("desk").await.unwrap().data["spec"]["on"], true);
    let events = ListParams::default().fields("reason=Lit");
    let events = Api::<Event>::default_namespaced(client).list(&events).await.unwrap();
    assert_eq!(events.items.len(), 1);
}

#[tokio::test]
async fn the_authority_and_the_token_stay_those_of_the_directory() {
    let place = TempDir::new().unwrap();
    let env = Env::system();
    let identity = || {
        let directory = DataDirectory::open(&place.path().join("data")).unwrap();
        Identity::kept(&env, &directory, &[]).unwrap()
    };
    let (first, second) = (identity(), identity());
    assert_eq!(first.access().token, second.access().token);
    assert_eq!(first.access().ca_pem, second.access().ca_pem);
}
