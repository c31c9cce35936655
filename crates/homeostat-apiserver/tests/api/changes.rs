//! What counts as a change, and what a change may say.

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use super::{api, client, cluster_api, create};

#[tokio::test(start_paused = true)]
async fn a_base_of_names_is_judged_again_by_the_kinds_that_judge_names_again() {
    let client = client();
    let base = |base: &str| Patch::Merge(json!({"metadata": {"generateName": base}}));
    let spec = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "a"}});
    let quotas = api(&client, "", "ResourceQuota");
    create(&quotas, spec).await;
    let maps = api(&client, "", "ConfigMap");
    create(&maps, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}))
        .await;
    for (base, by_maps, by_quotas) in
        [(base("a-"), true, true), (base("X y"), false, true), (base("x/y"), false, false)]
    {
        let params = PatchParams::default();
        assert_eq!(maps.patch("a", &params, &base).await.is_ok(), by_maps, "{base:?}");
        assert_eq!(quotas.patch("a", &params, &base).await.is_ok(), by_quotas, "{base:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_generation_moves_with_what_is_written_even_if_nothing_of_it_is_kept() {
    let client = client();
    let slices = api(&client, "discovery.k8s.io", "EndpointSlice");
    let endpoint = json!({"addresses": ["10.0.0.1"]});
    create(
        &slices,
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [endpoint]}),
    )
    .await;
    let configurations =
        cluster_api(&client, "admissionregistration.k8s.io", "ValidatingWebhookConfiguration");
    let webhook = json!({"name": "w.example.com", "admissionReviewVersions": ["v1"],
        "sideEffects": "None", "clientConfig": {"url": "https://example.com/p"}});
    create(
        &configurations,
        json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "a"},
            "webhooks": [webhook]}),
    )
    .await;
    let generation = async |of: &Api<DynamicObject>, patch: Value| {
        let now = of.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        now.metadata.generation
    };
    assert_eq!(
        generation(&slices, json!({"metadata": {"annotations": {"a": "b"}}})).await,
        Some(1)
    );
    assert_eq!(generation(&slices, json!({"metadata": {"labels": {"a": "b"}}})).await, Some(2));
    let mut placed = endpoint;
    placed["deprecatedTopology"] = json!({"a": "b"});
    assert_eq!(generation(&slices, json!({"endpoints": [placed]})).await, Some(3));
    let mut empty = webhook;
    empty["matchConditions"] = json!([]);
    assert_eq!(generation(&configurations, json!({"webhooks": [empty]})).await, Some(2));
    let kept = configurations.get("a").await.unwrap();
    assert!(kept.data["webhooks"][0].get("matchConditions").is_none());
}
