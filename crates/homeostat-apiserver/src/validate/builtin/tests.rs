//! Built-in kinds through the whole path: shape, defaults, rules.

use serde_json::{Value, json};

use crate::kinds::{Kind, builtin};
use crate::{decode, default, validate};

fn kind(name: &str) -> &'static Kind {
    builtin().iter().find(|kind| kind.kind == name).unwrap()
}

/// The object as it would be stored.
fn filled(name: &str, mut value: Value) -> Value {
    value["metadata"]["name"] = json!("x");
    if kind(name).namespaced {
        value["metadata"]["namespace"] = json!("default");
    }
    decode::typed(kind(name), &mut value).unwrap();
    default::builtin(kind(name), &mut value);
    value
}

fn errors(name: &str, value: &Value, old: Option<&Value>) -> Vec<String> {
    let kind = kind(name);
    let mut errors = validate::object(kind, value, old);
    errors.extend(old.into_iter().flat_map(|old| validate::change(kind, "", value, old)));
    errors.iter().map(ToString::to_string).collect()
}

fn deployment() -> Value {
    filled(
        "Deployment",
        json!({"spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "a", "image": "busybox:1"}]},
            },
        }}),
    )
}

#[test]
fn a_plain_deployment_gets_the_defaults_clients_know() {
    let deployment = deployment();
    assert_eq!(errors("Deployment", &deployment, None), Vec::<String>::new());
    assert_eq!(
        deployment["spec"],
        json!({
            "replicas": 1,
            "selector": {"matchLabels": {"app": "x"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {
                    "containers": [{
                        "name": "a",
                        "image": "busybox:1",
                        "imagePullPolicy": "IfNotPresent",
                        "resources": {},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                    }],
                    "restartPolicy": "Always",
                    "terminationGracePeriodSeconds": 30,
                    "dnsPolicy": "ClusterFirst",
                    "securityContext": {},
                    "schedulerName": "default-scheduler",
                },
            },
        })
    );
    assert_eq!(deployment["status"], json!({}));
}

#[test]
fn defaults_fill_once_and_then_change_nothing() {
    let once = deployment();
    let mut twice = once.clone();
    default::builtin(kind("Deployment"), &mut twice);
    assert_eq!(once, twice);
}

#[test]
fn a_selector_must_find_the_template_and_stay() {
    let old = deployment();
    let mut new = old.clone();
    new["spec"]["template"]["metadata"]["labels"] = json!({"app": "y"});
    assert_eq!(
        errors("Deployment", &new, None),
        [
            "spec.template.metadata.labels: Invalid value: {\"app\":\"y\"}: `selector` does not match \
          template `labels`"
        ]
    );
    new["spec"]["selector"] = json!({"matchLabels": {"app": "y"}});
    assert_eq!(
        errors("Deployment", &new, Some(&old)),
        ["spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"y\"}}: field is immutable"]
    );
}

#[test]
fn containers_are_named_once_and_have_an_image() {
    let pod = filled(
        "Pod",
        json!({"spec": {"containers": [
            {"name": "a", "image": "i", "ports": [{"containerPort": 70000}]},
            {"name": "a"},
            {"name": "B", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        ]}}),
    );
    let found = errors("Pod", &pod, None);
    assert_eq!(
        found[..4],
        [
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            "spec.containers[1].image: Required value",
            "spec.containers[1].name: Duplicate value: \"a\"",
            found[3].as_str(),
        ]
    );
    assert!(found[3].starts_with("spec.containers[2].name: Invalid value: \"B\""));
    assert_eq!(found[4], "spec.containers[2].volumeMounts[0].name: Not found: \"v\"");
    assert_eq!(
        errors("Pod", &filled("Pod", json!({"spec": {"containers": []}})), None),
        ["spec.containers: Required value"]
    );
}

#[test]
fn of_a_running_pod_only_the_image_and_a_few_others_may_change() {
    let old = filled("Pod", json!({"spec": {"containers": [{"name": "a", "image": "i"}]}}));
    let mut new = old.clone();
    new["spec"]["containers"][0]["image"] = json!("j");
    assert!(errors("Pod", &new, Some(&old)).is_empty());
    new["spec"]["containers"][0]["command"] = json!(["x"]);
    let found = errors("Pod", &new, Some(&old));
    assert!(found[0].starts_with("spec: Forbidden: pod updates may not change fields other than"));
}

#[test]
fn limits_become_requests_of_pods_and_quantities_are_canonical() {
    let pod = filled(
        "Pod",
        json!({"spec": {"containers": [
            {"name": "a", "image": "i", "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}},
        ]}}),
    );
    let amounts = json!({"cpu": "500m", "memory": "1Gi"});
    assert_eq!(
        pod["spec"]["containers"][0]["resources"],
        json!({"limits": amounts, "requests": amounts})
    );
    let over = filled(
        "Pod",
        json!({"spec": {"containers": [
            {"name": "a", "image": "i", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}},
        ]}}),
    );
    assert_eq!(
        errors("Pod", &over, None),
        [
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"
        ]
    );
}

#[test]
fn a_job_never_restarts_always_and_keeps_its_template() {
    let job = |policy: &str, image: &str| {
        let containers = json!([{"name": "a", "image": image}]);
        let spec = json!({"restartPolicy": policy, "containers": containers});
        filled(
            "Job",
            json!({"spec": {"manualSelector": true, "selector": {}, "template": {"spec": spec}}}),
        )
    };
    assert!(errors("Job", &job("Never", "i"), None).is_empty());
    assert_eq!(
        errors("Job", &job("Always", "i"), None),
        [
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""
        ]
    );
    let changed = errors("Job", &job("Never", "j"), Some(&job("Never", "i")));
    assert!(
        changed[0].starts_with("spec.template: Invalid value: ")
            && changed[0].ends_with("field is immutable")
    );
}

#[test]
fn a_stateful_set_mounts_the_claims_it_will_make() {
    let set = filled(
        "StatefulSet",
        json!({"spec": {
            "serviceName": "x",
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [
                {"name": "a", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]},
            ]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            }}],
        }}),
    );
    assert_eq!(errors("StatefulSet", &set, None), Vec::<String>::new());
    let mut other = set.clone();
    other["spec"]["serviceName"] = json!("y");
    assert!(
        errors("StatefulSet", &other, Some(&set))[0]
            .starts_with("spec: Forbidden: updates to statefulset")
    );
    other["spec"]["serviceName"] = json!("x");
    other["spec"]["replicas"] = json!(3);
    assert!(errors("StatefulSet", &other, Some(&set)).is_empty());
}

