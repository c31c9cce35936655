//! One of the two servers: sends steps to it and keeps what later steps refer to.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use homeostat_env::Env;
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use regex::{Captures, Regex};
use serde_json::{Value, json};

use crate::live_watch::LiveWatch;
use crate::normal::Normal;
use crate::reviewer::Reviewer;
use crate::script::Step;

/// How often a step with `@until` is sent, a twentieth of a second apart.
const ATTEMPTS: u32 = 200;

/// Headers of the connection, which the other side has no part in.
const TRANSPORT: [&str; 3] = ["content-length", "date", "transfer-encoding"];

/// What a server said, normalised.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    /// All but those of the transport.
    pub(crate) headers: BTreeMap<String, String>,
    /// JSON (or YAML) as such, a watch as a list of events, anything else as a string.
    pub(crate) body: Value,
    /// What webhooks were asked meanwhile.
    pub(crate) asked: Value,
}

/// One server as one sequence sees it.
pub(crate) struct Side {
    env: Env,
    client: Client,
    variables: BTreeMap<String, String>,
    pattern: Regex,
    normal: Normal,
    /// Schemas and levels of flow control, by their uid.
    flows: BTreeMap<String, String>,
    /// Who answers for its admission webhooks.
    reviewer: Option<Arc<Reviewer>>,
    /// Those that go on.
    watches: BTreeMap<String, LiveWatch>,
}

impl Side {
    /// A side whose namespace is `id`.
    pub(crate) fn new(client: Client, id: &str) -> Self {
        let variables = BTreeMap::from([("ns".to_owned(), id.to_owned())]);
        let pattern = Regex::new(r"\{\{([a-z0-9.]+)\}\}").unwrap();
        let (normal, flows) = (Normal::default(), BTreeMap::new());
        let (env, reviewer, watches) = (Env::system(), None, BTreeMap::new());
        Self { env, client, variables, pattern, normal, flows, reviewer, watches }
    }

    /// Its admission webhooks are there.
    pub(crate) fn reviewed_by(&mut self, reviewer: &Arc<Reviewer>) {
        let url = &reviewer.served.url;
        self.set("webhook", &format!("{url}/{}", self.namespace()));
        self.set("authority", &reviewer.served.ca);
        for (text, role) in [(url, "<webhooks>"), (&reviewer.served.ca, "<authority>")] {
            self.normal.know(text, role);
        }
        self.reviewer = Some(reviewer.clone());
    }

