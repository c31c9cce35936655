//! The documents that describe the API, compared whole: OpenAPI v2 as JSON and as protobuf, every
//! v3 document and the list of them, with custom resources.
//!
//! Other tests define resources on the same kube-apiserver; what is about them is left out.

mod wire;

use std::collections::{BTreeMap, BTreeSet};

use homeostat_apiserver::{Server, ServerConfig};
use homeostat_env::Env;
use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::difference::{self, Difference};
use crate::script::{Step, Until};
use crate::side::{Answer, Side};

const MESSAGE: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// The resources that are defined, with all that schemas can say; `{{group}}` is their group.
const DEFINITIONS: &str = include_str!("definitions.json");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_describes_itself_as_kube_apiserver_does() {
    let Some(oracle) = crate::oracle().await else { return };
    let _alone = crate::ALONE.lock().await;
    let env = Env::system();
    let group = format!("{}.example.com", env.random_alphanumeric(8).to_lowercase());
    let ours = Client::new(Server::new(ServerConfig::new(env)), "default");
    let definitions: Vec<Value> =
        serde_json::from_str(&DEFINITIONS.replace("{{group}}", &group)).unwrap();
    for client in [&ours, &oracle] {
        define(client, &definitions).await;
    }
    let (our, their) =
        (Documents::read(&ours, &group).await, Documents::read(&oracle, &group).await);
    for definition in &definitions {
        let name = definition["metadata"]["name"].as_str().unwrap();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        side(&oracle).raw(&step("DELETE", &path)).await;
    }
    let mut found = compare("/openapi/v2", our.v2, their.v2);
    found.extend(compare("/openapi/v2 as protobuf", our.message, their.message));
    let names = |all: &BTreeMap<String, Value>| json!(all.keys().collect::<Vec<_>>());
    found.extend(compare("/openapi/v3", names(&our.v3), names(&their.v3)));
    for (path, document) in our.v3 {
        let their = their.v3.get(&path).cloned().unwrap_or_default();
        found.extend(compare(&path, document, their));
    }
    for difference in &found {
        eprintln!("{difference}");
    }
    assert!(found.is_empty(), "{} differences", found.len());
}

fn compare(document: &str, ours: Value, theirs: Value) -> Vec<Difference> {
    let answer = |body| Answer { code: 200, headers: BTreeMap::new(), body, asked: Value::Null };
    let mut found = difference::between("documents", document, &answer(ours), &answer(theirs));
    // Whole documents are no help to a reader.
    found.iter_mut().for_each(Difference::shorten);
    found
}

fn side(client: &Client) -> Side {
    Side::new(client.clone(), "default")
}

fn step(method: &str, path: &str) -> Step {
    Step { method: method.to_owned(), path: path.to_owned(), ..Step::default() }
}

/// Makes the definitions, and waits until the documents know them.
async fn define(client: &Client, definitions: &[Value]) {
    let mut side = side(client);
    for definition in definitions {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let made =
            side.send(&Step { headers, body: definition.to_string(), ..step("POST", path) }).await;
        assert_eq!(made.code, 201, "{}", made.body);
    }
    for definition in definitions {
        let (names, group) = (&definition["spec"]["names"], &definition["spec"]["group"]);
        for version in definition["spec"]["versions"].as_array().unwrap() {
            let version = version["name"].as_str().unwrap();
            let group = group.as_str().unwrap();
            let plural = names["plural"].as_str().unwrap();
            let v3 = format!("/openapi/v3/apis/{group}/{version}");
            for path in ["/openapi/v2", v3.as_str()] {
                let words = format!("/{plural}/{{name}}\"");
                let until = Some(Until { code: 200, words });
                side.send(&Step { until, ..step("GET", path) }).await;
            }
        }
    }
}

/// What a server says about itself.
struct Documents {
    v2: Value,
    message: Value,
    v3: BTreeMap<String, Value>,
}

impl Documents {
    async fn read(client: &Client, group: &str) -> Self {
        let side = side(client);
        let mut v2 = side.raw(&step("GET", "/openapi/v2")).await;
        let own: String = group.split('.').rev().collect::<Vec<_>>().join(".");
        for (part, foreign) in [("paths", "/apis/"), ("definitions", "com.example.")] {
            let members = v2[part].as_object_mut().unwrap();
            members.retain(|name, _| is_shown(name, foreign, group, &own));
        }
        let request = Request::get("/openapi/v2").header("accept", MESSAGE);
        let response = client.send(request.body(Body::empty()).unwrap()).await.unwrap();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let keep = |name: &str| {
            is_shown(name, "/apis/", group, &own) && is_shown(name, "com.example.", group, &own)
        };
        let message = wire::read(&bytes, &keep);
        let index = side.raw(&step("GET", "/openapi/v3")).await;
        let mut v3 = BTreeMap::new();
        let paths: BTreeSet<String> = index["paths"].as_object().unwrap().keys().cloned().collect();
        for path in paths {
            if is_shown(&format!("/{path}"), "/apis/", group, &own) {
                let document = side.raw(&step("GET", &format!("/openapi/v3/{path}"))).await;
                v3.insert(path, document);
            }
        }
        Self { v2, message, v3 }
    }
}

/// Whether a path or a type is built in, or of this test.
fn is_shown(name: &str, prefix: &str, group: &str, reversed: &str) -> bool {
    let Some(rest) = name.strip_prefix(prefix) else { return true };
    !(rest.contains(".example.com") || prefix == "com.example.")
        || rest.starts_with(group)
        || name.starts_with(reversed)
}
