//! Calls to webhooks: where a `clientConfig` leads, and the one request that is sent there.
//!
//! Everything but the bytes on the wire is decided here; the wire itself is a [`WebhookConnector`],
//! so that whoever embeds the server can answer in-process. It knows neither admission nor
//! conversion.

mod reply;
mod tls;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::registry::Registry;

pub(crate) use tls::TlsConnector;

/// Where a webhook is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookAddress {
    /// The URL, as errors show it.
    pub url: String,
    /// The host and port to connect to.
    pub connect: String,
    /// The name its certificate must bear.
    pub server_name: String,
    /// The path and query of the request.
    pub path: String,
    /// The authorities that may have signed its certificate, as PEM; empty for those that this host
    /// trusts.
    pub ca: Vec<u8>,
}

/// What a webhook said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookAnswer {
    /// The code of the response.
    pub code: u16,
    /// Its `Content-Type`, which matters only where it is to be told what was said.
    pub media_type: String,
    /// Its body.
    pub body: Bytes,
}

impl WebhookAnswer {
    /// An answer of JSON.
    pub fn json(code: u16, body: impl Into<Bytes>) -> Self {
        Self { code, media_type: "application/json".to_owned(), body: body.into() }
    }
}

/// What a webhook said, or why it said nothing.
pub type WebhookReply = Result<WebhookAnswer, String>;

/// The way to webhooks.
pub trait WebhookConnector: fmt::Debug + Send + Sync {
    /// Posts a JSON body; the error says why there is no reply, in words for people.
    fn post(&self, address: WebhookAddress, body: Bytes) -> BoxFuture<'static, WebhookReply>;
}

/// Posts `body` to where `client` (a `clientConfig`) leads, and reads the JSON that comes back.
///
/// # Errors
/// Why there is none, in the words of kube-apiserver.
pub(crate) async fn call(
    registry: &Registry,
    client: &Value,
    timeout: u64,
    body: &Value,
) -> Result<Value, String> {
    let address = address(registry, client, timeout)?;
    let url = address.url.clone();
    let posted = registry.webhooks().post(address, body.to_string().into());
    let reply = registry.env.timeout(Duration::from_secs(timeout), posted).await;
    let posting = |why: &str| format!("Post {url:?}: {why}");
    match reply {
        Err(_) => Err(posting("context deadline exceeded")),
        Ok(Err(why)) => Err(posting(&why)),
        Ok(Ok(reply)) => reply::read(&reply),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}

fn address(registry: &Registry, client: &Value, timeout: u64) -> Result<WebhookAddress, String> {
    let ca = STANDARD.decode(text(client, "caBundle")).unwrap_or_default();
    let Some(service) = client.get("service").filter(|service| service.is_object()) else {
        let url = text(client, "url");
        let uri: http::Uri = url.parse().map_err(|error| format!("{error}"))?;
        let host = uri.host().ok_or_else(|| format!("{url:?} names no host"))?;
        let path = uri.path();
        let asked = uri.query().map_or_else(String::new, |query| format!("{query}&"));
        return Ok(WebhookAddress {
            url: format!("{url}?{asked}timeout={timeout}s"),
            connect: format!("{host}:{}", uri.port_u16().unwrap_or(443)),
            server_name: host.trim_matches(['[', ']']).to_owned(),
            path: format!("{path}?{asked}timeout={timeout}s"),
            ca,
        });
    };
    let (namespace, name) = (text(service, "namespace"), text(service, "name"));
    let port = service.get("port").and_then(Value::as_u64).unwrap_or(443);
    let path = format!("/{}?timeout={timeout}s", text(service, "path").trim_start_matches('/'));
    let host = format!("{name}.{namespace}.svc");
    let url = format!("https://{host}:{port}{path}");
    let unreachable = |why: String| format!("Post {url:?}: {why}");
    let found = registry
        .peek("services", namespace, name)
        .ok_or_else(|| unreachable(format!("service {name:?} not found")))?;
    let ports = found.pointer("/spec/ports").and_then(Value::as_array);
    let offered = ports.into_iter().flatten().any(|offer| offer["port"].as_u64() == Some(port));
    if !offered {
        return Err(unreachable(format!("no service port {port} found for service {name:?}")));
    }
    let address = found.pointer("/spec/clusterIP").and_then(Value::as_str).unwrap_or("");
    let connect = format!("{address}:{port}");
    if connect.parse::<SocketAddr>().is_err() {
        return Err(unreachable(format!("service {name:?} has no cluster address")));
    }
    Ok(WebhookAddress { url: url.clone(), connect, server_name: host, path, ca })
}
