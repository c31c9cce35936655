//! What the official conformance suite asked for first, kept without it.

use std::time::Duration;

use homeostat_apiserver::{Server, ServerConfig};
use homeostat_env::Env;
use http::Request;
use jiff::Timestamp;
use kube::Client;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{api, client, cluster_api, create, object, refusal};

#[tokio::test(start_paused = true)]
async fn a_page_of_a_list_grows_old_and_the_rest_is_still_to_be_had() {
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    let client = Client::new(Server::new(ServerConfig::new(env.clone())), "default");
    let maps = api(&client, "", "ConfigMap");
    for name in ["a", "b", "c"] {
        create(&maps, json!({"metadata": {"name": name}})).await;
    }
    let first = maps.list(&ListParams::default().limit(1)).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    let next = ListParams::default().limit(1).continue_token(&token);
    create(&maps, json!({"metadata": {"name": "d"}})).await;
    env.sleep(Duration::from_secs(299)).await;
    assert_eq!(maps.list(&next).await.unwrap().items.len(), 1, "five minutes are kept");
    env.sleep(Duration::from_secs(302)).await;
    let kube::Error::Api(old) = maps.list(&next).await.unwrap_err() else { panic!() };
    assert_eq!((old.code, old.reason.as_str()), (410, "Expired"));
    let token = old.metadata.and_then(|metadata| metadata.continue_).unwrap();
    let rest = maps.list(&ListParams::default().continue_token(&token)).await.unwrap();
    let names: Vec<_> =
        rest.items.iter().filter_map(|item| item.metadata.name.as_deref()).collect();
    assert_eq!(names, ["b", "c", "d"], "as they are now");
}

#[tokio::test(start_paused = true)]
async fn services_have_a_range_that_is_ready() {
    let ranges = cluster_api(&client(), "networking.k8s.io", "ServiceCIDR");
    let range = ranges.get("kubernetes").await.unwrap();
    assert_eq!(range.data["spec"]["cidrs"], json!(["127.96.0.0/16"]));
    assert_eq!(range.data["status"]["conditions"][0]["type"], "Ready");
}

#[tokio::test(start_paused = true)]
async fn an_ip_address_is_named_by_its_only_form() {
    let addresses = cluster_api(&client(), "networking.k8s.io", "IPAddress");
    let address = |name: &str| {
        let parent = json!({"group": "", "resource": "services", "namespace": "a", "name": "b"});
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
            "metadata": {"name": name}, "spec": {"parentRef": parent}})
    };
    create(&addresses, address("fe80::1")).await;
    for wrong in ["fe80:0::1", "somewhere"] {
        let made = addresses.create(&PostParams::default(), &object(address(wrong))).await;
        assert_eq!(refusal(made), (422, "Invalid".into()), "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_the_newer_api_are_selected_by_who_reports_them() {
    let client = client();
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "eventTime": "1970-01-01T00:00:00.000000Z", "reportingController": "tester",
        "reportingInstance": "one", "action": "Do", "reason": "Test", "type": "Normal",
        "regarding": {"namespace": "default"},
    });
    create(&api(&client, "events.k8s.io", "Event"), event).await;
    let selected = ListParams::default().fields("source=tester");
    assert_eq!(api(&client, "", "Event").list(&selected).await.unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_approval_may_annotate_what_it_approves() {
    let requests = cluster_api(&client(), "certificates.k8s.io", "CertificateSigningRequest");
    let mut request = super::certificates::asked("r");
    request["spec"]["signerName"] = "example.com/signer".into();
    create(&requests, request).await;
    let approval = json!({
        "metadata": {"annotations": {"by": "me"}},
        "spec": {"signerName": "example.com/other"},
        "status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}],
            "certificate": "bm90IHlvdXJz"},
    });
    let patch = Patch::Merge(approval);
    let approved: Value = serde_json::to_value(
        requests.patch_subresource("approval", "r", &PatchParams::default(), &patch).await.unwrap(),
    )
    .unwrap();
    assert_eq!(approved["metadata"]["annotations"]["by"], "me");
    assert_eq!(approved["status"]["conditions"][0]["type"], "Approved");
    assert_eq!(approved["status"]["certificate"], Value::Null, "that is for the signer");
    assert_eq!(approved["spec"]["signerName"], "example.com/signer");
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_ill_named_kernel_parameters_is_refused() {
    let pods = api(&client(), "", "Pod");
    let pod = |name: &str| {
        object(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {
                "containers": [{"name": "c", "image": "i"}],
                "securityContext": {"sysctls": [{"name": name, "value": "1"}]},
            },
        }))
    };
    let refused = pods.create(&PostParams::default(), &pod("bar..")).await;
    let kube::Error::Api(status) = refused.unwrap_err() else { panic!() };
    assert!(status.message.contains(r#"sysctls[0].name: Invalid value: "bar..""#), "{status:?}");
    pods.create(&PostParams::default(), &pod("kernel.shmmax")).await.unwrap();
}

/// The words of a refusal.
async fn refused(client: &Client, request: http::request::Builder, body: &str) -> String {
    let request = request.body(body.as_bytes().to_vec()).unwrap();
    let kube::Error::Api(status) = client.request_text(request).await.unwrap_err() else {
        panic!()
    };
    assert_eq!(status.code, 400);
    status.message
}

#[tokio::test(start_paused = true)]
async fn strict_readers_complain_in_the_order_of_the_document() {
    let url = "/api/v1/namespaces/default/configmaps?fieldValidation=Strict";
    let post = Request::post(url).header("content-type", "application/json");
    let body = r#"{"metadata":{"name":"a"},"data":{},"x":1,"data":{},"y":2}"#;
    let words = refused(&client(), post, body).await;
    let complaints = r#"unknown field "x", duplicate field "data", unknown field "y""#;
    assert!(words.ends_with(complaints), "{words}");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_key_of_an_applied_yaml_is_named_with_its_line() {
    let url = "/api/v1/namespaces/default/configmaps/a?fieldValidation=Strict&fieldManager=me";
    let patch = Request::patch(url).header("content-type", "application/apply-patch+yaml");
    let body = "apiVersion: v1\nkind: ConfigMap\ndata:\n  b: '1'\n  b: '2'\n";
    let words = refused(&client(), patch, body).await;
    assert!(words.ends_with("line 5: key \"b\" already set in map"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn all_kinds_are_described_in_one_document_of_the_older_form_too() {
    let request = Request::get("/openapi/v2").body(Vec::new()).unwrap();
    let text = client().request_text(request).await.unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["swagger"], "2.0");
    assert!(document["paths"]["/api/v1/namespaces/{namespace}/pods"]["post"].is_object());
    let mut names = Vec::new();
    for part in text.split("\"$ref\":\"").skip(1) {
        names.push(part.split('"').next().unwrap().strip_prefix('#').unwrap());
    }
    assert!(names.len() > 1000);
    for name in names {
        assert!(document.pointer(name).is_some_and(Value::is_object), "{name}");
    }
}
