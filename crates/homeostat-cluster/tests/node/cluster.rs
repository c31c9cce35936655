//! One embedded API server with one node agent, for tests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{SinkExt, StreamExt};
use homeostat_apiserver::{Body, NodeConnector, Server, ServerConfig};
use homeostat_cluster::node::{Agent, AgentConfig, NodeService, RunningAgent};
use homeostat_env::Env;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

pub(crate) struct Cluster {
    pub(crate) client: kube::Client,
    pub(crate) env: Env,
    pub(crate) agent: RunningAgent,
    pub(crate) service: NodeService,
}

/// The one node of the cluster, as the API server reaches it.
struct Node(NodeService);

impl NodeConnector for Node {
    fn call(&self, _: &str, request: Request<Body>) -> BoxFuture<'static, Response<Body>> {
        let service = self.0.clone();
        Box::pin(async move { service.handle(request).await })
    }
}

/// The status of a condition of a Pod, or the empty string.
pub(crate) fn condition(pod: &Value, kind: &str) -> String {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|one| one["type"] == kind);
    found.and_then(|one| one["status"].as_str().map(str::to_owned)).unwrap_or_default()
}

/// Long enough for a machine that has much else to do: what happens is not waited for any longer.
const LIMIT: Duration = Duration::from_secs(120);

impl Cluster {
    pub(crate) async fn start() -> Self {
        Self::start_through(|server| kube::Client::new(server, "default")).await
    }

    /// With an agent, and a client, that reach the server in the way given.
    pub(crate) async fn start_through(way: impl FnOnce(Server) -> kube::Client) -> Self {
        Self::start_on(Server::new(ServerConfig::new(Env::system())), way).await
    }

    /// On a server that is there already.
    pub(crate) async fn start_on(server: Server, way: impl FnOnce(Server) -> kube::Client) -> Self {
        let env = Env::system();
        let client = way(server.clone());
        let mut config = AgentConfig::new(client.clone(), env.clone());
        config.helper = Some(env!("CARGO_BIN_EXE_homeostat-sandbox").into());
        config.node = Some("the-node".into());
        let agent = Box::pin(Agent::start(config)).await.unwrap();
        let service = agent.service();
        server.connect_nodes(Arc::new(Node(service.clone())));
        Self { client, env, agent, service }
    }

