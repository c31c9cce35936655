//! Real kubectl, every version at hand, on the embedded cluster.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on may panic")]

mod running;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use running::{Up, kubectls};

/// Runs a test once per kubectl, each in a namespace-free cluster of its own.
fn with_every_kubectl(arguments: &[&str], test: impl Fn(&Up)) {
    for kubectl in kubectls() {
        let mut up = Up::start(arguments);
        test(up.with(&kubectl));
    }
}

fn deployment(name: &str, tag: &str, replicas: u32) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\n\
         spec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    \
         metadata: {{labels: {{app: {name}}}}}\n    \
         spec: {{containers: [{{name: web, image: 'homeostat.dev/hello:{tag}'}}]}}\n"
    )
}

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {tier: one}}\ndata: {color: blue}\n";

#[test]
fn get_prints_every_form() {
    with_every_kubectl(&[], |up| {
        up.apply(CONFIG);
        let table = up.kubectl(&["get", "configmaps"]);
        assert!(table.starts_with("NAME") && table.contains("settings"), "{table}");
        assert!(
            up.kubectl(&["get", "cm", "settings", "-o", "wide", "--show-labels"])
                .contains("tier=one")
        );
        assert!(up.kubectl(&["get", "cm/settings", "-o", "yaml"]).contains("color: blue"));
        assert!(up.kubectl(&["get", "cm/settings", "-o", "json"]).contains("\"color\": \"blue\""));
        assert_eq!(up.kubectl(&["get", "cm/settings", "-o", "name"]), "configmap/settings\n");
        assert_eq!(up.value("cm/settings", ".data.color"), "blue");
        assert_eq!(
            up.kubectl(&["get", "cm/settings", "-o", "go-template={{.data.color}}"]),
            "blue"
        );
        assert_eq!(
            up.kubectl(&["get", "cm/settings", "-o", "jsonpath-as-json={.data.color}"]),
            "[\n    \"blue\"\n]\n"
        );
        // Older ones do not know this form.
        let kyaml = up.try_kubectl(&["get", "cm/settings", "-o", "kyaml"]);
        let printed = String::from_utf8_lossy(&kyaml.stdout).into_owned();
        assert!(!kyaml.status.success() || printed.contains("color: \"blue\""), "{printed}");
        for (form, text) in [
            ("jsonpath-file", "{.data.color}"),
            ("go-template-file", "{{.data.color}}"),
            ("templatefile", "{{.data.color}}"),
            ("custom-columns-file", "COLOR\n.data.color"),
        ] {
            let form = format!("{form}={}", up.file("form", text));
            let printed = up.kubectl(&["get", "cm/settings", "-o", &form]);
            assert_eq!(printed.trim().lines().last(), Some("blue"), "{form}");
        }
        let columns =
            up.kubectl(&["get", "cm", "settings", "-o", "custom-columns=COLOR:.data.color"]);
        assert_eq!(columns, "COLOR\nblue\n");
        assert!(
            up.kubectl(&["get", "cm", "-l", "tier=one", "-A", "--sort-by=.metadata.name"])
                .contains("settings")
        );
        assert_eq!(
            up.kubectl(&[
                "get",
                "cm",
                "-l",
                "tier!=one",
                "-o",
                "name",
                "--field-selector=metadata.name=settings"
            ]),
            ""
        );
        assert!(up.kubectl(&["get", "--raw", "/version"]).contains("\"minor\": \"36\""));
    });
}

#[test]
fn get_watches() {
    with_every_kubectl(&[], |up| {
        up.apply(CONFIG);
        let mut watch = up
            .command(&["get", "cm", "settings", "-w", "-o", "jsonpath={.data.color}{\"\\n\"}"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "blue");
        up.apply(&CONFIG.replace("blue", "green"));
        assert_eq!(lines.next().unwrap().unwrap(), "green");
        watch.kill().unwrap();
        watch.wait().unwrap();
    });
}

#[test]
fn apply_creates_configures_and_leaves_alone() {
    with_every_kubectl(&[], |up| {
        assert_eq!(up.apply(CONFIG), "configmap/settings created\n");
        assert_eq!(up.apply(CONFIG), "configmap/settings unchanged\n");
        assert_eq!(up.apply(&CONFIG.replace("blue", "green")), "configmap/settings configured\n");
        assert_eq!(up.apply(&deployment("web", "1", 1)), "deployment.apps/web created\n");
        assert_eq!(up.apply(&deployment("web", "1", 1)), "deployment.apps/web unchanged\n");
        assert_eq!(up.apply(&deployment("web", "2", 1)), "deployment.apps/web configured\n");
    });
}

#[test]
fn server_side_apply_reports_conflicts_and_takes_over_by_force() {
    with_every_kubectl(&[], |up| {
        let file = up.file("settings.yaml", CONFIG);
        let apply = |extra: &[&str]| {
            up.try_kubectl(&[&["apply", "--server-side", "-f", &file], extra].concat())
        };
        assert!(apply(&[]).status.success());
        up.kubectl(&[
            "patch",
            "cm",
            "settings",
            "--type=merge",
            "-p",
            r#"{"data":{"color":"red"}}"#,
            "--field-manager=other",
        ]);
        let refused = apply(&[]);
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && words.contains("conflict with \"other\""), "{words}");
        assert!(apply(&["--force-conflicts"]).status.success());
        assert_eq!(up.value("cm/settings", ".data.color"), "blue");
    });
}

