use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use super::{client, cluster_api, create, object, refusal};

const GROUP: &str = "certificates.k8s.io";
const KIND: &str = "CertificateSigningRequest";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

pub(super) fn asked(name: &str) -> Value {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, "jane");
    let key = KeyPair::generate().unwrap();
    let request = parameters.serialize_request(&key).unwrap().pem().unwrap();
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": KIND, "metadata": {"name": name},
        "spec": {"request": base64(&request), "signerName": CLIENT, "usages": ["client auth"]},
    })
}

async fn approve(client: &Client, user: &str, ty: &str) -> Result<Value, kube::Error> {
    let condition = json!({"type": ty, "status": "True", "reason": "Test", "message": "by hand"});
    let patch = json!({"status": {"conditions": [condition]}});
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests/a/approval";
    let mut request =
        http::Request::patch(path).header("content-type", "application/merge-patch+json");
    if !user.is_empty() {
        request = request.header("impersonate-user", user);
    }
    client.request(request.body(patch.to_string().into_bytes()).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn a_verdict_is_dated_and_never_taken_back() {
    let client = client();
    let requests = cluster_api(&client, GROUP, KIND);
    create(&requests, asked("a")).await;
    let approved = approve(&client, "", "Approved").await.unwrap();
    let condition = &approved["status"]["conditions"][0];
    assert!(condition["lastUpdateTime"].is_string() && condition["lastTransitionTime"].is_string());
    assert_eq!(refusal(approve(&client, "", "Denied").await), (422, "Invalid".into()));
    let nothing = Patch::Merge(json!({"status": {"conditions": []}}));
    let taken_back = requests.patch_status("a", &PatchParams::default(), &nothing).await;
    assert_eq!(refusal(taken_back), (422, "Invalid".into()));
    let unchanged = Patch::Merge(json!({"spec": {"signerName": "example.com/other"}}));
    let kept = requests.patch("a", &PatchParams::default(), &unchanged).await.unwrap();
    assert_eq!(kept.data["spec"]["signerName"], CLIENT);
}

#[tokio::test(start_paused = true)]
async fn only_who_may_speak_for_the_signer_approves() {
    let client = client();
    create(&cluster_api(&client, GROUP, KIND), asked("a")).await;
    let group = "rbac.authorization.k8s.io";
    let role = |signers: Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "approver"},
            "rules": [
                {"apiGroups": [GROUP], "resources": ["certificatesigningrequests/approval"],
                    "verbs": ["update", "patch"]},
                {"apiGroups": [GROUP], "resources": ["signers"], "verbs": ["approve"],
                    "resourceNames": signers},
            ],
        })
    };
    let roles = cluster_api(&client, group, "ClusterRole");
    create(&roles, role(json!(["example.com/*"]))).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "approver"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "approver"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "carl"}],
    });
    create(&cluster_api(&client, group, "ClusterRoleBinding"), binding).await;
    assert_eq!(refusal(approve(&client, "carl", "Approved").await), (403, "Forbidden".into()));
    let wider = Patch::Merge(role(json!(["kubernetes.io/*"])));
    roles.patch("approver", &PatchParams::default(), &wider).await.unwrap();
    approve(&client, "carl", "Approved").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_request_must_be_one_and_be_signed_by_its_key() {
    let requests = cluster_api(&client(), GROUP, KIND);
    for (field, wrong) in [
        ("request", json!(base64("hello"))),
        ("signerName", json!("nowhere")),
        ("usages", json!(["dancing"])),
        ("expirationSeconds", json!(10)),
    ] {
        let mut asked = asked("a");
        asked["spec"][field] = wrong;
        let made = requests.create(&PostParams::default(), &object(asked)).await;
        assert_eq!(refusal(made), (422, "Invalid".into()), "{field}");
    }
}