    pub(crate) async fn stop(self) {
        self.agent.stop().await;
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let bytes = body.map(|body| serde_json::to_vec(body).unwrap()).unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(bytes)
            .unwrap();
        self.client.request(request).await
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> Value {
        self.call("POST", path, Some(object)).await.unwrap()
    }

    /// Makes an object of the core group.
    pub(crate) async fn create(&self, plural: &str, mut object: Value) -> Value {
        let path = format!("/api/v1/namespaces/default/{plural}");
        let kinds = [
            ("pods", "Pod"),
            ("secrets", "Secret"),
            ("configmaps", "ConfigMap"),
            ("services", "Service"),
        ];
        let (_, kind) = kinds.iter().find(|(name, _)| *name == plural).unwrap();
        object["apiVersion"] = json!("v1");
        object["kind"] = json!(kind);
        self.call("POST", &path, Some(&object)).await.unwrap()
    }

    /// Makes a Pod that is bound to the node.
    pub(crate) async fn run(&self, name: &str, spec: Value) -> Value {
        self.bind(json!({ "name": name, "labels": { "app": name } }), spec).await
    }

    /// The same with a finalizer: it stays after its deletion.
    pub(crate) async fn run_held(&self, name: &str, spec: Value) -> Value {
        self.bind(json!({ "name": name, "finalizers": ["test.homeostat.dev/held"] }), spec).await
    }

    async fn bind(&self, metadata: Value, mut spec: Value) -> Value {
        spec["nodeName"] = json!("the-node");
        self.create("pods", json!({ "metadata": metadata, "spec": spec })).await
    }

    /// Changes an object by a patch of the sort that `kubectl` sends.
    async fn change(&self, path: &str, sort: &str, patch: &Value) -> Value {
        let sort = format!("application/{sort}-patch+json");
        let request = http::Request::patch(path).header("content-type", sort);
        let request = request.body(serde_json::to_vec(patch).unwrap()).unwrap();
        self.client.request(request).await.unwrap()
    }

    pub(crate) async fn patch(&self, pod: &str, part: &str, patch: &Value) -> Value {
        let path = format!("/api/v1/namespaces/default/pods/{pod}{part}");
        self.change(&path, "strategic-merge", patch).await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Value {
        self.change(path, "merge", patch).await
    }

    pub(crate) async fn delete(&self, name: &str) {
        let path = format!("/api/v1/namespaces/default/pods/{name}");
        self.call("DELETE", &path, None).await.unwrap();
    }

    pub(crate) async fn get(&self, name: &str) -> Option<Value> {
        let path = format!("/api/v1/namespaces/default/pods/{name}");
        match self.call("GET", &path, None).await {
            Ok(pod) => Some(pod),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until the Pod is as wanted.
    pub(crate) async fn until(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = None;
        let waiting = async {
            loop {
                last = self.get(name).await;
                if let Some(pod) = last.clone().filter(|pod| wanted(pod)) {
                    return pod;
                }
                self.env.sleep(Duration::from_millis(10)).await;
            }
        };
        match self.env.timeout(LIMIT, waiting).await {
            Ok(pod) => pod,
            Err(_) => panic!("{name} is not as wanted: {:#}", last.unwrap_or_default()["status"]),
        }
    }

    /// Waits until any Pod is as wanted.
    pub(crate) async fn until_any(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let waiting = async {
            loop {
                last = self.call("GET", "/api/v1/namespaces/default/pods", None).await.unwrap();
                if let Some(pod) = last["items"].as_array().unwrap().iter().find(|pod| wanted(pod))
                {
                    return pod.clone();
                }
                self.env.sleep(Duration::from_millis(10)).await;
            }
        };
        match self.env.timeout(LIMIT, waiting).await {
            Ok(pod) => pod,
            Err(_) => panic!("no Pod is as wanted: {last:#}"),
        }
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        let waiting = async {
            while self.get(name).await.is_some() {
                self.env.sleep(Duration::from_millis(10)).await;
            }
        };
        self.env.timeout(LIMIT, waiting).await.unwrap();
    }

    /// The log of a Pod, asked for at the API; empty before its container has started.
    pub(crate) async fn logs(&self, name: &str, query: &str) -> String {
        let path = format!("/api/v1/namespaces/default/pods/{name}/log?{query}");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.client.request_text(request).await.unwrap_or_default()
    }

    /// Why the log of a Pod cannot be read.
    pub(crate) async fn refused_log(&self, name: &str, query: &str) -> String {
        let path = format!("/api/v1/namespaces/default/pods/{name}/log?{query}");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.client.request_text(request).await.unwrap_err().to_string()
    }

    pub(crate) async fn until_log(&self, name: &str, text: &str) {
        let waiting = async {
            while !self.logs(name, "").await.contains(text) {
                self.env.sleep(Duration::from_millis(10)).await;
            }
        };
        self.env.timeout(LIMIT, waiting).await.unwrap();
    }

    /// Waits for an event about an object of that name.
    pub(crate) async fn until_event(&self, name: &str, reason: &str) -> Value {
        let waiting = async {
            loop {
                let events = self.call("GET", "/api/v1/namespaces/default/events", None).await;
                let events = events.unwrap()["items"].as_array().cloned().unwrap();
                let wanted = |event: &Value| {
                    event["involvedObject"]["name"] == name && event["reason"] == reason
                };
                if let Some(event) = events.into_iter().find(wanted) {
                    return event;
                }
                self.env.sleep(Duration::from_millis(10)).await;
            }
        };
        self.env.timeout(LIMIT, waiting).await.unwrap()
    }

    /// The body of `GET /` there; `None` when nobody answers.
    pub(crate) async fn http(&self, address: &str) -> Option<String> {
        let stream = tokio::net::TcpStream::connect(address).await.ok()?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        let request = http::Request::get("/").header("host", address);
        let answer =
            sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.ok()?;
        let body = answer.into_body().collect().await.ok()?.to_bytes();
        String::from_utf8(body.to_vec()).ok()
    }

    /// A WebSocket to the node.
    async fn socket(
        &self,
        path: &str,
    ) -> Result<WebSocketStream<tokio::net::TcpStream>, tokio_tungstenite::tungstenite::Error> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = self.service.clone();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = hyper::service::service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, std::convert::Infallible>(service.handle(request).await) }
            });
            let server = hyper::server::conn::http1::Builder::new();
            // A client that is refused hangs up.
            let _ = server.serve_connection(TokioIo::new(stream), answer).with_upgrades().await;
        });
        let mut request = format!("ws://{address}{path}").into_client_request().unwrap();
        let protocol = "v5.channel.k8s.io".parse().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", protocol);
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        Ok(tokio_tungstenite::client_async(request, stream).await?.0)
    }

    /// What the node says to a request for a WebSocket that it refuses.
    pub(crate) async fn refused(&self, path: &str) -> String {
        match self.socket(path).await {
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => {
                String::from_utf8_lossy(response.body().as_deref().unwrap_or_default()).into()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Runs a command, or attaches, over a WebSocket; what came on each channel.
    pub(crate) async fn exec(&self, path: &str, input: &[u8]) -> BTreeMap<u8, String> {
        let mut socket = self.socket(path).await.unwrap();
        socket.send(Message::Binary([&[0], input].concat().into())).await.unwrap();
        socket.send(Message::Binary(vec![255, 0].into())).await.unwrap();
        let mut seen: BTreeMap<u8, String> = BTreeMap::new();
        while let Some(Ok(Message::Binary(data))) = socket.next().await {
            let text = String::from_utf8_lossy(&data[1..]).into_owned();
            seen.entry(data[0]).or_default().push_str(&text);
        }
        seen
    }

    /// Runs a command and types without a pause until it has ended; what came on the channel of errors.
    pub(crate) async fn exec_typing(&self, path: &str) -> String {
        let (mut typed, mut screen) = self.socket(path).await.unwrap().split();
        let mut end = String::new();
        let read = async {
            while let Some(Ok(Message::Binary(data))) = screen.next().await {
                if data[0] == 3 {
                    end.push_str(&String::from_utf8_lossy(&data[1..]));
                }
            }
        };
        let write = async {
            // The node may hang up first.
            while typed.send(Message::Binary(b"\0x\n".to_vec().into())).await.is_ok() {
                tokio::task::yield_now().await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = read => {}
            () = write => {}
        }
        end
    }

    /// Attaches, types, and hangs up when the container has written `wanted`; what it has written.
    pub(crate) async fn attach_until(&self, path: &str, input: &[u8], wanted: &str) -> String {
        let mut socket = self.socket(path).await.unwrap();
        socket.send(Message::Binary([&[0], input].concat().into())).await.unwrap();
        let mut seen = String::new();
        while !seen.contains(wanted) {
            let Some(Ok(Message::Binary(data))) = socket.next().await else { break };
            if data[0] == 1 {
                seen.push_str(&String::from_utf8_lossy(&data[1..]));
            }
        }
        seen
    }
}
