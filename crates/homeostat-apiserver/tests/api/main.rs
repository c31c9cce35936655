//! The API's promises, kept in-process through `kube::Client` on virtual time.

#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking and builds its objects in place"
)]

mod access;
mod addresses;
mod admitted;
mod aggregation;
mod apply;
mod certificates;
mod changes;
mod conformance;
mod conversion;
#[path = "../converter/mod.rs"]
mod converter;
mod definitions;
mod deletion;
mod durable;
mod guarantees;
mod limits;
mod metrics;
mod namespaces;
mod pods;
mod policies;
mod priorities;
mod proxies;
#[path = "../secured/mod.rs"]
mod secured;
mod served;
mod services;
mod subresources;
mod tls;
mod unread;
mod verbs;
mod versions;
mod watch;
#[path = "../webhook_server/mod.rs"]
mod webhook_server;
mod webhooks;
mod websocket;

use std::fmt::Debug;

use homeostat_apiserver::{Server, ServerConfig};
use homeostat_env::Env;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

/// A client of a fresh server.
fn client() -> Client {
    client_of(|config| config)
}

fn client_of(change: impl FnOnce(ServerConfig) -> ServerConfig) -> Client {
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    Client::new(Server::new(change(ServerConfig::new(env))), "default")
}

/// Objects of any kind, as JSON.
fn api(client: &Client, group: &str, kind: &str) -> Api<DynamicObject> {
    Api::default_namespaced_with(client.clone(), &resource(group, kind))
}

fn cluster_api(client: &Client, group: &str, kind: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &resource(group, kind))
}

fn resource(group: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind))
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

async fn create(api: &Api<DynamicObject>, value: Value) -> DynamicObject {
    api.create(&PostParams::default(), &object(value)).await.unwrap()
}

/// The code and reason of a refusal.
fn refusal<T: Debug>(result: Result<T, kube::Error>) -> (u16, String) {
    match result.unwrap_err() {
        kube::Error::Api(status) => (status.code, status.reason),
        other => panic!("{other}"),
    }
}
