//! Requests that are passed on to Pods, Services and nodes: where they go, and what arrives there.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use homeostat_apiserver::{Body, NodeConnector, Server, ServerConfig};
use homeostat_env::Env;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::served::Served;
use super::tls::{HTTP1, client_from};
use super::webhook_server::{self, Reply};
use super::{api, cluster_api, create};

/// What a program was asked, told in its answer.
fn told(head: &http::request::Parts) -> String {
    let mut names: Vec<&str> = head.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    let cookies: Vec<&str> =
        head.headers.get_all("cookie").iter().filter_map(|value| value.to_str().ok()).collect();
    json!({"target": head.uri.to_string(), "headers": names, "cookies": cookies}).to_string()
}

/// A program that says what it was asked; gives its port.
async fn program() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = service_fn(async |request: Request<hyper::body::Incoming>| {
                let (head, _) = request.into_parts();
                let body = Full::new(Bytes::from(told(&head)));
                let answer = Response::builder().header(CONTENT_TYPE, "application/json");
                Ok::<_, std::convert::Infallible>(answer.body(body).unwrap())
            });
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(stream), answer));
        }
    });
    port
}

/// A program that says so over HTTPS, with a certificate that nobody knows; gives its port.
async fn secured_program() -> u16 {
    let served = webhook_server::serve(|head, _| Reply::Text(200, told(head))).await;
    served.url.rsplit(':').next().unwrap().parse().unwrap()
}

/// A node that says what it was asked.
struct Node;

impl NodeConnector for Node {
    fn call(&self, _: &str, request: Request<Body>) -> BoxFuture<'static, Response<Body>> {
        let (head, _) = request.into_parts();
        let body = Full::from(told(&head)).map_err(|never| match never {}).boxed_unsync();
        futures::future::ready(Response::new(body)).boxed()
    }
}

async fn create_pod(client: &Client, name: &str, address: &str, port: u16) {
    let pods = api(client, "", "Pod");
    let port = json!({"containerPort": port});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [
            {"name": "first", "image": "busybox"},
            {"name": "second", "image": "busybox", "ports": [port]},
        ]},
    });
    create(&pods, pod).await;
    let status = Patch::Merge(json!({"status": {"podIP": address}}));
    pods.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

async fn create_service(client: &Client, name: &str) {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"ports": [{"name": "web", "port": 80}, {"name": "safe", "port": 443}]},
    });
    create(&api(client, "", "Service"), service).await;
}

async fn create_endpoints(client: &Client, name: &str, subsets: Value) {
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name}, "subsets": subsets,
    });
    create(&api(client, "", "Endpoints"), endpoints).await;
}

fn address_of(pod: &str, ip: &str) -> Value {
    json!({"ip": ip, "targetRef": {"kind": "Pod", "name": pod, "namespace": "default"}})
}

/// A server with a Pod `web`, a Service `web` in front of it, and a node `node`.
async fn world() -> Server {
    let server = Server::new(ServerConfig::new(Env::system()));
    server.connect_nodes(Arc::new(Node));
    let client = Client::new(server.clone(), "default");
    let (plain, secured) = (program().await, secured_program().await);
    create_pod(&client, "web", "127.0.0.1", plain).await;
    create_service(&client, "web").await;
    let ports = json!([{"name": "web", "port": plain}, {"name": "safe", "port": secured}]);
    let subsets = json!([{"addresses": [address_of("web", "127.0.0.1")], "ports": ports}]);
    create_endpoints(&client, "web", subsets).await;
    let nodes: Api<DynamicObject> = cluster_api(&client, "", "Node");
    create(&nodes, json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}})).await;
    server
}

async fn send(server: &Server, request: http::request::Builder) -> Response<Body> {
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    server.handle(request.body(body).unwrap()).await
}

async fn get(server: &Server, path: &str) -> (u16, Value) {
    let request = Request::get(format!("/api/v1/namespaces/default/{path}"));
    let response = send(server, request).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test]