#[test]
fn a_service_needs_ports_and_keeps_its_address() {
    let service = filled("Service", json!({"spec": {"ports": [{"port": 80}, {"port": 80}]}}));
    assert_eq!(
        errors("Service", &service, None),
        [
            "spec.ports[0].name: Required value",
            "spec.ports[1].name: Required value",
            "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}",
        ]
    );
    let with =
        |ip: &str| filled("Service", json!({"spec": {"clusterIP": ip, "ports": [{"port": 80}]}}));
    assert_eq!(
        errors("Service", &with("10.0.0.2"), Some(&with("10.0.0.1"))),
        ["spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"]
    );
    assert_eq!(
        errors("Service", &filled("Service", json!({"spec": {}})), None),
        ["spec.ports: Required value"]
    );
}

#[test]
fn what_is_marked_immutable_stays() {
    let map = |value: &str, fixed: bool| {
        filled("ConfigMap", json!({"data": {"k": value}, "immutable": fixed}))
    };
    assert!(errors("ConfigMap", &map("b", false), Some(&map("a", false))).is_empty());
    assert_eq!(
        errors("ConfigMap", &map("b", true), Some(&map("a", true))),
        ["data: Forbidden: field is immutable when `immutable` is set"]
    );
}

#[test]
fn a_claim_needs_a_mode_and_a_size() {
    assert_eq!(
        errors(
            "PersistentVolumeClaim",
            &filled("PersistentVolumeClaim", json!({"spec": {}})),
            None
        ),
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ]
    );
}

#[test]
fn wrong_types_and_unknown_fields_of_built_in_kinds_are_found() {
    let mut wrong = json!({"spec": {"replicas": "three"}});
    let error = decode::typed(kind("Deployment"), &mut wrong).unwrap_err().to_string();
    assert_eq!(
        error,
        "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal \
         string into Go struct field DeploymentSpec.spec.replicas of type int32"
    );
    let mut odd =
        json!({"spec": {"replicas": 1, "odd": {}}, "metadata": {"creationTimestamp": null}});
    assert_eq!(decode::typed(kind("Deployment"), &mut odd).unwrap().unknown, ["spec.odd"]);
    assert_eq!(odd, json!({"spec": {"replicas": 1}, "metadata": {}}));
}

#[test]
fn every_built_in_kind_can_be_defaulted_twice_with_one_result() {
    for kind in builtin() {
        let mut once = json!({"metadata": {"name": "x"}});
        default::builtin(kind, &mut once);
        let mut twice = once.clone();
        default::builtin(kind, &mut twice);
        assert_eq!(once, twice, "{}", kind.kind);
    }
}

