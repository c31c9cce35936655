use kube::Client;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use super::{api, client, cluster_api, create, object};

const GROUP: &str = "admissionregistration.k8s.io";

async fn policy(client: &Client, spec: Value, binding: Value) {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"}, "spec": spec,
    });
    create(&cluster_api(client, GROUP, "ValidatingAdmissionPolicy"), policy).await;
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"}, "spec": binding,
    });
    create(&cluster_api(client, GROUP, "ValidatingAdmissionPolicyBinding"), binding).await;
}

fn maps() -> Value {
    json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]})
}

fn map(name: &str, size: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"size": size}})
}

async fn refused(client: &Client, value: Value) -> kube::core::Status {
    let result = api(client, "", "ConfigMap").create(&PostParams::default(), &object(value)).await;
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_bound_policy_refuses_what_its_expressions_deny() {
    let client = client();
    let spec = json!({
        "matchConstraints": maps(),
        "matchConditions": [{"name": "not-exempt", "expression": "object.metadata.name != 'exempt'"}],
        "variables": [{"name": "size", "expression": "int(object.data.size)"}],
        "validations": [
            {"expression": "variables.size < 10", "reason": "Forbidden",
                "messageExpression": "'size ' + string(variables.size) + ' in ' + request.namespace"},
        ],
    });
    policy(&client, spec, json!({"policyName": "p", "validationActions": ["Deny"]})).await;
    let maps = api(&client, "", "ConfigMap");
    create(&maps, map("small", "3")).await;
    create(&maps, map("exempt", "30")).await;
    let status = refused(&client, map("large", "11")).await;
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    assert_eq!(
        status.message,
        "configmaps \"large\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied \
         request: size 11 in default"
    );
    // An expression without an answer refuses, too.
    let status = refused(&client, map("odd", "many")).await;
    assert_eq!(status.code, 422);
    let bindings = cluster_api(&client, GROUP, "ValidatingAdmissionPolicyBinding");
    bindings.delete("b", &DeleteParams::default()).await.unwrap();
    create(&maps, map("large", "11")).await;
}

#[tokio::test(start_paused = true)]
async fn parameters_are_read_where_the_binding_says() {
    let client = client();
    let maps = api(&client, "", "ConfigMap");
    create(
        &maps,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits"},
        "data": {"most": "5"}}),
    )
    .await;
    let spec = json!({
        "matchConstraints": self::maps(),
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "int(object.data.size) <= int(params.data.most)"}],
    });
    let binding = json!({
        "policyName": "p", "validationActions": ["Deny"],
        "paramRef": {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"},
    });
    policy(&client, spec, binding).await;
    create(&maps, map("a", "5")).await;
    let status = refused(&client, map("b", "6")).await;
    assert!(status.message.ends_with(
        "denied request: failed expression: int(object.data.size) <= int(params.data.most)"
    ));
    maps.delete("limits", &DeleteParams::default()).await.unwrap();
    let status = refused(&client, map("b", "1")).await;
    assert!(status.message.contains("no params found for policy binding"));
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_only_warns_lets_pass() {
    let client = client();
    let spec = json!({
        "matchConstraints": maps(),
        "validations": [{"expression": "object.data.size == '1'", "message": "one is best"}],
    });
    policy(&client, spec, json!({"policyName": "p", "validationActions": ["Warn"]})).await;
    let request = http::Request::post("/api/v1/namespaces/default/configmaps")
        .header("content-type", "application/json")
        .body(kube::client::Body::from(map("a", "2").to_string().into_bytes()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(
        response.headers()["warning"],
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': one is best\""
    );
}

/// The answer to a user who makes a ConfigMap: its code, and what it says.
async fn made_by(client: &Client, user: &str, value: Value) -> (u16, String) {
    let request = http::Request::post("/api/v1/namespaces/default/configmaps")
        .header("content-type", "application/json")
        .header("impersonate-user", user)
        .body(kube::client::Body::from(value.to_string().into_bytes()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    (code, body["message"].as_str().unwrap_or_default().to_owned())
}

/// Lets users make ConfigMaps, and one of them read Secrets.
async fn roles(client: &Client) {
    const RBAC: &str = "rbac.authorization.k8s.io";
    let role = |name: &str, resource: &str, verb: &str| {
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": [resource], "verbs": [verb]}]})
    };
    let binding = |role: &str, kind: &str, users: &[&str]| {
        let subjects: Vec<Value> = users
            .iter()
            .map(|name| match kind {
                "User" => json!({"apiGroup": RBAC, "kind": "User", "name": name}),
                _ => json!({"kind": kind, "namespace": "default", "name": name}),
            })
            .collect();
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": role}, "subjects": subjects,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}})
    };
    let (roles, bindings) =
        (cluster_api(client, RBAC, "ClusterRole"), cluster_api(client, RBAC, "ClusterRoleBinding"));
    create(&roles, role("makers", "configmaps", "create")).await;
    create(&roles, role("readers", "secrets", "get")).await;
    create(&roles, role("robots", "pods", "list")).await;
    create(&bindings, binding("makers", "User", &["ann", "bob"])).await;
    create(&bindings, binding("readers", "User", &["ann"])).await;
    create(&bindings, binding("robots", "ServiceAccount", &["robot"])).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_asks_the_authorizer_who_may_do_what() {
    let client = client();
    roles(&client).await;
    let check = "authorizer.group('').resource('secrets').namespace('default').check('get')";
    let spec = json!({
        "matchConstraints": maps(),
        "variables": [
            {"name": "may", "expression": check},
            {"name": "own", "expression": "authorizer.requestResource"},
        ],
        "validations": [
            {"expression": "variables.may.allowed() && !variables.may.errored()",
                "messageExpression": "'not ' + variables.may.reason()"},
            {"expression": "variables.own.check('create').reason() == 'RBAC: allowed by \
                ClusterRoleBinding \"makers\" of ClusterRole \"makers\" to User \"ann\"'",
                "message": "own"},
            {"expression": "!variables.own.name('x').check('delete').allowed()"},
            {"expression": "authorizer.serviceAccount('default', 'robot').group('')\
                .resource('pods').check('list').allowed()"},
            {"expression": "!authorizer.serviceAccount('default', 'x').path('/metrics')\
                .check('get').allowed()"},
        ],
    });
    policy(&client, spec, json!({"policyName": "p", "validationActions": ["Deny"]})).await;
    assert_eq!(made_by(&client, "ann", map("a", "1")).await.0, 201);
    let (code, message) = made_by(&client, "bob", map("b", "1")).await;
    assert_eq!(code, 422);
    // Messages have nobody to ask.
    assert!(
        message.ends_with("failed expression: variables.may.allowed() && !variables.may.errored()"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn conditions_ask_the_authorizer_too() {
    let client = client();
    roles(&client).await;
    let spec = json!({
        "matchConstraints": maps(),
        "matchConditions": [{"name": "c", "expression":
            "!authorizer.group('').resource('secrets').check('get').allowed()"}],
        "validations": [{"expression": "false"}],
    });
    policy(&client, spec, json!({"policyName": "p", "validationActions": ["Deny"]})).await;
    assert_eq!(made_by(&client, "ann", map("a", "1")).await.0, 201);
    assert_eq!(made_by(&client, "bob", map("b", "1")).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn an_annotation_without_a_value_refuses_even_where_denials_only_warn() {
    let spec = |failure: &str| {
        json!({
            "failurePolicy": failure,
            "matchConstraints": maps(),
            "validations": [{"expression": "false", "message": "warned"}],
            "auditAnnotations": [{"key": "k", "valueExpression": "string(int(object.data.size))"}],
        })
    };
    for (failure, expected) in [("Fail", 422), ("Ignore", 201)] {
        let client = client();
        let binding = json!({"policyName": "p", "validationActions": ["Warn"]});
        policy(&client, spec(failure), binding).await;
        let request = http::Request::post("/api/v1/namespaces/default/configmaps")
            .header("content-type", "application/json")
            .body(kube::client::Body::from(map("a", "x").to_string().into_bytes()))
            .unwrap();
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), expected);
        assert!(response.headers()["warning"].to_str().unwrap().ends_with("'b': warned\""));
    }
}

/// Costs more than an expression may while others wait.
const LONG: &str = "lists.range(9000).all(x, x >= 0)";

#[tokio::test(start_paused = true)]
async fn policies_that_take_long_decide_like_others() {
    let client = client();
    let spec = json!({
        "matchConstraints": maps(),
        "matchConditions": [{"name": "c", "expression": format!("object.metadata.name != 'exempt' && {LONG}")}],
        "variables": [{"name": "long", "expression": LONG}],
        "validations": [{"expression": "variables.long && int(object.data.size) < 10",
            "messageExpression": format!("{LONG} ? 'too large' : ''")}],
    });
    policy(&client, spec, json!({"policyName": "p", "validationActions": ["Deny"]})).await;
    let api = api(&client, "", "ConfigMap");
    create(&api, map("small", "3")).await;
    create(&api, map("exempt", "30")).await;
    let status = refused(&client, map("large", "11")).await;
    assert_eq!(
        status.message,
        "configmaps \"large\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied \
         request: too large"
    );
}

#[tokio::test(start_paused = true)]
async fn mutations_that_take_long_are_made_one_after_the_other() {
    let client = client();
    let patch = |expression: String| json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}});
    let add = |key: &str, value: &str| {
        patch(format!(
            "{LONG} ? [JSONPatch{{op: 'add', path: '/data/{key}', value: {value}}}] : []"
        ))
    };
    let spec = json!({
        "matchConstraints": maps(),
        "reinvocationPolicy": "Never",
        "mutations": [add("first", "'1'"), add("second", "object.data.first + '2'")],
    });
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "p"}, "spec": spec,
    });
    create(&cluster_api(&client, GROUP, "MutatingAdmissionPolicy"), policy).await;
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "b"}, "spec": {"policyName": "p"},
    });
    create(&cluster_api(&client, GROUP, "MutatingAdmissionPolicyBinding"), binding).await;
    let made = create(&api(&client, "", "ConfigMap"), map("a", "3")).await;
    assert_eq!(made.data["data"], json!({"size": "3", "first": "1", "second": "12"}));
}
