//! Watches over a WebSocket, as browsers open them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::served::Served;
use super::tls::{HTTP1, client_from};
use super::{api, create};

const WATCH: &str =
    "/api/v1/namespaces?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Ddefault";
pub(crate) const HANDSHAKE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

impl Served {
    /// Sends a request and gives the head of the answer, and the connection.
    async fn ask(&self, headers: &str) -> (String, TlsStream<TcpStream>) {
        self.ask_for(WATCH, headers).await
    }

    async fn ask_for(&self, target: &str, headers: &str) -> (String, TlsStream<TcpStream>) {
        let mut stream = self.connect(HTTP1).await;
        let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        (String::from_utf8(head).unwrap(), stream)
    }
}

fn status(head: &str) -> &str {
    head.lines().next().unwrap_or_default()
}

#[tokio::test]
async fn a_watch_over_a_websocket_sends_an_event_per_message_and_says_goodbye() {
    let served = Served::begin().await;
    let token = URL_SAFE_NO_PAD.encode(&served.access.token);
    let protocols = format!("base64url.bearer.authorization.k8s.io.{token}, mine");
    let headers =
        format!("{HANDSHAKE}Origin: http://here\r\nSec-WebSocket-Protocol: {protocols}\r\n");
    let (head, stream) = served.ask(&headers).await;
    assert_eq!(status(&head), "HTTP/1.1 101 Switching Protocols");
    let head = head.to_lowercase();
    assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    assert!(head.contains("sec-websocket-protocol: mine"), "{head}");
    assert!(!head.contains(&token.to_lowercase()), "{head}");

    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
    let Some(Ok(Message::Text(event))) = socket.next().await else { panic!("no event") };
    let event: Value = serde_json::from_str(&event).unwrap();
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["metadata"]["name"], "default");
    let Some(Ok(Message::Close(Some(end)))) = socket.next().await else { panic!("no end") };
    assert_eq!(u16::from(end.code), 1000);
}

#[tokio::test]
async fn an_event_is_one_message_however_large_its_object_is() {
    let served = Served::begin().await;
    let url = format!("https://{}", served.address);
    let maps = api(&client_from(&served.access.kubeconfig(&url)).await, "", "ConfigMap");
    let sizes = [10_000, 10, 100_000];
    for (number, size) in sizes.iter().enumerate() {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("map-{number}")},
            "data": {"filling": "x".repeat(*size)},
        });
        create(&maps, map).await;
    }
    let bearer = format!("Authorization: Bearer {}\r\n", served.access.token);
    let headers = format!("{bearer}{HANDSHAKE}Origin: http://here\r\n");
    let watch = "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1";
    let (head, stream) = served.ask_for(watch, &headers).await;
    assert_eq!(status(&head), "HTTP/1.1 101 Switching Protocols");
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
    for (number, size) in sizes.iter().enumerate() {
        let Some(Ok(Message::Text(event))) = socket.next().await else { panic!("no event") };
        let event: Value = serde_json::from_str(&event).unwrap();
        assert_eq!(event["object"]["metadata"]["name"], format!("map-{number}"));
        assert_eq!(event["object"]["data"]["filling"].as_str().unwrap().len(), *size);
    }
}

#[tokio::test]
async fn a_handshake_that_is_none_is_refused_and_so_is_a_token_that_is_wrong() {
    let served = Served::begin().await;
    let bearer = format!("Authorization: Bearer {}\r\n", served.access.token);
    let origin = "Origin: http://here\r\n";
    let old = HANDSHAKE.replace("Version: 13", "Version: 8");
    let wrong = "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.YWJj, mine\r\n";
    for (headers, expected) in [
        (format!("{bearer}{HANDSHAKE}"), "HTTP/1.1 403 Forbidden"),
        (format!("{bearer}{origin}{old}"), "HTTP/1.1 400 Bad Request"),
        (
            format!("{bearer}{origin}{HANDSHAKE}Sec-WebSocket-Protocol: a, b\r\n"),
            "HTTP/1.1 400 Bad Request",
        ),
        (format!("{origin}{HANDSHAKE}{wrong}"), "HTTP/1.1 401 Unauthorized"),
    ] {
        let (head, _) = served.ask(&headers).await;
        assert_eq!(status(&head), expected, "{headers}");
    }
}