#[test]
fn a_quota_limits_what_it_knows_in_whole_numbers_and_within_its_scopes() {
    let quota = |hard: Value, scopes: Value| {
        filled("ResourceQuota", json!({"spec": {"hard": hard, "scopes": scopes}}))
    };
    let good = quota(json!({"pods": "3", "cpu": "500m", "count/jobs.batch": "1"}), json!([]));
    assert_eq!(errors("ResourceQuota", &good, None), Vec::<String>::new());
    assert_eq!(
        errors("ResourceQuota", &quota(json!({"storage": "1Gi", "pods": "500m"}), json!([])), None),
        [
            "spec.hard[storage]: Invalid value: \"storage\": must be a standard resource for quota",
            "spec.hard[pods]: Invalid value: \"500m\": must be an integer",
        ]
    );
    let best = quota(json!({"pods": "1"}), json!(["BestEffort"]));
    let mixed = quota(json!({"pods": "1"}), json!(["BestEffort", "NotBestEffort"]));
    let shown = "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]";
    assert_eq!(
        errors("ResourceQuota", &mixed, Some(&best)),
        [format!("{shown}: conflicting scopes"), format!("{shown}: field is immutable")]
    );
    assert_eq!(
        errors("ResourceQuota", &quota(json!({"cpu": "1"}), json!(["BestEffort"])), None),
        ["spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource"]
    );
}

#[test]
fn a_network_policy_excludes_only_what_it_includes() {
    let policy = |rule: Value| {
        filled("NetworkPolicy", json!({"spec": {"podSelector": {}, "ingress": [rule]}}))
    };
    let block = |cidr: &str, except: &str| {
        policy(json!({"from": [{"ipBlock": {"cidr": cidr, "except": [except]}}]}))
    };
    for (cidr, except, fits) in [
        ("10.0.0.0/8", "10.1.0.0/16", true),
        ("0.0.0.0/0", "10.0.0.0/8", true),
        ("::/0", "fe80::/64", true),
        ("10.0.0.0/8", "10.0.0.0/8", false),
        ("10.0.0.0/8", "11.0.0.0/16", false),
        ("::/0", "10.0.0.0/8", false),
    ] {
        let found = errors("NetworkPolicy", &block(cidr, except), None);
        assert_eq!(found.is_empty(), fits, "{cidr} without {except}: {found:?}");
    }
    let ports = policy(json!({"ports": [{"port": 80, "endPort": 79}]}));
    assert_eq!(
        errors("NetworkPolicy", &ports, None),
        [
            "spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`"
        ]
    );
}

#[test]
fn a_job_counts_success_only_of_indexes_it_has() {
    let job = |mode: &str, indexes: &str| {
        filled(
            "Job",
            json!({"spec": {
                "manualSelector": true, "selector": {}, "completionMode": mode, "completions": 5,
                "successPolicy": {"rules": [{"succeededIndexes": indexes}]},
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "i"}]}},
            }}),
        )
    };
    assert_eq!(errors("Job", &job("Indexed", "0,2-4"), None), Vec::<String>::new());
    for (indexes, why) in [
        ("5", "too large index: \"5\""),
        ("2,2", "non-increasing order, previous: 2, current: 2"),
        ("x", "cannot convert string to integer for index: \"x\""),
    ] {
        let found = errors("Job", &job("Indexed", indexes), None);
        assert!(found.len() == 1 && found[0].ends_with(why), "{indexes}: {found:?}");
    }
    let found = errors("Job", &job("NonIndexed", "0"), None);
    assert!(found[0].ends_with("requires indexed completion mode"), "{found:?}");
}

#[test]
fn what_every_cluster_relies_on_in_priorities_is_fixed() {
    let named = |kind: &str, name: &str, spec: Value| {
        let mut object = filled(kind, json!({"spec": spec}));
        object["metadata"]["name"] = json!(name);
        errors(kind, &object, None)
    };
    let level = "PriorityLevelConfiguration";
    for (kind, name) in [
        ("FlowSchema", "exempt"),
        ("FlowSchema", "catch-all"),
        (level, "exempt"),
        (level, "catch-all"),
    ] {
        let spec = crate::bootstrap::fixed_priority(kind, name).unwrap();
        assert_eq!(named(kind, name, spec), Vec::<String>::new(), "{kind} {name}");
    }
    let lent = json!({"type": "Exempt", "exempt": {"lendablePercent": 5}});
    assert_eq!(named(level, "exempt", lent), Vec::<String>::new());
    let mut other = crate::bootstrap::fixed_priority("FlowSchema", "catch-all").unwrap();
    other["matchingPrecedence"] = json!(9000);
    let found = named("FlowSchema", "catch-all", other);
    assert!(found.len() == 1 && found[0].ends_with("must equal the fixed value"), "{found:?}");
}
