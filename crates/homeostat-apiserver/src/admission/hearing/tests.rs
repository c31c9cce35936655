//! Writes whose policies take long, step by step: an attempt, what is heard, another attempt.

use std::sync::Arc;

use homeostat_env::Env;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::auth::User;
use crate::registry::options::{DeleteOptions, WriteOptions};
use crate::registry::{Body, Registry, Target, Written};
use crate::server::{Server, ServerConfig};
use crate::status::Status;

const POLICIES: &str = "admissionregistration.k8s.io";
const ROLES: &str = "rbac.authorization.k8s.io";
/// Takes longer than anybody may while others wait.
const LONG: &str = "lists.range(9000).all(x, x >= 0)";

fn target(registry: &Registry, group: &str, plural: &str, name: &str) -> Target {
    let kind = registry.catalogue().find(group, "v1", plural).cloned().unwrap();
    let namespace = if kind.namespaced { "default" } else { "" };
    Target { kind, namespace: namespace.to_owned(), name: name.to_owned() }
}

fn create(
    registry: &Registry,
    (group, plural): (&str, &str),
    value: Value,
    options: &WriteOptions,
) -> Result<Written, Status> {
    let body = Body::from(value);
    registry.create(&target(registry, group, plural, ""), body, options)
}

/// Makes a ConfigMap, once.
fn attempt(registry: &Registry, name: &str, options: &WriteOptions) -> Result<Written, Status> {
    options.inquiry.begin();
    create(registry, ("", "configmaps"), json!({"metadata": {"name": name}}), options)
}

/// Hears whoever is to be heard, and says how many that were.
fn hear(registry: &Registry, options: &WriteOptions) -> usize {
    let hearings = options.inquiry.hearings();
    let count = hearings.len();
    hearings.into_iter().for_each(|hearing| options.inquiry.hold(&registry.rbac, hearing));
    count
}

/// A registry with policies of these expressions about ConfigMaps.
fn registry(expressions: &[&str]) -> Arc<Registry> {
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    let registry = Server::new(ServerConfig::new(env)).registry().clone();
    let options = WriteOptions::default();
    for (number, expression) in expressions.iter().enumerate() {
        let name = format!("p{number}");
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["configmaps"]});
        let policy = json!({"metadata": {"name": name}, "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression}]}});
        create(&registry, (POLICIES, "validatingadmissionpolicies"), policy, &options).unwrap();
        let binding = json!({"metadata": {"name": name}, "spec": {
            "policyName": name, "validationActions": ["Deny"]}});
        let bindings = (POLICIES, "validatingadmissionpolicybindings");
        create(&registry, bindings, binding, &options).unwrap();
    }
    registry
}

#[test]
fn others_write_while_a_policy_takes_long() {
    let only_slow = format!("object.metadata.name != 'slow' || {LONG}");
    let (registry, slow) = (registry(&[&only_slow]), WriteOptions::default());
    assert!(attempt(&registry, "slow", &slow).is_err());
    let hearings = slow.inquiry.hearings();
    assert_eq!(hearings.len(), 1);
    // The policy could be heard for as long as it likes from here on.
    let other = attempt(&registry, "other", &WriteOptions::default()).unwrap();
    hearings.into_iter().for_each(|hearing| slow.inquiry.hold(&registry.rbac, hearing));
    let slow = attempt(&registry, "slow", &slow).unwrap();
    assert!(other.object.revision < slow.object.revision);
}

#[test]
fn a_policy_is_heard_whoever_holds_the_pen() {
    let (registry, options) = (registry(&[LONG]), WriteOptions::default());
    assert!(attempt(&registry, "a", &options).is_err());
    {
        let _pen = registry.writer();
        assert_eq!(hear(&registry, &options), 1);
    }
    attempt(&registry, "a", &options).unwrap();
}

#[test]
fn all_policies_that_take_long_are_heard_at_once() {
    let (registry, options) = (registry(&[LONG, LONG, LONG]), WriteOptions::default());
    assert!(attempt(&registry, "a", &options).is_err());
    assert_eq!(hear(&registry, &options), 3);
    attempt(&registry, "a", &options).unwrap();
}

#[test]
fn many_policies_that_take_a_moment_each_keep_others_waiting_for_a_moment_only() {
    let moment = "lists.range(300).all(x, x >= 0)";
    let (registry, options) = (registry(&[moment; 40]), WriteOptions::default());
    assert!(attempt(&registry, "a", &options).is_err());
    let put_off = hear(&registry, &options);
    assert!((1..40).contains(&put_off), "{put_off}");
    attempt(&registry, "a", &options).unwrap();
}

#[test]
fn what_was_heard_is_about_that_object_only() {
    let long = format!("{LONG} && object.metadata.name != 'b'");
    let (registry, options) = (registry(&[&long]), WriteOptions::default());
    assert!(attempt(&registry, "a", &options).is_err());
    hear(&registry, &options);
    assert!(attempt(&registry, "b", &options).is_err());
    assert_eq!(hear(&registry, &options), 1);
    let refused = attempt(&registry, "b", &options).unwrap_err();
    assert_eq!((refused.code, hear(&registry, &options)), (422, 0));
}

#[test]
fn a_policy_is_heard_again_when_the_authorizer_changed_its_mind() {
    let asks = "authorizer.group('').resource('secrets').check('get').allowed()";
    let registry = registry(&[asks]);
    let role = json!({"metadata": {"name": "readers"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
    let subject = json!({"apiGroup": ROLES, "kind": "User", "name": "ann"});
    let binding = json!({"metadata": {"name": "readers"}, "subjects": [subject],
        "roleRef": {"apiGroup": ROLES, "kind": "ClusterRole", "name": "readers"}});
    let by_server = WriteOptions::default();
    create(&registry, (ROLES, "clusterroles"), role, &by_server).unwrap();
    create(&registry, (ROLES, "clusterrolebindings"), binding, &WriteOptions::default()).unwrap();
    let ann = Arc::new(User::new("ann", [] as [&str; 0]));
    let options = WriteOptions { user: Some(ann), ..WriteOptions::default() };
    assert!(attempt(&registry, "a", &options).is_err());
    assert_eq!(hear(&registry, &options), 1);
    let binding = target(&registry, ROLES, "clusterrolebindings", "readers");
    registry.delete(&binding, &DeleteOptions::default()).unwrap();
    assert!(attempt(&registry, "a", &options).is_err());
    assert_eq!(hear(&registry, &options), 1);
    assert_eq!(attempt(&registry, "a", &options).unwrap_err().code, 422);
}

#[test]
fn a_write_that_never_gets_to_its_end_is_decided_at_once() {
    let (registry, options) = (registry(&[LONG]), WriteOptions::default());
    let attempts = (0..100).take_while(|_| attempt(&registry, "a", &options).is_err());
    assert_eq!(attempts.count(), 32);
}
