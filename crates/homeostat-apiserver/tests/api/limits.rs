use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{api, client, cluster_api, create, object, refusal};

fn pod(name: &str, resources: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "busybox", "resources": resources}]},
    })
}

#[tokio::test(start_paused = true)]
async fn containers_get_what_their_namespace_gives_by_default() {
    let client = client();
    let limits = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"},
        "spec": {"limits": [{
            "type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"},
            "max": {"cpu": "1"},
        }]},
    });
    create(&api(&client, "", "LimitRange"), limits).await;
    let pods = api(&client, "", "Pod");
    let made = create(&pods, pod("a", json!({}))).await;
    assert_eq!(
        made.data["spec"]["containers"][0]["resources"],
        json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "500m"}})
    );
    assert_eq!(
        made.metadata.annotations.unwrap()["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container main; cpu limit for container main"
    );
    assert_eq!(made.data["status"]["qosClass"], "Burstable");
    let large = object(pod("b", json!({"limits": {"cpu": "2"}})));
    assert_eq!(
        refusal(pods.create(&PostParams::default(), &large).await),
        (403, "Forbidden".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_charged_with_the_write_and_never_exceeded() {
    let client = client();
    let quotas = api(&client, "", "ResourceQuota");
    let hard = json!({"pods": "1", "requests.cpu": "1"});
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": hard},
    });
    create(&quotas, quota).await;
    let known = json!({"status": {"hard": hard, "used": {"pods": "0", "requests.cpu": "0"}}});
    quotas.patch_status("q", &PatchParams::default(), &Patch::Merge(known)).await.unwrap();
    let pods = api(&client, "", "Pod");
    let ask = || json!({"requests": {"cpu": "300m"}});
    let trial = PostParams { dry_run: true, ..PostParams::default() };
    pods.create(&trial, &object(pod("a", ask()))).await.unwrap();
    create(&pods, pod("a", ask())).await;
    let used = quotas.get("q").await.unwrap().data["status"]["used"].clone();
    assert_eq!(used, json!({"pods": "1", "requests.cpu": "300m"}));
    let more = pods.create(&PostParams::default(), &object(pod("b", ask()))).await;
    assert_eq!(refusal(more), (403, "Forbidden".into()));
    // A write that fails for another reason costs nothing.
    let again = pods.create(&PostParams::default(), &object(pod("a", json!({})))).await;
    assert_eq!(refusal(again).0, 403);
    assert_eq!(quotas.get("q").await.unwrap().data["status"]["used"], used);
}

#[tokio::test(start_paused = true)]
async fn a_new_node_takes_no_pods_until_it_is_ready() {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    let made = create(&cluster_api(&client(), "", "Node"), node).await;
    let taint = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
    assert_eq!(made.data["spec"]["taints"], taint);
}

#[tokio::test(start_paused = true)]
async fn whoever_names_no_class_gets_the_default_one() {
    let client = client();
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p",
        "metadata": {"name": "gold",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    });
    create(&cluster_api(&client, "storage.k8s.io", "StorageClass"), class).await;
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7,
        "metadata": {"name": "usual"}, "globalDefault": true,
    });
    let classes = cluster_api(&client, "scheduling.k8s.io", "PriorityClass");
    create(&classes, class.clone()).await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let claim = create(&api(&client, "", "PersistentVolumeClaim"), claim).await;
    assert_eq!(claim.data["spec"]["storageClassName"], "gold");
    let pod = create(&api(&client, "", "Pod"), pod("a", json!({}))).await;
    assert_eq!(pod.data["spec"]["priority"], 7);
    assert_eq!(pod.data["spec"]["priorityClassName"], "usual");
    let mut second = class;
    second["metadata"]["name"] = "other".into();
    let second = classes.create(&PostParams::default(), &object(second)).await;
    assert_eq!(refusal(second), (403, "Forbidden".into()));
}
