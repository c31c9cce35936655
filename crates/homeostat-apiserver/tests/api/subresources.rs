use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{api, client, create, refusal};

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

async fn put(client: &Client, path: &str, body: &Value) -> Result<Value, kube::Error> {
    let request = http::Request::put(path)
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())
        .unwrap();
    client.request(request).await
}

#[tokio::test(start_paused = true)]
async fn a_subresource_takes_its_own_part_of_a_pod_and_nothing_else() {
    let client = client();
    let pods = api(&client, "", "Pod");
    let asked = json!({"requests": {"cpu": "1"}});
    let main = json!({"name": "main", "image": "busybox", "resources": asked});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"containers": [main]},
    });
    create(&pods, pod.clone()).await;

    let path = "/api/v1/namespaces/default/pods/a";
    for subresource in ["resize", "ephemeralcontainers"] {
        let mut garbage = pod.clone();
        garbage["spec"] = json!("garbage");
        let refused = put(&client, &format!("{path}/{subresource}"), &garbage).await;
        assert_eq!(refusal(refused), (400, "BadRequest".into()), "{subresource}");
    }

    let mut larger = pod.clone();
    larger["spec"]["nodeName"] = json!("elsewhere");
    larger["spec"]["containers"][0]["image"] = json!("other");
    larger["spec"]["containers"][0]["resources"] =
        json!({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}});
    let resized = put(&client, &format!("{path}/resize"), &larger).await.unwrap();
    let container = &resized["spec"]["containers"][0];
    assert_eq!(container["resources"]["limits"]["cpu"], "2");
    assert_eq!((&container["image"], resized["spec"].get("nodeName")), (&json!("busybox"), None));

    let mut debugged = pod;
    debugged["spec"]["containers"][0]["image"] = json!("other");
    debugged["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "busybox"}]);
    let debugged = put(&client, &format!("{path}/ephemeralcontainers"), &debugged).await.unwrap();
    assert_eq!(debugged["spec"]["ephemeralContainers"][0]["name"], "debug");
    assert_eq!(debugged["spec"]["containers"][0]["image"], "busybox");
}

#[tokio::test(start_paused = true)]
async fn a_token_request_that_makes_no_sense_does_no_harm() {
    let client = client();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
    create(&api(&client, "", "ServiceAccount"), account).await;
    let request = http::Request::post("/api/v1/namespaces/default/serviceaccounts/a/token")
        .header("content-type", "application/json")
        .body(json!({"spec": "forever"}).to_string().into_bytes())
        .unwrap();
    let refused = client.request::<Value>(request).await;
    assert_eq!(refusal(refused), (400, "BadRequest".into()));
}

#[tokio::test(start_paused = true)]
async fn an_apply_through_a_subresource_takes_its_part_and_owns_it() {
    let client = client();
    let pods = api(&client, "", "Pod");
    create(
        &pods,
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
            "spec": {"containers": [{"name": "main", "image": "busybox"}]},
        }),
    )
    .await;
    let applied = Patch::Apply(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"not": "taken"}},
        "spec": {"ephemeralContainers": [{"name": "look", "image": "busybox"}]},
    }));
    let params = PatchParams::apply("me");
    let pod = pods.patch_subresource("ephemeralcontainers", "web", &params, &applied).await;
    let pod = pod.unwrap();
    assert_eq!(pod.data["spec"]["ephemeralContainers"][0]["name"], "look");
    assert_eq!(pod.metadata.labels, None);
    let owners = pod.metadata.managed_fields.unwrap();
    let mine = owners.iter().find(|entry| entry.manager.as_deref() == Some("me")).unwrap();
    assert_eq!(mine.operation.as_deref(), Some("Apply"));
    assert_eq!(mine.subresource.as_deref(), Some("ephemeralcontainers"));
    let missing = pods.patch_subresource("resize", "none", &params, &applied).await;
    assert!(matches!(refusal(missing), (400 | 404, _)));
}
