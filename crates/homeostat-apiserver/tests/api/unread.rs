//! Clients that open a watch and then take nothing of it.

use std::time::Duration;

use futures::StreamExt as _;
use homeostat_env::Env;
use http_body_util::{BodyExt as _, BodyStream};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::served::Served;
use super::tls::{HTTP1, client_from};
use super::websocket::HANDSHAKE;

/// More than the buffers of a connection take.
const OBJECTS: usize = 24;
const SIZE: usize = 900_000;
/// Longer than anybody who takes nothing is waited for, and shorter than a watch lasts.
const LONG: Duration = Duration::from_secs(200);

/// A server with a lot to read.
async fn full_server() -> Served {
    let served = Served::begin().await;
    let kubeconfig = served.access.kubeconfig(&format!("https://{}", served.address));
    let maps: Api<ConfigMap> = Api::default_namespaced(client_from(&kubeconfig).await);
    let data = json!({"filling": "x".repeat(SIZE)});
    for number in 0..OBJECTS {
        let map = json!({"metadata": {"name": format!("map-{number}")}, "data": data});
        let map = serde_json::from_value(map).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    served
}

#[tokio::test]
async fn a_watcher_that_stops_reading_loses_its_connection() {
    stops_reading("").await;
}

#[tokio::test]
async fn so_does_one_over_a_websocket() {
    let headers = format!("{HANDSHAKE}Origin: http://here\r\n");
    stops_reading(&headers).await;
}

async fn stops_reading(headers: &str) {
    let (env, served) = (Env::system(), full_server().await);
    let mut watching = served.connect(HTTP1).await;
    let request = format!(
        "GET /api/v1/configmaps?watch=true HTTP/1.1\r\nHost: localhost\r\n{headers}\
         Authorization: Bearer {}\r\n\r\n",
        served.access.token
    );
    watching.write_all(request.as_bytes()).await.unwrap();
    watching.read_exact(&mut [0; 15]).await.unwrap();
    // From here on time passes whenever everybody waits.
    tokio::time::pause();
    env.sleep(LONG).await;
    let mut rest = Vec::new();
    let ended = env.timeout(LONG, watching.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "it goes on as if nothing had been");
    assert!(rest.len() < OBJECTS * SIZE, "what was on its way, not {} bytes", rest.len());
}

#[tokio::test]
async fn a_watch_that_is_not_read_is_over_and_the_others_of_its_connection_go_on() {
    let (env, served) = (Env::system(), full_server().await);
    let stream = TokioIo::new(served.connect(b"h2").await);
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(100_000)
        .initial_connection_window_size(1_000_000_000)
        .handshake(stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    let ask = |query: &str| {
        http::Request::get(format!("https://{}/api/v1/{query}", served.address))
            .header("authorization", format!("Bearer {}", served.access.token))
            .body(String::new())
            .unwrap()
    };
    let unread = sender.send_request(ask("configmaps?watch=true")).await.unwrap();
    let idle = sender.send_request(ask("nodes?watch=true")).await.unwrap();
    tokio::time::pause();
    env.sleep(LONG).await;

    let version = sender.send_request(ask("namespaces/default")).await.unwrap();
    assert_eq!(version.status(), 200);
    assert!(version.into_body().collect().await.is_ok());
    let mut idle = idle.into_body();
    assert!(env.timeout(LONG, idle.frame()).await.is_err(), "a watch without news goes on");

    let mut frames = BodyStream::new(unread.into_body());
    let (mut taken, mut failed) = (0, false);
    let reading = async {
        while let Some(frame) = frames.next().await {
            match frame {
                Ok(frame) => taken += frame.into_data().map_or(0, |data| data.len()),
                Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
    };
    assert!(env.timeout(LONG, reading).await.is_ok(), "it goes on as if nothing had been");
    assert!(failed && taken < OBJECTS * SIZE, "cut off, not after {taken} bytes");
}
