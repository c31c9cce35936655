use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use homeostat_apiserver::{Server, ServerConfig};
use homeostat_env::Env;
use http::{Method, Request};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use super::client;

/// Sends a request with these headers; the code and the answer.
async fn send(
    client: &Client,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> (u16, Value) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = request.header("content-type", "application/json").body(bytes.into()).unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

async fn post(client: &Client, path: &str, body: Value) -> Value {
    let (code, answer) = send(client, Method::POST, path, &[], body).await;
    assert_eq!(code, 201, "{answer}");
    answer
}

async fn delete(client: &Client, path: &str) {
    let (code, answer) = send(client, Method::DELETE, path, &[], Value::Null).await;
    assert_eq!(code, 200, "{answer}");
}

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
/// Requests for certificates: of readers, and of those who may do everything.
const READERS: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIZE1JR0RBZ0VBTUNFeERUQUxCZ05WQkFNTUJHcGhibVV4RURBT0JnTlZCQW9NQjNKbFlXUmxjbk13V1RBVApCZ2NxaGtqT1BRSUJCZ2dxaGtqT1BRTUJCd05DQUFURjN4SUVGSi9nT1lEL2laWWVRbWZqNWNZK2Rjc0hUNlR2CkkzWENMb1QxWEN3SW80RUdOckNrd01rbTNzclBKQjFPMjFiV1d6eVdvODhOWVdSODJjV3FvQUF3Q2dZSUtvWkkKemowRUF3SURTUUF3UmdJaEFPaUpJYnVNcGNGd0dQc2JBcnhuM0RPamxoZ0NiS2FZU0ZuODdNdmNKT3BQQWlFQQp4V2xCR3VaWkZnUXhCaXZRRFdoV2UzaVVqeUZPVXdBTWxhWDBnajliRUFZPQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
const MASTERS: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIME1JR2JBZ0VBTURreEREQUtCZ05WQkFNTUEyVjJaVEVRTUE0R0ExVUVDZ3dIY21WaFpHVnljekVYTUJVRwpBMVVFQ2d3T2MzbHpkR1Z0T20xaGMzUmxjbk13V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVFlCkJ6VVhMd0UrRlFhc1grbncvT2JtL2YxaVRmSUxwamRwcEFPUlZhSTdjUzE1NUw4RWhKcFlQQ1V0eWgxYlNzQ1QKaW41azVzTzB5dDhmZERKRzFsKzZvQUF3Q2dZSUtvWkl6ajBFQXdJRFNBQXdSUUloQU9KdHMyRVduUzVOS1k0SQpTWWtta01UMnNPaUwzVVQxRVhzWGRmcFhUNUdvQWlBTytFNTY1bFV5ZFYzZkU3MUY5R25pc1VlajBhaXVGcWRLCnVrOTcveUVpSFE9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

async fn token(client: &Client, spec: Value) -> String {
    let path = format!("{ACCOUNTS}/a/token");
    let answer = post(client, &path, json!({"spec": spec})).await;
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// Who the API takes the bearer of the token for: the code, and the user.
async fn whoami(client: &Client, token: &str) -> (u16, Value) {
    let header = format!("Bearer {token}");
    let headers = [("authorization", header.as_str())];
    let (code, answer) = send(client, Method::POST, WHOAMI, &headers, json!({})).await;
    (code, answer["status"]["userInfo"].clone())
}

#[tokio::test(start_paused = true)]
async fn a_token_proves_its_service_account_until_its_time_is_over() {
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    let client = Client::new(Server::new(ServerConfig::new(env.clone())), "default");
    let account = post(&client, ACCOUNTS, json!({"metadata": {"name": "a"}})).await;
    let token = token(&client, json!({"expirationSeconds": 600})).await;

    let (code, user) = whoami(&client, &token).await;
    assert_eq!(code, 201);
    assert_eq!(user["username"], "system:serviceaccount:default:a");
    assert_eq!(user["uid"], account["metadata"]["uid"]);
    assert_eq!(
        user["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    env.sleep(Duration::from_secs(600 + 61)).await;
    assert_eq!(whoami(&client, &token).await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_with_its_account_even_if_another_takes_the_name() {
    let client = client();
    post(&client, ACCOUNTS, json!({"metadata": {"name": "a"}})).await;
    let token = token(&client, json!({})).await;
    assert_eq!(whoami(&client, &token).await.0, 201);
    delete(&client, &format!("{ACCOUNTS}/a")).await;
    assert_eq!(whoami(&client, &token).await.0, 401);
    post(&client, ACCOUNTS, json!({"metadata": {"name": "a"}})).await;
    assert_eq!(whoami(&client, &token).await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn a_token_bound_to_a_pod_names_the_pod_and_ends_with_it() {
    let client = client();
    post(&client, ACCOUNTS, json!({"metadata": {"name": "a"}})).await;
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {
            "serviceAccountName": "a",
            "nodeName": "n",
            "containers": [{"name": "c", "image": "i"}],
        },
    });
    let pod = post(&client, "/api/v1/namespaces/default/pods", pod).await;
    let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": "p"});
    let token = token(&client, json!({"boundObjectRef": bound, "expirationSeconds": 3607})).await;

    let (_, user) = whoami(&client, &token).await;
    let extra = |name: &str| user["extra"][format!("authentication.kubernetes.io/{name}")].clone();
    assert_eq!(extra("pod-name"), json!(["p"]));
    assert_eq!(extra("pod-uid"), json!([pod["metadata"]["uid"]]));
    assert_eq!(extra("node-name"), json!(["n"]));
    let claims: Value = token
        .split('.')
        .nth(1)
        .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
        .unwrap();
    assert_eq!(claims["kubernetes.io"]["warnafter"], 3607, "a pod renews it after an hour");
    assert_eq!(claims["exp"], 365 * 24 * 3600, "one that does not is not cut off");

    delete(&client, "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0").await;
    assert_eq!(whoami(&client, &token).await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn tokens_for_others_and_forged_ones_open_nothing() {
    let (client, stranger) = (client(), client());
    for client in [&client, &stranger] {
        post(client, ACCOUNTS, json!({"metadata": {"name": "a"}})).await;
    }
    let foreign = token(&client, json!({"audiences": ["vault"]})).await;
    assert_eq!(whoami(&client, &foreign).await.0, 401);
    let of_another_server = token(&stranger, json!({})).await;
    assert_eq!(whoami(&client, &of_another_server).await.0, 401);
    assert_eq!(whoami(&client, "nonsense").await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn the_published_key_is_the_one_that_signs() {
    let client = client();
    post(&client, ACCOUNTS, json!({"metadata": {"name": "a"}})).await;
    let token = token(&client, json!({})).await;
    let get = async |path| send(&client, Method::GET, path, &[], Value::Null).await.1;
    let header = token.split('.').next().unwrap();
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    let keys = get("/openid/v1/jwks").await;
    assert_eq!(keys["keys"][0]["kid"], header["kid"]);
    let issuer = get("/.well-known/openid-configuration").await;
    assert!(issuer["jwks_uri"].as_str().unwrap().ends_with("/openid/v1/jwks"), "{issuer}");
}

async fn get_as(client: &Client, user: &str, path: &str) -> u16 {
    send(client, Method::GET, path, &[("impersonate-user", user)], Value::Null).await.0
}

#[tokio::test(start_paused = true)]
async fn a_rule_holds_from_the_write_that_makes_it_to_the_write_that_ends_it() {
    let client = client();
    let secrets = "/api/v1/namespaces/default/secrets";
    assert_eq!(get_as(&client, "eve", secrets).await, 403);
    let rules =
        |verbs: &[&str]| json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}]);
    let role = json!({"metadata": {"name": "r"}, "rules": rules(&["list"])});
    post(&client, &format!("{RBAC}/namespaces/default/roles"), role).await;
    let binding = json!({
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}],
    });
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    post(&client, &bindings, binding.clone()).await;
    assert_eq!(get_as(&client, "eve", secrets).await, 200);
    assert_eq!(get_as(&client, "eve", "/api/v1/namespaces/kube-system/secrets").await, 403);
    assert_eq!(get_as(&client, "eve", "/api/v1/secrets").await, 403);

    let role = json!({"metadata": {"name": "r"}, "rules": rules(&["get"])});
    let path = format!("{RBAC}/namespaces/default/roles/r");
    assert_eq!(send(&client, Method::PUT, &path, &[], role).await.0, 200);
    assert_eq!(get_as(&client, "eve", secrets).await, 403);
    let role = json!({"metadata": {"name": "r"}, "rules": rules(&["*"])});
    assert_eq!(send(&client, Method::PUT, &path, &[], role).await.0, 200);
    assert_eq!(get_as(&client, "eve", secrets).await, 200);

    delete(&client, &format!("{bindings}/b")).await;
    assert_eq!(get_as(&client, "eve", secrets).await, 403);
    post(&client, &bindings, binding).await;
    assert_eq!(get_as(&client, "eve", secrets).await, 200);
    delete(&client, &path).await;
    assert_eq!(get_as(&client, "eve", secrets).await, 403);
}

#[tokio::test(start_paused = true)]
async fn a_service_account_may_do_what_its_bindings_say_and_no_more() {
    let client = client();
    post(&client, ACCOUNTS, json!({"metadata": {"name": "a"}})).await;
    let binding = json!({
        "metadata": {"name": "viewers"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "system:aggregate-to-view",
        },
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "a"}],
    });
    post(&client, &format!("{RBAC}/clusterrolebindings"), binding).await;
    let header = format!("Bearer {}", token(&client, json!({})).await);
    let headers = [("authorization", header.as_str())];
    let get = async |path: &str| send(&client, Method::GET, path, &headers, Value::Null).await.0;
    assert_eq!(get("/api/v1/pods").await, 200);
    assert_eq!(get("/api/v1/secrets").await, 403);
}

#[tokio::test(start_paused = true)]
async fn nobody_gives_away_more_than_they_have() {
    let client = client();
    let role = json!({"metadata": {"name": "giver"}, "rules": [
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["*"]},
    ]});
    post(&client, &format!("{RBAC}/clusterroles"), role).await;
    let to = |role: &str, name: &str| {
        json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}],
        })
    };
    // The rule above allows every verb, `bind` and `escalate` among them: take those away.
    let narrow = json!({"metadata": {"name": "giver"}, "rules": [{
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["clusterroles", "clusterrolebindings"],
        "verbs": ["create", "get", "update", "patch"],
    }]});
    let path = format!("{RBAC}/clusterroles/giver");
    assert_eq!(send(&client, Method::PUT, &path, &[], narrow).await.0, 200);
    post(&client, &format!("{RBAC}/clusterrolebindings"), to("giver", "giver")).await;

    let eve = [("impersonate-user", "eve")];
    let path = format!("{RBAC}/clusterrolebindings");
    let (code, answer) = send(&client, Method::POST, &path, &eve, to("cluster-admin", "b")).await;
    assert_eq!(code, 403);
    let words = answer["message"].as_str().unwrap();
    assert!(
        words.contains("is attempting to grant RBAC permissions not currently held"),
        "{words}"
    );
    let more = json!({"metadata": {"name": "more"}, "rules": [
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]});
    let path = format!("{RBAC}/clusterroles");
    assert_eq!(send(&client, Method::POST, &path, &eve, more).await.0, 403);
    let same = json!({"metadata": {"name": "same"}, "rules": [
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["get"]},
    ]});
    assert_eq!(send(&client, Method::POST, &path, &eve, same).await.0, 201);
    let patch = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let request = Request::patch(format!("{RBAC}/clusterroles/giver"))
        .header("impersonate-user", "eve")
        .header("content-type", "application/merge-patch+json")
        .body(patch.to_string().into_bytes().into())
        .unwrap();
    assert_eq!(client.send(request).await.unwrap().status(), 403);
}