    /// Gives a variable a value.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    fn namespace(&self) -> &str {
        &self.variables["ns"]
    }

    /// Makes the namespace, and in it the account that Pods need.
    pub(crate) async fn prepare(&self) {
        let name = self.namespace();
        let space = json!({"metadata": {"name": name}});
        let account = json!({"metadata": {"name": "default"}});
        let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
        for (path, object) in [("/api/v1/namespaces", space), (accounts.as_str(), account)] {
            let (code, _, text) = self.exchange("POST", path, &[], object.to_string()).await;
            assert_eq!(code, 201, "{text}");
        }
    }

    /// Removes the namespace; nothing else would.
    pub(crate) async fn clean_up(&self) {
        let name = self.namespace();
        let path = format!("/api/v1/namespaces/{name}");
        self.exchange("DELETE", &path, &[], String::new()).await;
        let empty = json!({"metadata": {"name": name}, "spec": {"finalizers": []}});
        self.exchange("PUT", &format!("{path}/finalize"), &[], empty.to_string()).await;
    }

    /// Sends a step and gives the body as it is.
    pub(crate) async fn raw(&self, step: &Step) -> Value {
        let (path, body) = (self.filled(&step.path), self.filled(&step.body));
        let (_, _, text) = self.exchange(&step.method, &path, &step.headers, body).await;
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Sends a step and normalises the answer.
    pub(crate) async fn send(&mut self, step: &Step) -> Answer {
        if let Some((name, words)) = &step.end {
            let watch = self.watches.remove(name).expect("a watch of that name is under way");
            let text = watch.until(&self.env, &self.filled(words)).await;
            let body = self.normal.value(read("application/json", true, &text));
            return Answer { body, ..Answer::default() };
        }
        let path = self.filled(&step.path);
        let body = self.filled(&step.body);
        let sent: Vec<_> =
            step.headers.iter().map(|(name, value)| (name.clone(), self.filled(value))).collect();
        let changes = ["PATCH", "PUT", "DELETE"].contains(&step.method.as_str());
        if path.contains("resourceVersion=") || changes {
            // kube-apiserver reads from a cache which may lag behind: what is changed first is what
            // that has, which webhooks see, and its warnings stay when the newest version is
            // changed after all. A list of the newest state comes from the same cache, once it has
            // caught up.
            self.exchange("GET", &collection(&path), &[], String::new()).await;
        }
        if let Some(name) = &step.watch {
            let response = self.client.send(asked(&step.method, &path, &sent, body)).await.unwrap();
            let (parts, body) = response.into_parts();
            let headers = self.shown(&parts.headers).await;
            self.watches.insert(name.clone(), LiveWatch::new(body));
            return Answer { code: parts.status.as_u16(), headers, ..Answer::default() };
        }
        for (path, manner) in &step.manners {
            let reviewer = self.reviewer.as_ref().expect("nobody to give answers");
            reviewer.behave(self.namespace(), path, manner.map(|text| self.filled(text)));
        }
        let mut attempts = 0;
        let (code, headers, text) = loop {
            attempts += 1;
            let answer = self.exchange(&step.method, &path, &sent, body.clone()).await;
            let holds = step.until.as_ref().is_none_or(|until| until.holds(answer.0, &answer.2));
            if holds || attempts > ATTEMPTS {
                break answer;
            }
            self.env.sleep(Duration::from_millis(50)).await;
        };
        let mut shown = self.shown(&headers).await;
        if step.headers.iter().any(|(name, _)| name == "user-agent") {
            // Whoever calls itself a program for people gets JSON in lines.
            shown.insert("(lines)".to_owned(), text.trim_end().lines().count().to_string());
        }
        if !text.is_empty() && !path.contains("watch=") {
            // Who reads it in a terminal sees where it ends.
            shown.insert("(ends with a line)".to_owned(), text.ends_with('\n').to_string());
        }
        let media = shown.get("content-type").map_or("", String::as_str);
        let body = read(media, path.contains("watch="), &text);
        // What was only tried has no revision of its own.
        let is_tried = path.contains("dryRun=");
        if let Some(name) = step.save.as_ref().filter(|_| !is_tried) {
            self.save(name, &body);
            if let Some(tag) = headers.get("etag").and_then(|tag| tag.to_str().ok()) {
                self.variables.insert(format!("{name}.etag"), tag.to_owned());
            }
        }
        let body = self.normal.value(body);
        let asked = self.reviewer.as_ref().map(|all| all.asked(self.namespace()));
        let asked = asked.filter(|_| step.until.is_none()).unwrap_or_default();
        Answer { code, headers: shown, body, asked: self.normal.value(asked.into()) }
    }

    /// All headers but those that tell of the transport, with roles for what cannot be equal.
    async fn shown(&mut self, headers: &HeaderMap) -> BTreeMap<String, String> {
        let is_flow = |name: &str| name.starts_with("x-kubernetes-pf-");
        let mut uids = headers.iter().filter(|(name, _)| is_flow(name.as_str()));
        if uids.any(|(_, uid)| uid.to_str().is_ok_and(|uid| !self.flows.contains_key(uid))) {
            self.learn_flows().await;
        }
        let mut shown = BTreeMap::new();
        for name in headers.keys().filter(|name| !TRANSPORT.contains(&name.as_str())) {
            let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            let value = values.collect::<Vec<_>>().join("; ");
            let value = match name.as_str() {
                "audit-id" if self.normal.is_uid(&value) => "<uid>".to_owned(),
                "etag" | "last-modified" => format!("<{name}>"),
                name if name.starts_with("x-kubernetes-pf-") => {
                    self.flows.get(&value).cloned().unwrap_or(value)
                }
                _ => self.normal.text(&value),
            };
            shown.insert(name.to_string(), value);
        }
        shown
    }

    /// Learns the names of the schemas and levels that headers tell the uids of.
    async fn learn_flows(&mut self) {
        for plural in ["flowschemas", "prioritylevelconfigurations"] {
            let path = format!("/apis/flowcontrol.apiserver.k8s.io/v1/{plural}");
            let (_, _, text) = self.exchange("GET", &path, &[], String::new()).await;
            let list: Value = serde_json::from_str(&text).unwrap();
            for item in list["items"].as_array().into_iter().flatten() {
                let text = |field: &str| item["metadata"][field].as_str().unwrap().to_owned();
                self.flows.insert(text("uid"), text("name"));
            }
        }
    }

    fn save(&mut self, name: &str, body: &Value) {
        let fields =
            [("rv", "resourceVersion"), ("uid", "uid"), ("name", "name"), ("continue", "continue")];
        for (short, field) in fields {
            if let Some(value) = body.pointer(&format!("/metadata/{field}")).and_then(Value::as_str)
            {
                self.variables.insert(format!("{name}.{short}"), value.to_owned());
            }
        }
        if let Some(token) = body.pointer("/status/token").and_then(Value::as_str) {
            self.variables.insert(format!("{name}.token"), token.to_owned());
        }
    }

    fn filled(&self, text: &str) -> String {
        let fill = |found: &Captures<'_>| match &found[1] {
            "medium" => "x".repeat(1_100_000),
            "large" => "x".repeat(3_200_000),
            "operations" => {
                vec![r#"{"op": "add", "path": "/data/k", "value": "2"}"#; 10_001].join(",")
            }
            name => self.variables.get(name).cloned().unwrap_or_else(|| format!("unknown-{name}")),
        };
        self.pattern.replace_all(text, fill).into_owned()
    }

    async fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: String,
    ) -> (u16, HeaderMap, String) {
        let request = asked(method, path, headers, body);
        // A server that panics says nothing.
        let response = match self.client.send(request).await {
            Ok(response) => response,
            Err(error) => return (0, HeaderMap::new(), error.to_string()),
        };
        let (parts, body) = response.into_parts();
        let mut bytes = body.collect().await.unwrap().to_bytes().to_vec();
        if parts.headers.get("content-encoding").is_some_and(|encoding| encoding == "gzip") {
            let mut text = Vec::new();
            if flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut text).is_ok() {
                bytes = text;
            }
        }
        (parts.status.as_u16(), parts.headers, String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The request as it goes out.
fn asked(method: &str, path: &str, headers: &[(String, String)], body: String) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if !headers.iter().any(|(name, _)| name == "user-agent") {
        request = request.header("user-agent", "differential/1");
    }
    if headers.is_empty() && !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    let is_protobuf = |(_, value): &(String, String)| value.ends_with("protobuf");
    let bytes = match BASE64_STANDARD.decode(&body) {
        Ok(bytes) if headers.iter().any(is_protobuf) => bytes,
        _ => body.into_bytes(),
    };
    request.body(Body::from(bytes)).unwrap()
}

