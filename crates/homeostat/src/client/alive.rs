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

/// The client's end of a connection, as the system shows it: what it does of its own accord (`02` is
/// asking whether anybody is there), and the number by which it knows the socket.
#[cfg(target_os = "linux")]
fn shown(held: &std::net::TcpStream) -> (String, String) {
    let ports = (held.peer_addr().unwrap().port(), held.local_addr().unwrap().port());
    let ends = [ports.0, ports.1].map(|port| format!(":{port:04X}"));
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let mut rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row[1].ends_with(&ends[0]) && row[2].ends_with(&ends[1])).unwrap();
    (row[5].to_owned(), row[9].to_owned())
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_system_asks_for_the_other_end_of_silent_connections() {
    let (answer, client, held) = abandoned("").await;
    // `01` as long as something that was sent has not arrived.
    let mut is = shown(&held).0;
    while is.starts_with("01:") {
        tokio::task::yield_now().await;
        is = shown(&held).0;
    }
    assert!(is.starts_with("02:"), "{is}");
    drop((answer, client));
}

/// Whatever is spoken on it: over HTTP/1.1 nobody else would notice.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_system_gives_up_a_connection_whose_other_end_is_gone_within_a_minute() {
    use rustix::net::sockopt;
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

    let (answer, client, held) = abandoned("?watch=true").await;
    let name = format!("socket:[{}]", shown(&held).1);
    let mut files = std::fs::read_dir("/proc/self/fd").unwrap().map(|file| file.unwrap().path());
    let is_it = |file: &std::path::PathBuf| {
        std::fs::read_link(file).is_ok_and(|target| target.to_string_lossy() == name)
    };
    let number = files.find(is_it).unwrap().file_name().unwrap().to_string_lossy().parse().unwrap();
    let process = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let socket = pidfd_getfd(process, number, PidfdGetfdFlags::empty()).unwrap();
    assert!(sockopt::socket_keepalive(&socket).unwrap());
    let silent = sockopt::tcp_keepidle(&socket).unwrap();
    let unanswered =
        sockopt::tcp_keepintvl(&socket).unwrap() * sockopt::tcp_keepcnt(&socket).unwrap();
    assert!(silent + unanswered <= Duration::from_secs(60), "{silent:?} and {unanswered:?}");
    drop((answer, client));
}
