//! The WebApp operator, driven through kubectl only.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on may panic")]

mod running;

use running::{Up, eventually, http};

const WEBAPP: &str = "apiVersion: homeostat.dev/v1alpha1\nkind: WebApp\nmetadata: {name: site}\n\
                      spec: {image: 'homeostat.dev/hello:1', replicas: 2, port: 8080}\n";

fn started() -> Up {
    let up = Up::start(&["--with", "webapp"]);
    up.apply(WEBAPP);
    up.kubectl(&["wait", "webapp/site", "--for=condition=Ready", "--timeout=60s"]);
    up
}

fn address(up: &Up) -> String {
    format!("{}:8080", up.value("service/site", ".spec.clusterIP"))
}

#[test]
fn a_webapp_answers_on_its_service_address_and_rolls_to_a_new_image() {
    let up = started();
    assert_eq!(up.value("webapp/site", ".status.availableReplicas"), "2");
    assert_eq!(up.value("webapp/site", ".status.ready"), "true");
    let body = eventually("it answers", || http(&address(&up)));
    assert!(body.starts_with("hello 1 from site-"), "{body}");

    up.kubectl(&[
        "patch",
        "webapp",
        "site",
        "--type=merge",
        "-p",
        r#"{"spec":{"image":"homeostat.dev/hello:2"}}"#,
    ]);
    eventually("the new image answers", || {
        http(&address(&up)).filter(|body| body.starts_with("hello 2 "))
    });
    up.kubectl(&["rollout", "status", "deployment/site", "--timeout=60s"]);
    up.kubectl(&["wait", "webapp/site", "--for=condition=Ready", "--timeout=60s"]);
    // No word of what its user did not do and cannot mend, such as a deprecated kind.
    assert_eq!(up.log(), "");
}

#[test]
fn what_somebody_does_to_the_deployment_is_put_right() {
    let up = started();
    up.kubectl(&["scale", "deployment", "site", "--replicas=5"]);
    up.wait_for("deployment/site", ".spec.replicas", "2");
    let before = up.value("deployment/site", ".metadata.uid");
    up.kubectl(&["delete", "deployment", "site"]);
    let after = eventually("the deployment is back", || {
        up.try_value("deployment/site", ".metadata.uid").filter(|uid| *uid != before)
    });
    assert_ne!(before, after);
    up.kubectl(&["wait", "webapp/site", "--for=condition=Ready", "--timeout=60s"]);
}

#[test]
fn deleting_a_webapp_leaves_no_object_and_no_process() {
    let up = started();
    up.kubectl(&["delete", "webapp", "site"]);
    for kind in ["deployment/site", "service/site"] {
        up.kubectl(&["wait", "--for=delete", kind, "--timeout=60s"]);
    }
    eventually("no pod is left", || {
        up.kubectl(&["get", "pods,replicasets", "-o", "name"]).is_empty().then_some(())
    });
    eventually("no process is left", || up.descendants().is_empty().then_some(()));
}

#[test]
fn a_converged_webapp_is_not_written_again() {
    let up = started();
    let revisions = || {
        up.kubectl(&[
            "get",
            "webapp/site",
            "deployment/site",
            "service/site",
            "-o",
            "jsonpath={.items[*].metadata.resourceVersion}",
        ])
    };
    let before = revisions();
    // A change that concerns nobody wakes the operator and must not lead to a write.
    up.kubectl(&["annotate", "service/site", "note=x"]);
    let noted = revisions();
    assert_ne!(before, noted);
    up.kubectl(&["annotate", "webapp/site", "note=x"]);
    let events = up.kubectl(&["events", "--for", "webapp/site"]);
    assert!(events.contains("created Deployment site"), "{events}");
    let spec_of =
        |revisions: &str| revisions.split(' ').skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(spec_of(&noted), spec_of(&revisions()));
}
