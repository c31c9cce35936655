use std::time::Duration;

use futures::StreamExt as _;
use homeostat_apiserver::{Body, Server, ServerConfig};
use homeostat_env::Env;
use http::Request;
use http_body_util::{BodyExt as _, Empty, Full};
use jiff::Timestamp;
use serde_json::json;

fn server() -> Server {
    Server::new(ServerConfig::new(Env::simulated(1, Timestamp::UNIX_EPOCH)))
}

async fn ask(server: &Server, method: &str, target: &str) -> (u16, String) {
    let body = if method == "POST" {
        let object = json!({"metadata": {"generateName": "a-"}}).to_string();
        Full::from(object).map_err(|never| match never {}).boxed_unsync()
    } else {
        Empty::new().map_err(|never| match never {}).boxed_unsync()
    };
    let request = Request::builder().method(method).uri(target).body(body).unwrap();
    read(server, request).await
}

async fn read(server: &Server, request: Request<Body>) -> (u16, String) {
    let response = server.handle(request).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(bytes.to_vec()).unwrap())
}

/// The value of the one line that has this name and all of these labels.
async fn value(server: &Server, name: &str, labels: &[&str]) -> Option<String> {
    let (code, text) = ask(server, "GET", "/metrics").await;
    assert_eq!(code, 200);
    let mut lines = text.lines().filter(|line| {
        line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label))
    });
    let found = lines.next().map(|line| line.rsplit(' ').next().unwrap().to_owned());
    assert_eq!(lines.next(), None, "{labels:?} are not enough");
    found
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_by_what_they_asked_and_how_they_were_answered() {
    let server = server();
    let maps = "/api/v1/namespaces/default/configmaps";
    for (method, target) in [
        ("POST", maps.to_owned()),
        ("POST", format!("{maps}?dryRun=All")),
        ("GET", maps.to_owned()),
        ("GET", "/api/v1/configmaps".to_owned()),
        ("GET", format!("{maps}/missing")),
        ("GET", "/apis/apps/v1/namespaces/default/deployments/missing/scale".to_owned()),
        // Nobody knows what these are about.
        ("GET", "/api/v1/nothings".to_owned()),
        ("FOO", maps.to_owned()),
    ] {
        ask(&server, method, &target).await;
    }
    let maps = "resource=\"configmaps\"";
    for (labels, expected) in [
        (["verb=\"POST\"", "code=\"201\"", "dry_run=\"\"", "scope=\"resource\"", maps], Some("1")),
        (["verb=\"POST\"", "code=\"201\"", "dry_run=\"All\"", "version=\"v1\"", maps], Some("1")),
        (
            [
                "verb=\"LIST\"",
                "code=\"200\"",
                "component=\"apiserver\"",
                "scope=\"namespace\"",
                maps,
            ],
            Some("1"),
        ),
        (["verb=\"LIST\"", "code=\"200\"", "group=\"\"", "scope=\"cluster\"", maps], Some("1")),
        (["verb=\"GET\"", "code=\"404\"", "group=\"\"", "scope=\"resource\"", maps], Some("1")),
        (
            [
                "verb=\"GET\"",
                "code=\"404\"",
                "group=\"apps\"",
                "subresource=\"scale\"",
                "resource=\"deployments\"",
            ],
            Some("1"),
        ),
        (["", "", "", "", "nothings"], None),
        (["FOO", "", "", "", ""], None),
    ] {
        let found = value(&server, "apiserver_request_total", &labels).await;
        assert_eq!(found.as_deref(), expected, "{labels:?}");
    }
    let slow = ["le=\"0.005\"", "verb=\"LIST\"", "scope=\"cluster\""];
    assert!(value(&server, "apiserver_request_duration_seconds_bucket", &slow).await.is_some());
    let large = ["le=\"1000.0\"", "verb=\"LIST\"", "scope=\"cluster\""];
    assert!(value(&server, "apiserver_response_sizes_bucket", &large).await.is_some());
    let objects = ["group=\"\"", "resource=\"namespaces\""];
    assert_eq!(value(&server, "apiserver_resource_objects", &objects).await.unwrap(), "4");
    let objects = ["resource=\"deployments.apps\""];
    assert_eq!(value(&server, "apiserver_storage_objects", &objects).await.unwrap(), "0");
}