fn read(media: &str, watch: bool, text: &str) -> Value {
    let events = || serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match media {
        media if watch && media.starts_with("application/json") => {
            let read: Result<Vec<Value>, _> = events().collect();
            read.map_or_else(
                |_| text.into(),
                |events| match &events[..] {
                    [status] if status["kind"] == "Status" => status.clone(),
                    _ => events.into(),
                },
            )
        }
        media if media.starts_with("application/json") => {
            serde_json::from_str(text).unwrap_or_else(|_| text.into())
        }
        media if media.starts_with("application/yaml") => {
            serde_saphyr::from_str(text).unwrap_or_else(|_| text.into())
        }
        _ => text.into(),
    }
}

/// The path of the collection that a path is about, or is in.
fn collection(path: &str) -> String {
    let parts: Vec<_> = path.split('?').next().unwrap_or_default().split('/').collect();
    let first = if parts.get(1) == Some(&"api") { 3 } else { 4 };
    let spaced = parts.get(first) == Some(&"namespaces") && parts.len() > first + 2;
    let resource = if spaced { first + 2 } else { first };
    parts[..parts.len().min(resource + 1)].join("/")
}

#[test]
fn an_object_is_in_the_collection_of_its_kind() {
    for (path, expected) in [
        ("/api/v1/namespaces/n/pods/a?x=1", "/api/v1/namespaces/n/pods"),
        ("/apis/apps/v1/namespaces/n/deployments", "/apis/apps/v1/namespaces/n/deployments"),
        ("/api/v1/namespaces/n", "/api/v1/namespaces"),
        ("/apis/storage.k8s.io/v1/csinodes/a", "/apis/storage.k8s.io/v1/csinodes"),
    ] {
        assert_eq!(collection(path), expected);
    }
}
