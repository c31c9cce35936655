use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use homeostat_apiserver::{
    Server, ServerConfig, WebhookAddress, WebhookAnswer, WebhookConnector, WebhookReply,
};
use homeostat_env::Env;
use jiff::Timestamp;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{api, cluster_api, create, object, refusal};

type Behaviour = Box<dyn Fn(&Value) -> Value + Send + Sync>;

/// A webhook in this process: answers every request as it was told, and remembers them.
pub(super) struct Hook {
    behaviour: Behaviour,
    asked: Mutex<Vec<(String, Value)>>,
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hook").finish_non_exhaustive()
    }
}

impl WebhookConnector for Hook {
    fn post(&self, address: WebhookAddress, body: Bytes) -> BoxFuture<'static, WebhookReply> {
        let review: Value = serde_json::from_slice(&body).unwrap();
        let mut response = (self.behaviour)(&review["request"]);
        self.asked.lock().unwrap().push((address.path, review["request"].clone()));
        if response == json!("hang") {
            return futures::future::pending().boxed();
        }
        response["uid"] = review["request"]["uid"].clone();
        let reply = json!({
            "kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response,
        });
        futures::future::ready(Ok(WebhookAnswer::json(200, reply.to_string()))).boxed()
    }
}

impl Hook {
    pub(super) fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }
}

/// A client of a server whose webhooks behave so.
pub(super) fn hooked(
    behaviour: impl Fn(&Value) -> Value + Send + Sync + 'static,
) -> (Client, Arc<Hook>) {
    let (_, client, hook) = hooked_server(behaviour);
    (client, hook)
}

/// The same, with the server.
pub(super) fn hooked_server(
    behaviour: impl Fn(&Value) -> Value + Send + Sync + 'static,
) -> (Server, Client, Arc<Hook>) {
    let server = Server::new(ServerConfig::new(Env::simulated(1, Timestamp::UNIX_EPOCH)));
    let hook = Arc::new(Hook { behaviour: Box::new(behaviour), asked: Mutex::default() });
    server.connect_webhooks(hook.clone());
    (server.clone(), Client::new(server, "default"), hook)
}

pub(super) fn patch(operations: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string())})
}

pub(super) fn webhook(name: &str, path: &str, resource: &str) -> Value {
    json!({
        "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"url": format!("https://127.0.0.1:1/{path}")},
        "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"],
            "resources": [resource]}],
    })
}

pub(super) async fn configure(client: &Client, kind: &str, webhooks: Value) {
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "hooks"}, "webhooks": webhooks,
    });
    create(&cluster_api(client, "admissionregistration.k8s.io", kind), configuration).await;
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

#[tokio::test(start_paused = true)]
async fn a_validating_webhook_refuses_in_its_own_words() {
    let (client, hook) = hooked(|request| {
        if request["object"]["metadata"]["name"] == "bad" {
            return json!({"allowed": false, "status": {"message": "no bad ones", "code": 418}});
        }
        json!({"allowed": true})
    });
    configure(
        &client,
        "ValidatingWebhookConfiguration",
        json!([webhook("judge.example.com", "judge", "configmaps")]),
    )
    .await;
    let maps = api(&client, "", "ConfigMap");
    create(&maps, map("good")).await;
    let refused = maps.create(&PostParams::default(), &object(map("bad"))).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("{refused:?}") };
    assert_eq!(status.code, 418);
    let words = "admission webhook \"judge.example.com\" denied the request: no bad ones";
    assert_eq!(status.message, words);
    let asked = hook.asked();
    let (path, request) = &asked[0];
    assert_eq!(path, "/judge?timeout=10s");
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["object"]["data"], json!({"a": "b"}));
    assert_eq!(request["oldObject"], Value::Null);
    // What it saw is what is stored.
    let stored = maps.get("good").await.unwrap();
    assert_eq!(request["object"]["metadata"]["uid"], json!(stored.metadata.uid));
    maps.delete("good", &DeleteParams::default()).await.unwrap();
    assert_eq!(hook.asked().last().unwrap().1["operation"], "DELETE");
}