#[tokio::test(start_paused = true)]
async fn a_watch_counts_as_open_until_it_ends_and_as_a_request_then() {
    let server = server();
    let open = ["verb=\"WATCH\"", "resource=\"configmaps\"", "scope=\"cluster\""];
    let request = Request::get("/api/v1/configmaps?watch=1&timeoutSeconds=600");
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let mut stream =
        server.handle(request.body(body).unwrap()).await.into_body().into_data_stream();
    ask(&server, "POST", "/api/v1/namespaces/default/configmaps").await;
    stream.next().await.unwrap().unwrap();
    assert_eq!(value(&server, "apiserver_longrunning_requests", &open).await.unwrap(), "1");
    assert_eq!(value(&server, "apiserver_request_total", &open).await, None);
    tokio::time::advance(Duration::from_secs(100)).await;
    drop(stream);
    assert_eq!(value(&server, "apiserver_longrunning_requests", &open).await.unwrap(), "0");
    assert_eq!(value(&server, "apiserver_request_total", &open).await.unwrap(), "1");
    let sum = value(&server, "apiserver_request_duration_seconds_sum", &open).await.unwrap();
    assert_eq!(sum, "100.0");
    let told = ["resource=\"configmaps\""];
    assert_eq!(value(&server, "apiserver_watch_events_total", &told).await.unwrap(), "1");
}

#[tokio::test(start_paused = true)]
async fn a_request_under_way_is_counted_out_however_it_ends() {
    let server = server();
    let busy = ["request_kind=\"mutating\""];
    let never = futures::stream::pending::<Result<http_body::Frame<bytes::Bytes>, _>>();
    let request = Request::post("/api/v1/namespaces/default/configmaps")
        .body(http_body_util::StreamBody::new(never).boxed_unsync())
        .unwrap();
    let mut answer = Box::pin(server.handle(request));
    assert!(futures::poll!(&mut answer).is_pending());
    assert_eq!(value(&server, "apiserver_current_inflight_requests", &busy).await.unwrap(), "1");
    drop(answer);
    assert_eq!(value(&server, "apiserver_current_inflight_requests", &busy).await.unwrap(), "0");
}

#[tokio::test(start_paused = true)]
async fn metrics_are_for_those_who_may_read_them_in_the_form_they_ask_for() {
    let server = server();
    let request = |name: &str, value: &str| {
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        Request::get("/metrics").header(name, value).body(body).unwrap()
    };
    let (code, text) = read(&server, request("impersonate-user", "jane")).await;
    assert_eq!(code, 403);
    assert!(text.contains("User \\\"jane\\\" cannot get path \\\"/metrics\\\""), "{text}");
    ask(&server, "GET", "/api/v1/pods").await;
    let (_, text) = read(&server, request("accept", "text/plain")).await;
    assert!(text.contains("# TYPE apiserver_request_total counter\n") && !text.contains("# EOF"));
    let (_, text) = read(&server, request("accept", "application/openmetrics-text")).await;
    assert!(text.contains("# TYPE apiserver_request counter\n") && text.ends_with("# EOF\n"));
}

/// What `/livez` of kube-apiserver 1.36 checks after its start has begun, in its order.
const STARTED: [&str; 30] = [
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];

#[tokio::test(start_paused = true)]
async fn health_is_told_whole_or_check_by_check() {
    let server = server();
    for (target, code, expected) in [
        ("/healthz", 200, "ok"),
        ("/livez/ping", 200, "ok"),
        ("/livez/log", 200, "ok"),
        ("/readyz/etcd-readiness", 200, "ok"),
        ("/livez/etcd-readiness", 404, "404 page not found\n"),
        ("/healthz/loopback-serving-certificate", 200, "ok"),
        ("/readyz/loopback-serving-certificate", 404, "404 page not found\n"),
        ("/readyz/shutdown", 200, "ok"),
        ("/livez/shutdown", 404, "404 page not found\n"),
        ("/readyz/poststarthook/rbac/bootstrap-roles", 200, "ok"),
        ("/livez/autoregister-completion", 200, "ok"),
        ("/readyz/nothing", 404, "404 page not found\n"),
        ("/readyz?exclude=etcd", 200, "ok"),
    ] {
        assert_eq!(ask(&server, "GET", target).await, (code, expected.to_owned()), "{target}");
    }
    let (_, text) = ask(&server, "GET", "/readyz?verbose&exclude=etcd&exclude=x&exclude=y").await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1..4], ["[+]log ok", "[+]etcd excluded: ok", "[+]etcd-readiness ok"]);
    let end = [
        "[+]shutdown ok",
        "warn: some health checks cannot be excluded: no matches for \"x\",\"y\"",
        "readyz check passed",
    ];
    assert_eq!(lines[lines.len() - 3..], end);
}

#[tokio::test(start_paused = true)]
async fn every_check_of_kube_apiserver_is_named_in_its_order() {
    let server = server();
    let alive = ["ping", "log", "loopback-serving-certificate", "etcd"].as_slice();
    let ready = ["ping", "log", "etcd", "etcd-readiness", "informer-sync"].as_slice();
    for (root, first, last) in
        [("healthz", alive, None), ("livez", alive, None), ("readyz", ready, Some("shutdown"))]
    {
        let (_, text) = ask(&server, "GET", &format!("/{root}?verbose")).await;
        let names = first.iter().chain(&STARTED).copied().chain(last);
        let lines: String = names.map(|name| format!("[+]{name} ok\n")).collect();
        assert_eq!(text, format!("{lines}{root} check passed\n"));
    }
}
