//! Who kubectl, and a program in a Pod, are to the embedded cluster.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod running;

use std::fs;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use running::{Up, kubectls};

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