#[tokio::test(start_paused = true)]
async fn acting_as_another_needs_leave() {
    let client = client();
    let as_bob = [("impersonate-user", "bob"), ("impersonate-group", "system:masters")];
    let path = "/api/v1/namespaces/default/secrets";
    assert_eq!(send(&client, Method::GET, path, &as_bob, Value::Null).await.0, 200);
    post(&client, ACCOUNTS, json!({"metadata": {"name": "a"}})).await;
    let header = format!("Bearer {}", token(&client, json!({})).await);
    let both = [("authorization", header.as_str()), as_bob[0], as_bob[1]];
    let (code, answer) = send(&client, Method::GET, path, &both, Value::Null).await;
    assert_eq!(code, 403, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_binding_to_a_role_that_is_not_there_is_named_in_the_refusal() {
    let client = client();
    let binding = json!({
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lost"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}],
    });
    post(&client, &format!("{RBAC}/clusterrolebindings"), binding).await;
    let eve = [("impersonate-user", "eve")];
    let (_, answer) = send(&client, Method::GET, "/api/v1/nodes", &eve, Value::Null).await;
    assert_eq!(
        answer["message"],
        "nodes is forbidden: User \"eve\" cannot list resource \"nodes\" in API group \"\" at \
         the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io \"lost\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_certificate_names_who_asks_and_never_asks_for_everything() {
    let client = client();
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = |name: &str, text: &str| {
        json!({"metadata": {"name": name}, "spec": {"request": text, "username": "somebody",
            "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}})
    };
    let jane = [("impersonate-user", "jane"), ("impersonate-group", "system:masters")];
    let (code, made) = send(&client, Method::POST, path, &jane, request("a", READERS)).await;
    assert_eq!((code, &made["spec"]["username"]), (201, &json!("jane")), "{made}");
    assert_eq!(made["spec"]["groups"][0], "system:masters");
    let (code, refused) = send(&client, Method::POST, path, &jane, request("b", MASTERS)).await;
    assert_eq!(code, 403, "{refused}");
}