async fn what_follows_a_proxy_arrives_as_it_was_meant() {
    let server = world().await;
    let namespace = "/api/v1/namespaces/default";
    let ways = [
        format!("{namespace}/pods/web/proxy"),
        format!("{namespace}/services/web:web/proxy"),
        "/api/v1/nodes/node/proxy".to_owned(),
    ];
    for way in ways {
        for (sent, arrives) in [
            ("/a/b/?c=d", "/a/b/?c=d"),
            ("/a%20b", "/a%20b"),
            ("/a%3Fb?c=d%26e", "/a%3Fb?c=d%26e"),
            ("/100%25", "/100%25"),
            ("/%E4%B8%96%FF", "/%E4%B8%96%FF"),
            ("/a(1)*;b=c,d@e:f&g+h$i~j", "/a%281%29%2A;b=c,d@e:f&g+h$i~j"),
            // It is told apart from a slash by nobody on the way: so it is in kube-apiserver.
            ("/a%2Fb", "/a/b"),
            ("/a/../../b//c/./", "/b/c/"),
        ] {
            let response = send(&server, Request::get(format!("{way}{sent}"))).await;
            assert_eq!(response.status(), 200, "{way}{sent}");
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            let told: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(told["target"], arrives, "{way}{sent}");
        }
        // Relative links of a page would lead elsewhere.
        let response = send(&server, Request::get(format!("{way}?a=b"))).await;
        assert_eq!(response.status(), 301, "{way}");
        assert_eq!(response.headers()["location"], format!("{way}/?a=b"));
        let response = send(&server, Request::post(&way)).await;
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let told: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(told["target"], "/", "{way}");
    }
}

#[tokio::test]
async fn what_a_program_answers_is_passed_on_as_it_came() {
    let server = world().await;
    let way = "/api/v1/namespaces/default/pods/web/proxy/a?pretty=true";
    // To people, too, who would see an answer of the server's own in lines.
    let response = send(&server, Request::get(way).header(USER_AGENT, "curl/8")).await;
    let length = response.headers()["content-length"].to_str().unwrap().parse();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(length, Ok(bytes.len()));
    assert!(!bytes.contains(&b'\n'), "{}", String::from_utf8_lossy(&bytes));
}

#[tokio::test]
async fn nothing_is_passed_on_by_the_way_of_those_who_watch() {
    let server = world().await;
    for way in [
        "watch/namespaces/default/pods/web/proxy/a",
        "watch/namespaces/default/pods/web/exec?command=sh",
        "watch/namespaces/default/services/web:web/proxy/a",
        "watch/nodes/node/proxy/a",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let request = Request::builder().method(method).uri(format!("/api/v1/{way}"));
            assert_eq!(send(&server, request).await.status(), 404, "{method} {way}");
        }
    }
}

#[tokio::test]
async fn what_is_of_one_connection_stays_there_and_cookies_arrive_in_one_piece() {
    let server = world().await;
    let way = "/api/v1/namespaces/default/pods/web/proxy/cookies";
    let request = Request::get(way).header("cookie", "a=b").header("cookie", "c=d");
    let request = request.header("connection", "close, X-Hop").header("x-hop", "1");
    let response = send(&server, request.header("x-end", "2")).await;
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let told: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(told["cookies"], json!(["a=b; c=d"]));
    let has = |name: &str| told["headers"].as_array().unwrap().contains(&json!(name));
    assert!(has("x-end") && !has("x-hop"), "{told}");
}

#[tokio::test]
async fn a_proxy_to_a_service_finds_a_ready_pod_by_the_name_or_number_of_a_port() {
    let server = world().await;
    let client = Client::new(server.clone(), "default");
    for name in ["web:web", "web:80", "http:web:80", ":web:web"] {
        let (code, told) = get(&server, &format!("services/{name}/proxy/x")).await;
        assert_eq!((code, &told["target"]), (200, &json!("/x")), "{name}");
    }
    create_service(&client, "alone").await;
    create_service(&client, "empty").await;
    create_endpoints(&client, "empty", json!([])).await;
    create_service(&client, "waiting").await;
    let ports = json!([{"name": "web", "port": 80}]);
    let waiting = json!([{"notReadyAddresses": [address_of("web", "127.0.0.1")], "ports": ports}]);
    create_endpoints(&client, "waiting", waiting).await;
    create_service(&client, "strange").await;
    // An address that no Pod has: whoever may write Endpoints could lead the server anywhere.
    let strange = [address_of("web", "127.0.0.9"), json!({"ip": "127.0.0.1"})];
    let strange = json!([{"addresses": strange, "ports": ports}]);
    create_endpoints(&client, "strange", strange).await;
    for (name, code, words) in [
        ("web:81", 503, "no service port 81 found for service \"web\""),
        ("web:other", 503, "no endpoints available for service \"web:other\""),
        ("web", 503, "no endpoints available for service \"web\""),
        ("empty:web", 503, "no endpoints available for service \"empty\""),
        ("waiting:web", 503, "no endpoints available for service \"waiting:web\""),
        ("strange:web", 503, "no endpoints available for service \"strange:web\""),
        ("alone:web", 404, "endpoints \"alone\" not found"),
        ("missing:80", 404, "services \"missing\" not found"),
        ("ftp:web:80", 400, "invalid service request \"ftp:web:80\""),
        ("a:b:c:d", 400, "invalid service request \"a:b:c:d\""),
    ] {
        let (answered, status) = get(&server, &format!("services/{name}/proxy/")).await;
        assert_eq!((answered, &status["message"]), (code, &json!(words)), "{name}");
    }
}

