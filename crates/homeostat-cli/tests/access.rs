//! Who kubectl, and a program in a Pod, are to the embedded cluster.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod running;

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
