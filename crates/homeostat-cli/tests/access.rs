//! Who kubectl, and a program in a Pod, are to the embedded cluster.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod running;

use std::fs;
use std::sync::Arc;

use homeostat::k8s_openapi::api::core::v1::ConfigMap;
use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Manager, Outcome, Result};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use running::{Up, eventually, kubectls};

const BOX: &str = "
apiVersion: v1
kind: Pod
metadata: {name: box}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: box, image: busybox, command: [sleep, '600']}]
";

/// Where programs look.
const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn with_every_kubectl(test: impl Fn(&Up)) {
    for kubectl in kubectls() {
        test(Up::start(&[]).with(&kubectl));
    }
}

#[test]
fn a_program_in_a_pod_finds_a_token_that_the_api_knows() {
    with_every_kubectl(|up| {
        up.apply(BOX);
        up.wait_for("pod/box", ".status.containerStatuses[0].ready", "true");
        let read =
            |name: &str| up.kubectl(&["exec", "box", "--", "cat", &format!("{FOLDER}/{name}")]);
        assert_eq!(read("namespace"), "default");
        assert!(read("ca.crt").starts_with("-----BEGIN CERTIFICATE-----"));
        let whoami = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
        let token = read("token");
        let name = up.kubectl(&[&["--token", token.trim()], &whoami[..]].concat());
        assert_eq!(name, "system:serviceaccount:default:default");
    });
}

/// Answers whatever is called a question.
async fn answer(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    if config.name_any() == "question" {
        let data = serde_json::json!({ "data": { "answer": "yes" } });
        ctx.merge_patch_primary(&data).await?;
    }
    Ok(Outcome::Done)
}

#[tokio::test]
#[ignore = "run by the other test, in a Pod"]
async fn the_operator_in_a_pod() {
    homeostat::log::to_stderr();
    let manager = Manager::from_env().await.unwrap();
    let controller = Controller::new(answer).named("oracle").namespace("default");
    manager.with(controller).run().await.unwrap();
}

#[test]
fn an_operator_in_a_pod_needs_no_kubeconfig_and_has_the_rights_of_its_account() {
    let up = Up::start(&[]);
    let program = std::env::current_exe().unwrap();
    let pod = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "operator" },
        "spec": { "containers": [{
            "name": "operator", "image": "busybox",
            "command": [program, "--exact", "the_operator_in_a_pod", "--ignored", "--nocapture"],
            // Somebody's own kubeconfig is none of its business.
            "env": [{ "name": "HOME", "value": "/nowhere" }],
        }] },
    });
    up.apply(&pod.to_string());
    up.kubectl(&["create", "configmap", "question", "--from-literal=is=it there"]);
    // It waits until it may look, and until then it says what is missing.
    let says = "serviceaccount:default:default";
    up.wait_for("pod/operator", ".status.containerStatuses[0].ready", "true");
    eventually("the operator says what it may not", || {
        up.kubectl(&["logs", "operator"]).contains(says).then_some(())
    });
    let grant = ["create", "rolebinding", "operator", "--clusterrole=edit"];
    up.kubectl(&[&grant[..], &["--serviceaccount=default:default"]].concat());
    up.wait_for("configmap/question", ".data.answer", "yes");
    let shown = ["get", "configmap", "question", "--show-managed-fields", "-o", "json"];
    let shown = up.kubectl(&shown);
    assert!(shown.contains(r#""manager": "oracle""#), "{shown}");
}

#[test]
fn kubectl_shows_a_certificate_instead_of_a_token() {
    for kubectl in kubectls() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let mut up = Up::start(&["--data", &path("data")]);
        let up = up.with(&kubectl);
        let authority = fs::read_to_string(path("data/authority.pem")).unwrap();
        let (ca, ca_key) = authority.split_at(authority.find("-----BEGIN PRIVATE KEY").unwrap());
        let issuer = Issuer::from_ca_cert_pem(ca, KeyPair::from_pem(ca_key).unwrap()).unwrap();
        let mut client = CertificateParams::new(Vec::new()).unwrap();
        client.distinguished_name.push(DnType::CommonName, "jane");
        client.distinguished_name.push(DnType::OrganizationName, "readers");
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        fs::write(path("jane.crt"), client.signed_by(&key, &issuer).unwrap().pem()).unwrap();
        fs::write(path("jane.key"), key.serialize_pem()).unwrap();
        fs::write(path("ca.crt"), ca).unwrap();

        let url = up.kubectl(&["config", "view", "-o", "jsonpath={.clusters[0].cluster.server}"]);
        let shown = [
            // The token of the kubeconfig stays out of it.
            "--kubeconfig=/dev/null".to_owned(),
            format!("--server={url}"),
            format!("--certificate-authority={}", path("ca.crt")),
            format!("--client-certificate={}", path("jane.crt")),
            format!("--client-key={}", path("jane.key")),
        ];
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        let as_jane = |arguments: &[&str]| up.try_kubectl(&[&shown[..], arguments].concat());
        let output = as_jane(&["auth", "whoami", "-o", "jsonpath={.status.userInfo}"]);
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains("jane") && told.contains("readers"), "{output:?}");
        assert!(!as_jane(&["get", "namespaces"]).status.success());
        let grant = ["create", "clusterrolebinding", "readers", "--clusterrole=view"];
        up.kubectl(&[&grant[..], &["--group=readers"]].concat());
        let pods = as_jane(&["get", "pods", "-A"]);
        assert!(pods.status.success(), "{}", String::from_utf8_lossy(&pods.stderr));
    }
}
