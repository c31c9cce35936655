use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{api, client, create};

#[tokio::test(start_paused = true)]
async fn scale_is_a_view_of_the_replicas() {
    let deployments = api(&client(), "apps", "Deployment");
    create(
        &deployments,
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "main", "image": "busybox"}]},
                },
            },
        }),
    )
    .await;
    let scale = deployments.get_scale("web").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(1));
    assert_eq!(scale.status.unwrap().selector.as_deref(), Some("app=web"));
    let three = Patch::Merge(json!({"spec": {"replicas": 3}}));
    deployments.patch_scale("web", &PatchParams::default(), &three).await.unwrap();
    let deployment = deployments.get("web").await.unwrap();
    assert_eq!(deployment.data["spec"]["replicas"], 3);
    assert_eq!(deployment.metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn the_admin_may_do_everything() {
    let question = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(question.to_string().into_bytes())
        .unwrap();
    let answer: Value = client().request(request).await.unwrap();
    assert_eq!(answer["status"]["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn a_job_gets_a_selector_that_is_its_own() {
    let jobs = api(&client(), "batch", "Job");
    let made = create(
        &jobs,
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
            "spec": {"template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "busybox"}],
            }}},
        }),
    )
    .await;
    let uid = made.metadata.uid.unwrap();
    let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    assert_eq!(made.data["spec"]["selector"], selector);
    let labels = &made.data["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["batch.kubernetes.io/job-name"], "j");
}