#[tokio::test(start_paused = true)]
async fn mutating_webhooks_change_one_after_the_other_and_see_later_changes_if_they_ask() {
    let (client, hook) = hooked(|request| {
        let data = &request["object"]["data"];
        let step = if data.get("one").is_none() { "one" } else { "two" };
        if data.get(step).is_some() {
            return json!({"allowed": true, "warnings": ["seen again"]});
        }
        patch(&json!([{"op": "add", "path": format!("/data/{step}"), "value": "x"}]))
    });
    let mut first = webhook("a.example.com", "first", "configmaps");
    first["reinvocationPolicy"] = "IfNeeded".into();
    let second = webhook("b.example.com", "second", "configmaps");
    configure(&client, "MutatingWebhookConfiguration", json!([first, second])).await;
    let maps = api(&client, "", "ConfigMap");
    let made = create(&maps, map("a")).await;
    assert_eq!(made.data["data"], json!({"a": "b", "one": "x", "two": "x"}));
    let paths: Vec<String> = hook.asked().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/first?timeout=10s", "/second?timeout=10s", "/first?timeout=10s"]);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_does_not_answer_in_time_refuses_or_is_ignored_as_told() {
    let (client, _) = hooked(|_| json!("hang"));
    let mut strict = webhook("strict.example.com", "strict", "configmaps");
    strict["timeoutSeconds"] = 1.into();
    let mut lenient = webhook("lenient.example.com", "lenient", "secrets");
    lenient["failurePolicy"] = "Ignore".into();
    configure(&client, "ValidatingWebhookConfiguration", json!([strict, lenient])).await;
    let refused =
        api(&client, "", "ConfigMap").create(&PostParams::default(), &object(map("a"))).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("{refused:?}") };
    assert_eq!(status.code, 500);
    assert_eq!(
        status.message,
        "Internal error occurred: failed calling webhook \"strict.example.com\": failed to call \
         webhook: Post \"https://127.0.0.1:1/strict?timeout=1s\": context deadline exceeded"
    );
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    create(&api(&client, "", "Secret"), secret).await;
}

#[tokio::test(start_paused = true)]
async fn selectors_conditions_and_dry_runs_decide_who_is_asked() {
    let (client, hook) = hooked(|_| json!({"allowed": true}));
    let mut selective = webhook("s.example.com", "selective", "configmaps");
    selective["objectSelector"] = json!({"matchLabels": {"watched": "yes"}});
    selective["matchConditions"] =
        json!([{"name": "not-mine", "expression": "object.metadata.name != 'mine'"}]);
    selective["sideEffects"] = "NoneOnDryRun".into();
    configure(&client, "ValidatingWebhookConfiguration", json!([selective])).await;
    let maps = api(&client, "", "ConfigMap");
    create(&maps, map("plain")).await;
    let labelled = |name: &str| {
        let mut map = map(name);
        map["metadata"]["labels"] = json!({"watched": "yes"});
        map
    };
    create(&maps, labelled("mine")).await;
    assert!(hook.asked().is_empty());
    create(&maps, labelled("other")).await;
    let label = Patch::Merge(json!({"metadata": {"labels": {"watched": "no"}}}));
    let trial = PatchParams { dry_run: true, ..PatchParams::default() };
    maps.patch("other", &trial, &label).await.unwrap();
    let asked = hook.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1].1["dryRun"], true);
    assert_eq!(asked[1].1["oldObject"]["metadata"]["labels"], json!({"watched": "yes"}));
}

#[tokio::test(start_paused = true)]
async fn configurations_of_webhooks_are_not_asked_about() {
    let (client, hook) = hooked(|_| json!({"allowed": false}));
    configure(
        &client,
        "ValidatingWebhookConfiguration",
        json!([webhook("a.example.com", "", "*")]),
    )
    .await;
    let configurations =
        cluster_api(&client, "admissionregistration.k8s.io", "ValidatingWebhookConfiguration");
    let refused =
        api(&client, "", "ConfigMap").create(&PostParams::default(), &object(map("a"))).await;
    assert_eq!(refusal(refused).0, 400);
    configurations.delete("hooks", &DeleteParams::default()).await.unwrap();
    assert_eq!(hook.asked().len(), 1);
    create(&api(&client, "", "ConfigMap"), map("a")).await;
}

#[tokio::test(start_paused = true)]
async fn a_webhook_sees_reviews_before_they_are_answered() {
    let (client, hook) = hooked(|request| {
        let asks_for_secrets =
            request["object"]["spec"]["resourceAttributes"]["resource"] == "secrets";
        json!({"allowed": !asks_for_secrets, "status": {"message": "not of secrets"}})
    });
    configure(
        &client,
        "ValidatingWebhookConfiguration",
        json!([webhook("judge.example.com", "judge", "selfsubjectaccessreviews")]),
    )
    .await;
    let reviews = cluster_api(&client, "authorization.k8s.io", "SelfSubjectAccessReview");
    let about = |resource: &str| {
        object(json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "metadata": {}, "spec": {"resourceAttributes": {"verb": "get", "resource": resource}},
        }))
    };
    let answered = reviews.create(&PostParams::default(), &about("pods")).await.unwrap();
    assert_eq!(answered.data["status"]["allowed"], true);
    let refused = reviews.create(&PostParams::default(), &about("secrets")).await;
    assert_eq!(refusal(refused), (400, String::new()));
    let (_, request) = &hook.asked()[0];
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["object"]["status"], json!({"allowed": false}));
}