#[test]
fn diff_shows_what_apply_would_change() {
    with_every_kubectl(&[], |up| {
        up.apply(CONFIG);
        let same = up.file("same.yaml", CONFIG);
        assert_eq!(up.try_kubectl(&["diff", "-f", &same]).status.code(), Some(0));
        let other = up.file("other.yaml", &CONFIG.replace("blue", "green"));
        let differing = up.try_kubectl(&["diff", "-f", &other]);
        assert_eq!(differing.status.code(), Some(1), "{differing:?}");
        assert!(String::from_utf8_lossy(&differing.stdout).contains("+  color: green"));
        assert_eq!(up.value("cm/settings", ".data.color"), "blue");
    });
}

#[test]
fn create_edit_patch_label_and_annotate_change_objects() {
    with_every_kubectl(&[], |up| {
        up.kubectl(&["create", "namespace", "team"]);
        up.kubectl(&["create", "configmap", "plain", "--from-literal=a=1", "-n", "team"]);
        up.kubectl(&["create", "secret", "generic", "hidden", "--from-literal=p=w"]);
        assert_eq!(up.secret("hidden", "p"), "w");
        let again = up.try_kubectl(&["create", "namespace", "team"]);
        assert!(String::from_utf8_lossy(&again.stderr).contains("AlreadyExists"), "{again:?}");

        up.apply(CONFIG);
        let edited = up
            .command(&["edit", "cm/settings"])
            .env("KUBE_EDITOR", "sed -i s/blue/yellow/")
            .output()
            .unwrap();
        assert!(edited.status.success(), "{edited:?}");
        assert_eq!(up.value("cm/settings", ".data.color"), "yellow");
        up.kubectl(&[
            "patch",
            "cm/settings",
            "--type=json",
            "-p",
            r#"[{"op":"replace","path":"/data/color","value":"red"}]"#,
        ]);
        assert_eq!(up.value("cm/settings", ".data.color"), "red");
        up.kubectl(&["patch", "cm/settings", "-p", r#"{"data":{"size":"9"}}"#]);
        assert_eq!(up.value("cm/settings", ".data"), r#"{"color":"red","size":"9"}"#);
        up.kubectl(&["label", "cm/settings", "tier=two", "--overwrite"]);
        up.kubectl(&["annotate", "cm/settings", "note=hello"]);
        assert_eq!(up.value("cm/settings", ".metadata.labels.tier"), "two");
        up.kubectl(&["replace", "-f", &up.file("settings.yaml", CONFIG)]);
        assert_eq!(up.value("cm/settings", ".data.color"), "blue");
        let strict = up.file("strict.yaml", &CONFIG.replace("data:", "dta: {x: y}\ndata:"));
        let refused = up.try_kubectl(&["create", "-f", &strict]);
        assert!(
            String::from_utf8_lossy(&refused.stderr).contains("unknown field \"dta\""),
            "{refused:?}"
        );
    });
}

#[test]
fn a_deployment_scales_rolls_out_and_back() {
    with_every_kubectl(&[], |up| {
        up.apply(&deployment("web", "1", 1));
        up.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
        up.kubectl(&["scale", "deployment/web", "--replicas=3"]);
        up.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
        up.wait_for("deployment/web", ".status.availableReplicas", "3");
        up.apply(&deployment("web", "2", 3));
        up.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
        let history = up.kubectl(&["rollout", "history", "deployment/web"]);
        assert!(history.contains('1') && history.contains('2'), "{history}");
        up.kubectl(&["rollout", "undo", "deployment/web"]);
        up.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
        assert_eq!(
            up.value("deployment/web", ".spec.template.spec.containers[0].image"),
            "homeostat.dev/hello:1"
        );
        let described = up.kubectl(&["describe", "deployment/web"]);
        assert!(
            described.contains("ScalingReplicaSet") && described.contains("NewReplicaSet:"),
            "{described}"
        );
        let events = up.kubectl(&["events", "--for", "deployment/web"]);
        assert!(events.contains("ScalingReplicaSet"), "{events}");
        let pods = up.kubectl(&["get", "pods", "-l", "app=web"]);
        assert!(
            pods.starts_with("NAME") && pods.contains("1/1") && pods.contains("Running"),
            "{pods}"
        );
    });
}

#[test]
fn delete_cascades_as_asked() {
    with_every_kubectl(&[], |up| {
        for cascade in ["background", "foreground", "orphan"] {
            up.apply(&deployment("web", "1", 1));
            up.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
            up.kubectl(&[
                "delete",
                "deployment/web",
                &format!("--cascade={cascade}"),
                "--timeout=60s",
            ]);
            if cascade == "orphan" {
                assert!(
                    up.kubectl(&["get", "replicasets,pods", "-o", "name"])
                        .contains("replicaset.apps/web-")
                );
                up.kubectl(&["delete", "replicasets,pods", "--all", "--timeout=60s"]);
            } else {
                running::eventually("nothing is left", || {
                    up.kubectl(&["get", "replicasets,pods", "-o", "name"]).is_empty().then_some(())
                });
            }
        }
        up.kubectl(&["create", "namespace", "brief"]);
        up.kubectl(&["create", "configmap", "inside", "-n", "brief"]);
        up.kubectl(&["delete", "namespace", "brief", "--timeout=60s"]);
        assert!(!up.try_kubectl(&["get", "namespace", "brief"]).status.success());
    });
}

#[test]
fn explain_and_api_resources_know_built_in_and_custom_kinds() {
    with_every_kubectl(&["--with", "webapp"], |up| {
        up.kubectl(&[
            "wait",
            "crd/webapps.homeostat.dev",
            "--for=condition=Established",
            "--timeout=30s",
        ]);
        let explained = up.kubectl(&["explain", "deployment.spec.strategy"]);
        assert!(explained.contains("rollingUpdate"), "{explained}");
        for output in ["plaintext", "plaintext-openapiv2"] {
            let explained = up.kubectl(&["explain", "webapp.spec", "--output", output]);
            let known = explained.contains("replicas") && explained.contains("<integer>");
            assert!(known, "{explained}");
        }
        let resources = up.kubectl(&["api-resources"]);
        for name in [
            "pods",
            "deployments",
            "webapps",
            "customresourcedefinitions",
            "leases",
            "networkpolicies",
        ] {
            assert!(
                resources.lines().any(|line| line.starts_with(name)),
                "{name} is not in {resources}"
            );
        }
        assert!(up.kubectl(&["api-versions"]).contains("homeostat.dev/v1alpha1"));
    });
}

#[test]
fn logs_exec_and_describe_reach_a_running_pod() {
    with_every_kubectl(&[], |up| {
        up.apply(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: talker}\nspec: {containers: [{name: c, image: busybox, \
             command: [sh, -c, 'echo first; echo second; exec sleep 3600'], env: [{name: MOOD, value: fine}]}]}\n",
        );
        up.kubectl(&["wait", "pod/talker", "--for=condition=Ready", "--timeout=60s"]);
        running::eventually("both lines are there", || {
            (up.kubectl(&["logs", "talker"]) == "first\nsecond\n").then_some(())
        });
        assert_eq!(up.kubectl(&["logs", "talker", "--tail=1"]), "second\n");
        assert_eq!(up.kubectl(&["exec", "talker", "--", "sh", "-c", "echo $MOOD"]), "fine\n");
        assert_eq!(
            up.pipe(&["exec", "-i", "talker", "--", "cat"], "through and back"),
            "through and back"
        );
        assert_eq!(
            up.try_kubectl(&["exec", "talker", "--", "sh", "-c", "exit 3"]).status.code(),
            Some(3)
        );
        let described = up.kubectl(&["describe", "pod", "talker"]);
        assert!(described.contains("Started") && described.contains("Running"), "{described}");

        let mut follow =
            up.command(&["logs", "-f", "talker"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "first");
        up.kubectl(&["delete", "pod", "talker", "--now", "--timeout=60s"]);
        assert_eq!(lines.next().unwrap().unwrap(), "second");
        assert!(lines.next().is_none(), "the stream ends with the container");
        follow.wait().unwrap();
    });
}

#[test]
fn an_image_that_is_not_in_the_catalogue_says_what_to_do() {
    let up = Up::start(&[]);
    up.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: strange}\nspec: {containers: [{name: c, image: 'nginx:1'}]}\n");
    let message = running::eventually("it waits with a reason", || {
        let reason =
            up.try_value("pod/strange", ".status.containerStatuses[0].state.waiting.reason")?;
        let known = reason == "ErrImagePull" || reason == "ImagePullBackOff";
        known.then(|| up.value("pod/strange", ".status.containerStatuses[0].state.waiting.message"))
    });
    assert!(message.contains("busybox") && message.contains("homeostat.dev/hello"), "{message}");
}
