//! What is refused in a Pod, and in whose words.

use serde_json::{Value, json};

use super::super::report::Report;
use super::{pod, replica_template, status};

/// What is said of a Pod with this spec on top of what every Pod has.
fn said(changes: &Value) -> Vec<String> {
    let mut spec = json!({
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "containers": [container()],
    });
    for (field, value) in changes.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let mut report = Report::default();
    pod(&json!({"metadata": {"name": "x"}, "spec": spec}), None, &mut report);
    report.errors.iter().map(ToString::to_string).collect()
}

fn container() -> Value {
    json!({
        "name": "c",
        "image": "i",
        "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File",
    })
}

fn container_with(field: &str, value: Value) -> Value {
    let mut container = container();
    container[field] = value;
    json!({"containers": [container]})
}

#[test]
fn a_pod_that_is_right_is_not_spoken_of() {
    let spec = json!({
        "volumes": [
            {"name": "v", "emptyDir": {}},
            {"name": "p", "projected": {"sources": [
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                {"downwardAPI": {"items": [{"path": "l", "fieldRef": {
                    "apiVersion": "v1", "fieldPath": "metadata.labels['a']"}}]}},
            ]}},
        ],
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "a", "labelSelector": {"matchLabels": {"a": "b"}}},
        ]}},
        "tolerations": [{"operator": "Exists"}],
    });
    assert_eq!(said(&spec), [""; 0]);
}

#[test]
fn one_mistake_is_one_sentence_at_its_place() {
    let probe =
        json!({"httpGet": {"path": "/", "port": 70000, "scheme": "HTTP"}, "successThreshold": 1});
    for (spec, expected) in [
        (
            json!({"volumes": [{"name": "v", "emptyDir": {}, "nfs": {}}]}),
            "spec.volumes[0].nfs: Forbidden: may not specify more than 1 volume type",
        ),
        (
            json!({"volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 4000}}]}),
            "spec.volumes[0].secret.defaultMode: Invalid value: 4000: must be a number between 0 \
             and 0777 (octal), both inclusive",
        ),
        (
            container_with("livenessProbe", probe),
            "spec.containers[0].livenessProbe.httpGet.port: Invalid value: 70000: must be between \
             1 and 65535, inclusive",
        ),
        (
            container_with("resources", json!({"claims": [{"name": "d"}]})),
            "spec.containers[0].resources.claims[0]: Not found: \"d\": must be one of the names in \
             pod.spec.resourceClaims which is empty",
        ),
        (
            container_with("env", json!([{"name": "E", "valueFrom": {}}])),
            "spec.containers[0].env[0].valueFrom: Invalid value: \"\": must specify one of: \
             `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        (
            json!({"topologySpreadConstraints": [{"topologyKey": "a", "maxSkew": 0,
                "whenUnsatisfiable": "DoNotSchedule"}]}),
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (
            json!({"hostUsers": false, "hostPID": true}),
            "spec.HostPID: Forbidden: when `hostUsers` is false",
        ),
        (
            json!({"os": {"name": "linux"}, "securityContext": {"windowsOptions": {}}}),
            "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a \
             linux pod",
        ),
    ] {
        assert_eq!(said(&spec), [expected]);
    }
}

#[test]
fn only_helpers_among_the_first_containers_are_probed() {
    let mut first = container();
    first["name"] = json!("first");
    first["livenessProbe"] = json!({"exec": {"command": ["true"]}, "successThreshold": 1});
    let refused = said(&json!({"initContainers": [first]}));
    assert_eq!(
        refused,
        ["spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers \
          without restartPolicy=Always"]
    );
    first["restartPolicy"] = json!("Always");
    assert_eq!(said(&json!({"initContainers": [first]})), [""; 0]);
}

#[test]
fn volumes_of_claims_stand_in_front_of_those_of_the_template() {
    let mut mounting = container();
    mounting["volumeMounts"] = json!([{"name": "data", "mountPath": "/d"}]);
    let template = json!({"spec": {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "hostname": "Any Name",
        "containers": [mounting],
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "v"}],
    }});
    let mut report = Report::default();
    replica_template(&template, "template", &["data"], &mut report);
    let said: Vec<String> = report.errors.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["template.spec.volumes[1]: Required value: must specify a volume type"]);
}

/// What is said of that status of a Pod that has been put to a node.
fn said_of_status(spec: &Value, status: &Value, before: &Value) -> Vec<String> {
    let mut report = Report::default();
    let pod = |status| json!({"spec": spec, "status": status});
    status::update(&pod(status), &pod(before), &mut report);
    report.errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_status_says_what_can_be() {
    let spec = json!({"nodeName": "n", "restartPolicy": "Always", "containers": [{"name": "c"}]});
    let one = |field: &str, value: Value| {
        let said = said_of_status(&spec, &json!({field: value}), &json!({}));
        said.join("; ")
    };
    assert_eq!(one("conditions", json!([{"type": "Ready"}, {"type": "example.com/a"}])), "");
    assert_eq!(
        one("nominatedNodeName", json!("m")),
        "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
    );
    assert_eq!(
        one("qosClass", json!("Burstable")),
        "status.qosClass: Invalid value: \"Burstable\": field is immutable"
    );
    assert_eq!(
        one("hostIPs", json!([{"ip": "10.0.0.1"}])),
        "status.hostIPs[0].ip: Invalid value: \"10.0.0.1\": must be equal to `hostIP`"
    );
    assert_eq!(one("podIPs", json!([{"ip": "10.0.0.1"}, {"ip": "::1"}])), "");
    assert_eq!(
        one("podIPs", json!([{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}])),
        "status.podIPs: Invalid value: [{\"IP\":\"10.0.0.1\"},{\"IP\":\"10.0.0.2\"}]: may specify no \
         more than one IP for each IP family"
    );
    assert_eq!(
        one("containerStatuses", json!([{"name": "c", "user": {"linux": {"uid": -1}}}])),
        "status.containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and \
         2147483647, inclusive"
    );
}

#[test]
fn a_container_that_ended_for_good_stays_ended() {
    let ended = |code: i32| json!({"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": code}}}]});
    let runs = json!({"containerStatuses": [{"name": "c", "state": {"running": {}}}]});
    let may = |policy: &str, own: Value, code: i32| {
        let mut container = json!({"name": "c"});
        container.as_object_mut().unwrap().extend(own.as_object().cloned().unwrap());
        let spec = json!({"restartPolicy": policy, "containers": [container]});
        said_of_status(&spec, &runs, &ended(code)).is_empty()
    };
    assert!(may("Always", json!({}), 0) && !may("Never", json!({}), 1));
    assert!(may("OnFailure", json!({}), 1) && !may("OnFailure", json!({}), 0));
    assert!(may("Never", json!({"restartPolicy": "Always"}), 0));
    let rule = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [7]}}]);
    let own = json!({"restartPolicy": "Never", "restartPolicyRules": rule});
    assert!(may("Never", own.clone(), 7) && !may("Never", own, 8));
}
