use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{api, client, create, object, refusal};

fn deployment(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "busybox"}]},
            },
        },
    })
}

#[tokio::test(start_paused = true)]
async fn an_apply_creates_then_changes_nothing_then_only_what_differs() {
    let deployments = api(&client(), "apps", "Deployment");
    let ours = PatchParams::apply("ours");
    let made = deployments.patch("web", &ours, &Patch::Apply(deployment(1))).await.unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    let same = deployments.patch("web", &ours, &Patch::Apply(deployment(1))).await.unwrap();
    assert_eq!(same.metadata.resource_version, made.metadata.resource_version);
    let more = deployments.patch("web", &ours, &Patch::Apply(deployment(2))).await.unwrap();
    assert_eq!((more.metadata.generation, &more.data["spec"]["replicas"]), (Some(2), &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn another_managers_field_is_a_conflict_unless_forced() {
    let deployments = api(&client(), "apps", "Deployment");
    let apply = |manager: &str| PatchParams::apply(manager);
    deployments.patch("web", &apply("one"), &Patch::Apply(deployment(1))).await.unwrap();
    let refused = deployments.patch("web", &apply("two"), &Patch::Apply(deployment(2))).await;
    assert_eq!(refusal(refused), (409, "Conflict".into()));
    let forced =
        deployments.patch("web", &apply("two").force(), &Patch::Apply(deployment(2))).await;
    assert_eq!(forced.unwrap().data["spec"]["replicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_strategic_patch_merges_containers_by_name() {
    let deployments = api(&client(), "apps", "Deployment");
    create(&deployments, deployment(1)).await;
    let sidecar = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "sidecar", "image": "alpine"},
    ]}}}});
    let patched = deployments
        .patch("web", &PatchParams::default(), &Patch::Strategic(sidecar))
        .await
        .unwrap();
    let containers = patched.data["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_dropped_or_refused_as_asked() {
    let deployments = api(&client(), "apps", "Deployment");
    let mut odd = deployment(1);
    odd["spec"]["colour"] = "blue".into();
    let made = create(&deployments, odd.clone()).await;
    assert_eq!(made.data["spec"].get("colour"), None);
    let strict = PatchParams::default().validation_strict();
    let refused = deployments.patch("web", &strict, &Patch::Merge(odd.clone())).await;
    assert_eq!(refusal(refused), (422, "Invalid".into()));
    // An apply cannot be merged then, whatever was asked.
    let refused = deployments.patch("web", &PatchParams::apply("x"), &Patch::Apply(odd)).await;
    assert_eq!(refusal(refused), (500, String::new()));
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_is_new_each_time() {
    let maps = api(&client(), "", "ConfigMap");
    let wanted =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}});
    let first = maps.create(&PostParams::default(), &object(wanted.clone())).await.unwrap();
    let second = maps.create(&PostParams::default(), &object(wanted)).await.unwrap();
    let (first, second) = (first.metadata.name.unwrap(), second.metadata.name.unwrap());
    assert!(first.starts_with("a-") && first.len() == 7 && first != second);
}
