use futures::TryStreamExt as _;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{api, client, cluster_api, create, durable, object, refusal};

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ats.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "ats", "kind": "At", "shortNames": ["at"]},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "required": ["schedule"],
                            "properties": {
                                "schedule": {"type": "string"},
                                "command": {"type": "string", "default": "true"},
                            },
                        },
                        "status": {
                            "type": "object",
                            "properties": {"phase": {"type": "string"}},
                        },
                    },
                }},
            }],
        },
    })
}

fn at(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "At", "metadata": {"name": name}, "spec": spec})
}

async fn define(client: &Client) {
    create(&cluster_api(client, "apiextensions.k8s.io", "CustomResourceDefinition"), definition())
        .await;
}

async fn get(client: &Client, path: &str, accept: &str) -> Value {
    let request = http::Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
    client.request(request).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_served_as_soon_as_it_is_created() {
    let client = client();
    define(&client).await;
    let ats = api(&client, "example.com", "At");
    let made = create(&ats, at("a", json!({"schedule": "now", "colour": "blue"}))).await;
    assert_eq!(made.data["spec"], json!({"schedule": "now", "command": "true"}));
    let refused = ats.create(&PostParams::default(), &object(at("b", json!({})))).await;
    assert_eq!(refusal(refused), (422, "Invalid".into()));

    let resources = get(&client, "/apis/example.com/v1", "application/json").await;
    assert_eq!(resources["resources"][0]["name"], "ats");
    let index = get(&client, "/openapi/v3", "application/json").await;
    let url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    let document = get(&client, url, "application/json").await;
    assert!(document["components"]["schemas"].get("com.example.v1.At").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_counts_generations_and_shows_its_columns() {
    let client = client();
    define(&client).await;
    let ats = api(&client, "example.com", "At");
    create(&ats, at("a", json!({"schedule": "now"}))).await;
    let status = Patch::Merge(json!({"status": {"phase": "DONE"}, "spec": {"schedule": "never"}}));
    let done = ats.patch_status("a", &PatchParams::default(), &status).await.unwrap();
    assert_eq!(
        (&done.data["spec"]["schedule"], done.metadata.generation),
        (&json!("now"), Some(1))
    );
    let spec = Patch::Merge(json!({"spec": {"schedule": "later"}}));
    let later = ats.patch("a", &PatchParams::default(), &spec).await.unwrap();
    assert_eq!(later.metadata.generation, Some(2));

    let path = "/apis/example.com/v1/namespaces/default/ats";
    let table = get(&client, path, "application/json;as=Table;v=v1;g=meta.k8s.io").await;
    assert_eq!(table["rows"][0]["cells"], json!(["a", "DONE"]));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_definition_takes_its_objects_along_and_waits_for_those_held_back() {
    let client = client();
    define(&client).await;
    let ats = api(&client, "example.com", "At");
    create(&ats, at("a", json!({"schedule": "now"}))).await;
    let mut held = at("held", json!({"schedule": "now"}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create(&ats, held).await;

    let definitions = cluster_api(&client, "apiextensions.k8s.io", "CustomResourceDefinition");
    definitions.delete("ats.example.com", &DeleteParams::default()).await.unwrap();
    assert_eq!(refusal(ats.get("a").await), (404, "NotFound".into()));
    definitions.get("ats.example.com").await.unwrap();

    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    ats.patch("held", &PatchParams::default(), &release).await.unwrap();
    let gone = definitions.get("ats.example.com").await;
    assert_eq!(refusal(gone), (404, "NotFound".into()));
    let groups = get(&client, "/apis", "application/json").await;
    assert!(!groups.to_string().contains("example.com"));
}

/// On a disk, where what is committed is seen later: the definition must not be gone before its objects.
#[tokio::test]
async fn a_watch_tells_of_all_that_goes_with_the_definition_before_it_ends() {
    let place = TempDir::new().unwrap();
    let client = durable::start(&place).await;
    define(&client).await;
    let ats = api(&client, "example.com", "At");
    let first = create(&ats, at("a", json!({"schedule": "now"}))).await;
    for name in ["b", "c"] {
        create(&ats, at(name, json!({"schedule": "now"}))).await;
    }
    let from = first.metadata.resource_version.unwrap();
    let watch = ats.watch(&WatchParams::default(), &from).await.unwrap();
    let told = tokio::spawn(watch.try_collect::<Vec<_>>());
    let definitions = cluster_api(&client, "apiextensions.k8s.io", "CustomResourceDefinition");
    definitions.delete("ats.example.com", &DeleteParams::default()).await.unwrap();
    let gone = told.await.unwrap().unwrap().into_iter().filter_map(|event| match event {
        WatchEvent::Deleted(object) => object.metadata.name,
        _ => None,
    });
    assert_eq!(gone.collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_one_object_in_both_groups() {
    let client = client();
    let events = api(&client, "", "Event");
    create(
        &events,
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web"},
            "message": "hello", "reason": "Started", "type": "Normal",
        }),
    )
    .await;
    let new = api(&client, "events.k8s.io", "Event");
    let event = new.get("e").await.unwrap();
    assert_eq!(
        (&event.data["note"], &event.data["regarding"]["name"]),
        (&json!("hello"), &json!("web"))
    );
    let params = kube::api::ListParams::default().fields("involvedObject.name=web");
    assert_eq!(events.list(&params).await.unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_patch_of_nothing_but_unknown_fields_changes_nothing() {
    let client = client();
    let mut definition = definition();
    definition["spec"]["versions"][0]["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"});
    let properties =
        &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    properties["spec"]["properties"]["n"] = json!({"type": "integer"});
    create(&cluster_api(&client, "apiextensions.k8s.io", "CustomResourceDefinition"), definition)
        .await;
    let ats = api(&client, "example.com", "At");
    create(&ats, at("a", json!({"schedule": "now", "n": 1}))).await;
    // Who scaled it has no time on record, and so comes first.
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    let more = Patch::Merge(json!({"spec": {"replicas": 3}}));
    let by = PatchParams { field_manager: Some("scaler".into()), ..PatchParams::default() };
    ats.patch_scale("a", &by, &more).await.unwrap();
    let before = ats.get("a").await.unwrap();
    assert_eq!(before.data["spec"]["n"], 3);
    let by = PatchParams { field_manager: Some("patcher".into()), ..PatchParams::default() };
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    let unknown = Patch::Merge(json!({"spec": {"nothing": 1}}));
    let after = ats.patch("a", &by, &unknown).await.unwrap();
    assert_eq!(after, before);
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_was_broken_before_only_warns() {
    let client = client();
    define(&client).await;
    let ats = api(&client, "example.com", "At");
    create(&ats, at("a", json!({"schedule": "never"}))).await;
    let rule = |expression: &str, message: &str| json!([{"rule": expression, "message": message}]);
    let rules = json!({"spec": {"versions": [{
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "x-kubernetes-validations": rule("self.spec.schedule != 'later'", "not later"),
            "properties": {"spec": {
                "type": "object",
                "x-kubernetes-validations": rule("self.schedule != 'never'", "not never"),
                "properties": {"schedule": {"type": "string"}, "command": {"type": "string"}},
            }},
        }},
    }]}});
    let definitions = cluster_api(&client, "apiextensions.k8s.io", "CustomResourceDefinition");
    let params = PatchParams::default();
    definitions.patch("ats.example.com", &params, &Patch::Merge(rules)).await.unwrap();

    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let request = http::Request::patch("/apis/example.com/v1/namespaces/default/ats/a")
        .header("content-type", "application/merge-patch+json")
        .body(kube::client::Body::from(label.to_string().into_bytes()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["warning"], "299 - \"spec: Invalid value: not never\"");
    for (spec, told) in [
        (json!({"command": "x"}), "spec: Invalid value: not never"),
        (json!({"schedule": "later"}), "<nil>: Invalid value: not later"),
    ] {
        let change = Patch::Merge(json!({"spec": spec}));
        let Err(kube::Error::Api(status)) = ats.patch("a", &params, &change).await else {
            panic!("{told}: not refused")
        };
        assert_eq!(status.message, format!("At.example.com \"a\" is invalid: {told}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_answered_as_it_was_asked_for_and_established_by_the_server_at_once() {
    let client = client();
    let definitions = cluster_api(&client, "apiextensions.k8s.io", "CustomResourceDefinition");
    let new = create(&definitions, definition()).await;
    assert_eq!(new.data["status"]["acceptedNames"], json!({"kind": "", "plural": ""}));
    assert_eq!(new.data["status"]["storedVersions"], json!(["v1"]));
    let now = definitions.get("ats.example.com").await.unwrap();
    assert_eq!(now.data["status"]["acceptedNames"]["kind"], "At");
    assert_eq!(now.data["status"]["conditions"][1]["type"], "Established");
    let managers = now.metadata.managed_fields.unwrap();
    assert!(managers.iter().any(|fields| {
        fields.manager.as_deref() == Some("kube-apiserver")
            && fields.subresource.as_deref() == Some("status")
    }));
    create(&api(&client, "example.com", "At"), at("a", json!({"schedule": "now"}))).await;
}

#[tokio::test(start_paused = true)]
async fn formats_that_nobody_knows_are_warned_of() {
    let client = client();
    let mut odd = definition();
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    odd.pointer_mut(fields).unwrap()["command"]["format"] = json!("shell");
    odd.pointer_mut(fields).unwrap()["schedule"]["format"] = json!("date-time");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let body = serde_json::to_vec(&odd).unwrap();
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(kube::client::Body::from(body))
        .unwrap();
    let answer = client.send(request).await.unwrap();
    let warnings: Vec<_> = answer.headers().get_all("warning").iter().collect();
    assert_eq!(warnings, ["299 - \"unrecognized format \\\"shell\\\"\""]);
}

#[tokio::test(start_paused = true)]
async fn every_group_and_version_that_is_served_has_its_api_service() {
    let client = client();
    let services = cluster_api(&client, "apiregistration.k8s.io", "APIService");
    let names = || async {
        let list = services.list(&kube::api::ListParams::default()).await.unwrap();
        list.items.into_iter().filter_map(|service| service.metadata.name).collect::<Vec<_>>()
    };
    let groups: Value = get(&client, "/apis", "application/json").await;
    let groups = groups["groups"].as_array().unwrap();
    let versions = groups.iter().flat_map(|group| group["versions"].as_array().unwrap());
    let mut expected: Vec<String> = versions
        .map(|version| version["groupVersion"].as_str().unwrap().split_once('/').unwrap())
        .filter(|(group, _)| *group != "apiregistration.k8s.io")
        .map(|(group, version)| format!("{version}.{group}"))
        .chain(["v1.".to_owned()])
        .collect();
    expected.sort();
    assert_eq!(names().await, expected);

    define(&client).await;
    let made = services.get("v1.example.com").await.unwrap();
    assert_eq!(made.data["status"]["conditions"][0]["reason"], "Local");
    let definitions = cluster_api(&client, "apiextensions.k8s.io", "CustomResourceDefinition");
    definitions.delete("ats.example.com", &DeleteParams::default()).await.unwrap();
    assert_eq!(names().await, expected);
}

#[tokio::test(start_paused = true)]
async fn what_a_schema_leaves_empty_is_judged_in_an_update_and_no_change() {
    let client = client();
    let definitions = cluster_api(&client, "apiextensions.k8s.io", "CustomResourceDefinition");
    define(&client).await;
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    let changed = |pointer: &str, keyword: &str, value: Value| {
        let mut changed = definition();
        changed.pointer_mut(&format!("{schema}{pointer}")).unwrap()[keyword] = value;
        changed
    };
    let put = async |value: Value| {
        let now = definitions.get("ats.example.com").await.unwrap();
        let mut next = object(value);
        next.metadata.resource_version = now.metadata.resource_version;
        definitions.replace("ats.example.com", &PostParams::default(), &next).await
    };
    let refused = refusal(put(changed("", "allOf", json!([]))).await);
    assert_eq!(refused, (422, "Invalid".to_owned()));
    let same = put(changed("/properties/status", "required", json!([]))).await.unwrap();
    assert_eq!(same.metadata.generation, Some(1));
    let fields = &same.data["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    assert!(fields["status"].get("required").is_none());
    // Items that are neither a schema nor several are a change once, and then gone.
    let next = put(changed("/properties/status", "items", json!("x"))).await.unwrap();
    assert_eq!(next.metadata.generation, Some(2));
    let fields = &next.data["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    assert!(fields["status"].get("items").is_none());
}
