//! Connections whose other end is gone without a word: a machine that was switched off, a wire that was
//! pulled. On sockets of this host; once a server is silent time is virtual.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::connect;
use super::tests::identity;
use crate::Env;

/// An open answer that will never go on: its server does not read any more what it is sent. The others
/// keep the connection open.
async fn abandoned(query: &str) -> (Response<Body>, kube::Client, std::net::TcpStream) {
    let (certificate, tls) = identity(&["h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let mut config = kube::Config::new(url.parse().unwrap());
    config.root_cert = Some(vec![certificate]);
    let client = connect(&config, Env::system()).unwrap();
    let request = Request::get(format!("/asked{query}")).body(Body::empty()).unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let serving = async {
        let (stream, _) = listener.accept().await.unwrap();
        let stream = stream.into_std().unwrap();
        let held = stream.try_clone().unwrap();
        let server = tokio::spawn(async move {
            let stream = TcpStream::from_std(stream).unwrap();
            let stream = TokioIo::new(tls.accept(stream).await.unwrap());
            let answer = service_fn(async |_| {
                let frames =
                    futures::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>();
                Ok::<_, Infallible>(Response::new(StreamBody::new(frames)))
            });
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(stream, answer);
            tokio::select! {
                biased;
                _ = ended => {}
                _ = connection => {}
            }
        });
        (server, held)
    };
    let (answer, (server, held)) = join(client.send(request), serving).await;
    end.send(()).unwrap();
    server.await.unwrap();
    (answer.unwrap(), client, held)
}

#[tokio::test]
async fn a_body_whose_server_is_gone_breaks_within_a_minute() {
    for query in ["?watch=true", ""] {
        let (answer, client, held) = abandoned(query).await;
        let env = Env::system();
        // From here on nothing can happen but the end of a wait.
        tokio::time::pause();
        let began = env.instant();
        let mut body = answer.into_body();
        let frame = env.timeout(Duration::from_secs(3600), body.frame()).await;
        let broken = frame.unwrap_or_else(|_| panic!("nobody notices {query:?}"));
        let waited = env.instant() - began;
        tokio::time::resume();
        assert!(broken.unwrap().is_err() && waited <= Duration::from_secs(60), "{waited:?}");
        drop((client, held));
    }
}

/// What the system does of its own accord for a connection: `02` is asking whether anybody is there.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_system_asks_for_the_other_end_of_silent_connections() {
    let (answer, client, held) = abandoned("").await;
    let ports = (held.peer_addr().unwrap().port(), held.local_addr().unwrap().port());
    let ends = [ports.0, ports.1].map(|port| format!(":{port:04X}"));
    let timer = || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let mut rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.find(|row| row[1].ends_with(&ends[0]) && row[2].ends_with(&ends[1]));
        row.map(|row| row[5].to_owned()).unwrap_or_default()
    };
    // `01` as long as something that was sent has not arrived.
    let mut is = timer();
    while is.starts_with("01:") {
        tokio::task::yield_now().await;
        is = timer();
    }
    assert!(is.starts_with("02:"), "{is}");
    drop((answer, client));
}
