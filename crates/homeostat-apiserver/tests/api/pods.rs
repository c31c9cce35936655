use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{api, client, client_of, create, object, refusal};

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    })
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_is_pending_whatever_its_status_says() {
    let pods = api(&client(), "", "Pod");
    let mut wanted = pod("a");
    wanted["status"] = json!({"phase": "Running"});
    let made = create(&pods, wanted).await;
    assert_eq!(made.data["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    assert_eq!(made.data["spec"]["restartPolicy"], "Always");
    assert_eq!(made.metadata.generation, Some(1));
}

#[tokio::test(start_paused = true)]
async fn an_unscheduled_pod_goes_at_once_and_a_bound_one_gets_its_grace() {
    let client = client();
    let pods = api(&client, "", "Pod");
    create(&pods, pod("a")).await;
    pods.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(refusal(pods.get("a").await), (404, "NotFound".into()));

    create(&pods, pod("b")).await;
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "b"},
        "target": {"kind": "Node", "name": "node"},
    });
    let request = http::Request::post("/api/v1/namespaces/default/pods/b/binding")
        .header("content-type", "application/json")
        .body(binding.to_string().into_bytes())
        .unwrap();
    client.request::<Value>(request).await.unwrap();
    assert_eq!(pods.get("b").await.unwrap().data["spec"]["nodeName"], "node");
    pods.delete("b", &DeleteParams::default()).await.unwrap();
    let going = pods.get("b").await.unwrap();
    assert_eq!(going.metadata.deletion_grace_period_seconds, Some(30));
    assert!(going.metadata.deletion_timestamp.is_some());

    // A second delete only shortens.
    pods.delete("b", &DeleteParams::default().grace_period(60)).await.unwrap();
    assert_eq!(pods.get("b").await.unwrap().metadata.deletion_grace_period_seconds, Some(30));
    pods.delete("b", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert_eq!(refusal(pods.get("b").await), (404, "NotFound".into()));
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_its_service_account_when_told_to() {
    let client = client_of(|config| homeostat_apiserver::ServerConfig {
        service_account_admission: true,
        ..config
    });
    let pods = api(&client, "", "Pod");
    let early = pods.create(&PostParams::default(), &object(pod("a"))).await;
    assert_eq!(refusal(early), (403, "Forbidden".into()));
    let accounts = api(&client, "", "ServiceAccount");
    create(
        &accounts,
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}),
    )
    .await;
    let made = create(&pods, pod("a")).await;
    assert_eq!(made.data["spec"]["serviceAccountName"], "default");
    let mount = &made.data["spec"]["containers"][0]["volumeMounts"][0];
    assert_eq!(mount["mountPath"], "/var/run/secrets/kubernetes.io/serviceaccount");
    let sources = &made.data["spec"]["volumes"][0]["projected"]["sources"];
    assert_eq!(sources[0]["serviceAccountToken"]["path"], "token");
}

#[tokio::test(start_paused = true)]
async fn status_is_written_only_through_its_subresource() {
    let pods = api(&client(), "", "Pod");
    create(&pods, pod("a")).await;
    let running = Patch::Merge(json!({"status": {"phase": "Running"}}));
    let main = pods.patch("a", &PatchParams::default(), &running).await.unwrap();
    assert_eq!(main.data["status"]["phase"], "Pending");
    let status = pods.patch_status("a", &PatchParams::default(), &running).await.unwrap();
    assert_eq!(status.data["status"]["phase"], "Running");
    assert_eq!(status.metadata.generation, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_no_node_yet_has_said_nothing() {
    let client = client();
    let pods: kube::Api<k8s_openapi::api::core::v1::Pod> =
        kube::Api::default_namespaced(client.clone());
    create(
        &api(&client, "", "Pod"),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"},
            "spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]},
        }),
    )
    .await;
    let of = |container: &str| kube::api::LogParams {
        container: Some(container.to_owned()),
        ..kube::api::LogParams::default()
    };
    assert_eq!(pods.logs("new", &of("a")).await.unwrap(), "");
    assert_eq!(refusal(pods.logs("new", &of("c")).await).0, 400);
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_is_refused_where_none_may_be_given_and_is_no_change_elsewhere() {
    let pods = api(&client(), "", "Pod");
    let mut claiming = pod("claiming");
    claiming["spec"]["resources"] = json!({"claims": []});
    let refused = pods.create(&PostParams::default(), &object(claiming)).await;
    assert_eq!(refusal(refused), (422, "Invalid".into()));

    create(&pods, pod("a")).await;
    let patch = Patch::Merge(json!({"spec": {"nodeSelector": {}, "hostAliases": []}}));
    let patched = pods.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.metadata.generation, Some(1));
    let changed = json!({"spec": {"nodeSelector": {}, "hostAliases": [], "hostname": "h"}});
    let refused = pods.patch("a", &PatchParams::default(), &Patch::Merge(changed)).await;
    let kube::Error::Api(status) = refused.unwrap_err() else { panic!("not a refusal") };
    let shown = ["+ \"NodeSelector\": {},", "+ \"HostAliases\": [],", "+ \"Hostname\": \"h\","];
    assert!(shown.iter().all(|line| status.message.contains(line)), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_turned_on_is_not_kept_in_a_template_either() {
    let client = client();
    let mut template = pod("");
    template["spec"]["containers"][0]["lifecycle"] = json!({"stopSignal": "SIGINT"});
    template["metadata"] = json!({"labels": {"a": "b"}});
    let made = create(
        &api(&client, "", "PodTemplate"),
        json!({
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": "t"},
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        }),
    )
    .await;
    assert_eq!(made.data["template"]["spec"]["containers"][0].get("lifecycle"), None);
}