#[tokio::test]
async fn a_proxy_to_a_pod_goes_to_its_address_or_says_why_not() {
    let server = world().await;
    let client = Client::new(server.clone(), "default");
    let port = program().await;
    for name in ["web".to_owned(), format!("web:{port}"), format!("http:web:{port}")] {
        let (code, told) = get(&server, &format!("pods/{name}/proxy/x")).await;
        assert_eq!((code, &told["target"]), (200, &json!("/x")), "{name}");
    }
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nowhere"},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    });
    create(&api(&client, "", "Pod"), pod).await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let refused = format!(
        "error trying to reach service: dial tcp 127.0.0.1:{free}: connect: connection refused"
    );
    for (name, code, words) in [
        ("nowhere".to_owned(), 400, "address not allowed"),
        ("missing:80".to_owned(), 404, "pods \"missing\" not found"),
        ("ftp:web:80".to_owned(), 400, "invalid pod request \"ftp:web:80\""),
        (format!("web:{free}"), 503, &refused),
    ] {
        let (answered, status) = get(&server, &format!("pods/{name}/proxy/")).await;
        assert_eq!((answered, &status["message"]), (code, &json!(words)), "{name}");
    }
}

#[tokio::test]
async fn a_proxy_speaks_tls_where_its_name_says_so_whoever_answers() {
    let server = world().await;
    let port = secured_program().await;
    for name in [
        "services/https:web:safe".to_owned(),
        "services/https:web:443".to_owned(),
        format!("pods/https:web:{port}"),
    ] {
        let (code, told) = get(&server, &format!("{name}/proxy/x?y=z")).await;
        assert_eq!((code, &told["target"]), (200, &json!("/x?y=z")), "{name}");
    }
    let (code, _) = get(&server, "services/https:web:web/proxy/x").await;
    assert_eq!(code, 503, "this program speaks no TLS");
}

#[tokio::test]
async fn a_program_behind_a_proxy_hears_neither_who_asks_nor_as_whom() {
    let server = world().await;
    let path = "/api/v1/namespaces/default/services/web:web/proxy/";
    for way in [path, "/api/v1/nodes/node/proxy/"] {
        let request = Request::get(way)
            .header("authorization", "Basic c2VjcmV0")
            .header("impersonate-user", "jane")
            .header("impersonate-group", "system:masters")
            .header("impersonate-uid", "1")
            .header("impersonate-extra-colour", "red")
            .header("x-colour", "blue");
        let response = send(&server, request).await;
        assert_eq!(response.status(), 200, "{way}");
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let told: Value = serde_json::from_slice(&bytes).unwrap();
        let heard: Vec<&str> =
            told["headers"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let secret = |name: &&str| name.starts_with("impersonate") || *name == "authorization";
        assert!(heard.contains(&"x-colour") && !heard.iter().any(secret), "{way}: {heard:?}");
    }
}

#[tokio::test]
async fn a_connection_that_becomes_another_one_goes_through_a_proxy() {
    let served = Served::begin().await;
    let url = format!("https://{}", served.address);
    let client = client_from(&served.access.kubeconfig(&url)).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    create_pod(&client, "web", "127.0.0.1", listener.local_addr().unwrap().port()).await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let agreed =
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
        stream.write_all(agreed).await.unwrap();
        let mut word = [0; 5];
        stream.read_exact(&mut word).await.unwrap();
        stream.write_all(&word).await.unwrap();
    });
    let mut stream = served.connect(HTTP1).await;
    let request = format!(
        "GET /api/v1/namespaces/default/pods/web/proxy/ HTTP/1.1\r\nHost: localhost\r\n\
         Authorization: Bearer {}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
        served.access.token
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("http/1.1 101 ") && head.contains("upgrade: echo"), "{head}");
    stream.write_all(b"hello").await.unwrap();
    let mut word = [0; 5];
    stream.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"hello");
}
