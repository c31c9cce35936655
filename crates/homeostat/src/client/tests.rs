//! What the client promises, on a scripted service (virtual time) and on sockets of this host.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use jiff::Timestamp;
use kube::client::Body;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::retry::Fate;
use super::transport::connect_except;
use super::{Warnings, connect, counted, guarded};
use crate::error::BoxError;
use crate::lease::Fence;
use crate::{Env, Metrics};

const LIMIT: Duration = Duration::from_secs(30);

/// What the scripted server does with a request: an answer, or none.
type Reply = Option<(u16, Option<&'static str>)>;

/// Sends one request by `method` to a server that replies so; returns the status at the end and
/// the milliseconds at which the server was asked.
async fn asked(method: &str, replies: &[Reply]) -> (Option<u16>, Vec<u128>) {
    asked_and_counted(method, replies, &Metrics::default()).await
}

async fn asked_and_counted(
    method: &str,
    replies: &[Reply],
    metrics: &Metrics,
) -> (Option<u16>, Vec<u128>) {
    asked_within(LIMIT, method, replies, metrics).await
}

async fn asked_within(
    limit: Duration,
    method: &str,
    replies: &[Reply],
    metrics: &Metrics,
) -> (Option<u16>, Vec<u128>) {
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    let (begin, clock) = (env.instant(), env.clone());
    let log = Arc::<Mutex<Vec<u128>>>::default();
    let (told, replies) = (Arc::clone(&log), replies.to_vec());
    let service = tower::service_fn(move |_: Request<Body>| {
        let mut told = told.lock().unwrap();
        let reply = replies.get(told.len()).copied();
        told.push((clock.instant() - begin).as_millis());
        async move {
            let (code, after) = match reply {
                None => std::future::pending().await,
                Some(None) => return Err(BoxError::from("the connection is gone")),
                Some(Some(reply)) => reply,
            };
            let mut answer = Response::builder().status(code);
            if let Some(after) = after {
                answer = answer.header("retry-after", after);
            }
            Ok(answer.body(Full::new(Bytes::from("{}"))).unwrap())
        }
    });
    let client = kube::Client::new(service, "default");
    let client = counted(client, env.clone(), metrics.clone());
    let fence = Fence::open(env.clone());
    let client = guarded(client, env, limit, fence, Warnings::new(true));
    let request = Request::builder().method(method).uri("/api/v1/pods").body(Body::from(vec![1]));
    let answer = client.send(request.unwrap()).await;
    let times = log.lock().unwrap().clone();
    (answer.ok().map(|answer| answer.status().as_u16()), times)
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_not_sent_again() {
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let (status, times) = asked(method, &[None, Some((200, None))]).await;
        assert_eq!((status, times.len()), (None, 1), "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_try_is_counted_and_so_is_one_that_nobody_waited_for() {
    let metrics = Metrics::new("here:6443", <_>::default());
    asked_and_counted("GET", &[Some((503, Some("1"))), Some((200, None))], &metrics).await;
    asked_and_counted("POST", &[], &metrics).await;
    let text = metrics.text();
    for (method, code) in [("GET", "503"), ("GET", "200"), ("POST", "<error>")] {
        let host = "host=\"here:6443\"";
        let line =
            format!("rest_client_requests_total{{method=\"{method}\",code=\"{code}\",{host}}} 1");
        assert!(text.contains(&line), "{line} is missing:\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_is_sent_again_until_it_is_answered() {
    let (status, times) = asked("GET", &[None, Some((503, None)), Some((200, None))]).await;
    assert_eq!((status, times.len()), (Some(200), 3));
    assert!((50..=101).contains(&times[1]), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again_when_it_says() {
    let (status, times) = asked("POST", &[Some((429, Some("7"))), Some((201, None))]).await;
    assert_eq!((status, times), (Some(201), vec![0, 7000]));
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_limit_is_sent() {
    let replies = [Some((429, Some("7"))), Some((200, None))];
    let (status, times) = asked_within(Duration::MAX, "GET", &replies, &Metrics::default()).await;
    assert_eq!((status, times), (Some(200), vec![0, 7000]));
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_limit_of_the_request_is_not_begun() {
    let (status, times) = asked("GET", &[Some((429, Some("60")))]).await;
    assert_eq!((status, times), (Some(429), vec![0]));
}

/// A server with TLS that offers these versions of HTTP and remembers what it was asked.
struct Listening {
    config: kube::Config,
    /// The connection's number, the version and the path of each request.
    requests: Arc<Mutex<Vec<(usize, Version, String)>>>,
}

impl Listening {
    async fn on(protocols: &[&str]) -> Self {
        let (certificate, tls) = identity(protocols);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let mut config = kube::Config::new(url.parse().unwrap());
        config.root_cert = Some(vec![certificate]);
        let requests = Arc::default();
        tokio::spawn(serve(listener, tls, Arc::clone(&requests)));
        Self { config, requests }
    }

    fn client(&self) -> kube::Client {
        connect(&self.config, Env::system()).unwrap()
    }

    /// On how many connections requests of that path came.
    fn connections(&self, path: &str) -> usize {
        let requests = self.requests.lock().unwrap();
        let mut numbers: Vec<_> = requests
            .iter()
            .filter(|(_, _, asked)| asked == path)
            .map(|(number, ..)| number)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len()
    }
}

/// A certificate of this host that vouches for itself, and the TLS of a server that shows it.
pub(super) fn identity(protocols: &[&str]) -> (Vec<u8>, TlsAcceptor) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let certificate = made.cert.der().clone();
    let mut tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    tls.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    (certificate.to_vec(), TlsAcceptor::from(Arc::new(tls)))
}

type Log = Arc<Mutex<Vec<(usize, Version, String)>>>;

async fn serve(listener: TcpListener, tls: TlsAcceptor, log: Log) {
    for number in 0.. {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, log) = (tls.clone(), Arc::clone(&log));
        tokio::spawn(async move {
            let stream = TokioIo::new(tls.accept(stream).await.unwrap());
            let answer = service_fn(move |request: Request<hyper::body::Incoming>| {
                let path = request.uri().path().to_owned();
                log.lock().unwrap().push((number, request.version(), path));
                let endless = request.uri().query().is_some_and(|query| query.contains("watch"));
                let huge = request.uri().path() == "/huge";
                async move {
                    let body = if endless {
                        StreamBody::new(futures::stream::pending()).boxed()
                    } else if huge {
                        Full::new(Bytes::from(vec![b' '; 4 * 1024 * 1024])).boxed()
                    } else {
                        Full::new(Bytes::from("{}")).boxed()
                    };
                    Ok::<_, Infallible>(Response::new(body))
                }
            });
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(stream, answer).await;
        });
    }
}

async fn get(client: &kube::Client, uri: &str) -> Response<Body> {
    let request = Request::get(uri).body(Body::empty()).unwrap();
    let answer = client.send(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    answer
}

#[tokio::test]
async fn requests_share_a_connection_and_watches_have_their_own() {
    let server = Listening::on(&["h2", "http/1.1"]).await;
    let client = server.client();
    let watch = get(&client, "/watched?watch=true").await;
    get(&client, "/first").await;
    join_all((0..20).map(|_| get(&client, "/asked"))).await;
    assert_eq!((server.connections("/watched"), server.connections("/asked")), (1, 1));
    let requests = server.requests.lock().unwrap().clone();
    assert!(requests.iter().all(|(_, version, _)| *version == Version::HTTP_2));
    let number =
        |path| requests.iter().find(|(_, _, asked)| asked == path).map(|(number, ..)| *number);
    assert_ne!(number("/watched"), number("/asked"));
    drop(watch);
}

#[tokio::test]
async fn more_watches_than_a_connection_takes_get_more_connections() {
    let server = Listening::on(&["h2"]).await;
    let client = server.client();
    let mut watches = Vec::new();
    for _ in 0..150 {
        watches.push(get(&client, "/watched?watch=1").await);
    }
    assert_eq!(server.connections("/watched"), 3);
}

#[tokio::test]
async fn answers_that_nobody_reads_hold_up_no_other() {
    let server = Listening::on(&["h2"]).await;
    let client = server.client();
    let mut unread = Vec::new();
    for _ in 0..32 {
        unread.push(get(&client, "/huge").await);
        // As much as may come before it is read is on its way, and then some.
        for _ in 0..32 {
            let limit = Duration::from_secs(10);
            let read = async { get(&client, "/asked").await.into_body().collect().await.unwrap() };
            let read = Env::system().timeout(limit, read).await;
            assert!(read.is_ok(), "{} are not read, and nothing else comes", unread.len());
        }
    }
    assert_eq!((server.connections("/huge"), server.connections("/asked")), (1, 1));
}

#[tokio::test]
async fn a_server_without_http2_is_spoken_to_in_the_older_way() {
    let server = Listening::on(&["http/1.1"]).await;
    get(&server.client(), "/asked").await;
    assert_eq!(server.requests.lock().unwrap()[0].1, Version::HTTP_11);
}

#[tokio::test]
async fn what_becomes_another_protocol_goes_over_the_older_http() {
    let server = Listening::on(&["h2", "http/1.1"]).await;
    let request = Request::get("/exec").header("upgrade", "websocket").body(Body::empty()).unwrap();
    server.client().send(request).await.unwrap();
    assert_eq!(server.requests.lock().unwrap()[0].1, Version::HTTP_11);
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = connect(&kube::Config::new(url.parse().unwrap()), Env::system()).unwrap();
    let request = Request::get("/asked").body(Body::empty()).unwrap();
    let answer = tokio::spawn(async move { client.send(request).await });
    let silent = listener.accept().await.unwrap();
    // From here on nothing can happen but the end of a wait.
    tokio::time::pause();
    let error = answer.await.unwrap().unwrap_err();
    assert!(format!("{error:?}").contains("did not answer within 60s"), "{error:?}");
    drop(silent);
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_is_given_up_before_anything_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let client = connect(&kube::Config::new(url.parse().unwrap()), Env::system()).unwrap();
    let request = Request::post("/asked").body(Body::empty()).unwrap();
    let answer = tokio::spawn(async move { client.send(request).await });
    // It takes the caller and says nothing: the greeting of TLS has no answer.
    let silent = listener.accept().await.unwrap();
    tokio::time::pause();
    let answer: Result<Response<Body>, _> = answer.await.unwrap();
    assert_eq!(Fate::of(&answer), Fate::Unreached, "it may be sent again");
    let error = format!("{:?}", answer.unwrap_err());
    assert!(error.contains("no connection came about within 10s"), "{error}");
    drop(silent);
}

/// A proxy that connects wherever it is asked to; it tells what it was asked, with whose word.
async fn proxy(asked: Arc<Mutex<Vec<String>>>, tls: Option<TlsAcceptor>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (caller, _) = listener.accept().await.unwrap();
            let (asked, tls) = (Arc::clone(&asked), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => pass_on(caller, asked).await,
                    Some(tls) => {
                        if let Ok(caller) = tls.accept(caller).await {
                            pass_on(caller, asked).await;
                        }
                    }
                }
            });
        }
    });
    address.to_string()
}

async fn pass_on(
    mut caller: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    asked: Arc<Mutex<Vec<String>>>,
) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(caller.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.split(' ').nth(1).unwrap().to_owned();
    asked.lock().unwrap().push(head);
    let mut server = tokio::net::TcpStream::connect(target).await.unwrap();
    caller.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut caller, &mut server).await;
}

#[tokio::test]
async fn a_proxy_carries_everything_and_sees_nothing() {
    let server = Listening::on(&["h2", "http/1.1"]).await;
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let address = proxy(Arc::clone(&asked), None).await;
    let mut config = server.config.clone();
    config.proxy_url = Some(format!("http://me:p%40ss@{address}").parse().unwrap());
    let client = connect_except(&config, Env::system(), "").unwrap();
    let watch = get(&client, "/watched?watch=true").await;
    get(&client, "/asked").await;
    drop(watch);
    assert_asked(&asked.lock().unwrap(), &server);
    let versions = server.requests.lock().unwrap().clone();
    assert!(versions.iter().all(|(_, version, _)| *version == Version::HTTP_2), "{versions:?}");
}

/// Twice, with the word of `me:p@ss`.
fn assert_asked(asked: &[String], server: &Listening) {
    assert_eq!(asked.len(), 2, "a connection for the watch, one for the rest: {asked:?}");
    for head in asked {
        let target = server.config.cluster_url.authority().unwrap();
        assert!(head.starts_with(&format!("CONNECT {target} ")), "{head}");
        assert!(head.to_lowercase().contains("proxy-authorization: basic bwu6cebzcw=="), "{head}");
    }
}

#[tokio::test]
async fn a_proxy_over_tls_is_trusted_first_and_asked_then() {
    let server = Listening::on(&["h2", "http/1.1"]).await;
    let (certificate, tls) = identity(&[]);
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let address = proxy(Arc::clone(&asked), Some(tls)).await;
    let mut config = server.config.clone();
    config.proxy_url = Some(format!("https://me:p%40ss@{address}").parse().unwrap());

    let stranger = connect_except(&config, Env::system(), "").unwrap();
    let request = Request::get("/asked").body(Body::empty()).unwrap();
    let error = format!("{:?}", stranger.send(request).await.unwrap_err());
    assert!(error.contains("InvalidCertificate"), "nobody vouches for the proxy: {error}");
    assert!(asked.lock().unwrap().is_empty(), "no word before it is trusted");

    config.root_cert.as_mut().unwrap().push(certificate);
    let client = connect_except(&config, Env::system(), "").unwrap();
    let watch = get(&client, "/watched?watch=true").await;
    get(&client, "/asked").await;
    drop(watch);
    assert_asked(&asked.lock().unwrap(), &server);
    let versions = server.requests.lock().unwrap().clone();
    assert!(versions.iter().all(|(_, version, _)| *version == Version::HTTP_2), "{versions:?}");

    get(&connect_except(&config, Env::system(), "127.0.0.0/8").unwrap(), "/straight").await;
    assert_eq!(asked.lock().unwrap().len(), 2, "a host in NO_PROXY needs no proxy");
}

#[tokio::test]
async fn a_socks_proxy_is_spoken_to_in_its_own_way() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let server = Listening::on(&["h2"]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = server.config.clone();
    let proxy = format!("socks5://{}", listener.local_addr().unwrap());
    config.proxy_url = Some(proxy.parse().unwrap());
    tokio::spawn(async move {
        let (mut caller, _) = listener.accept().await.unwrap();
        let mut greeting = [0; 2];
        caller.read_exact(&mut greeting).await.unwrap();
        let mut methods = vec![0; usize::from(greeting[1])];
        caller.read_exact(&mut methods).await.unwrap();
        caller.write_all(&[5, 0]).await.unwrap();
        // Version, connect, nothing, an address of four bytes and a port.
        let mut wish = [0; 10];
        caller.read_exact(&mut wish).await.unwrap();
        assert_eq!(wish[..4], [5, 1, 0, 1]);
        let address = std::net::Ipv4Addr::new(wish[4], wish[5], wish[6], wish[7]);
        let port = u16::from_be_bytes([wish[8], wish[9]]);
        let mut target = tokio::net::TcpStream::connect((address, port)).await.unwrap();
        caller.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0]).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut caller, &mut target).await;
    });
    get(&connect_except(&config, Env::system(), "").unwrap(), "/asked").await;
    assert_eq!(server.connections("/asked"), 1);
    // The proxy takes nobody any more, and is not asked.
    get(&connect_except(&config, Env::system(), "127.0.0.1").unwrap(), "/asked").await;
}

#[tokio::test]
async fn a_proxy_of_an_unknown_kind_is_refused_in_words() {
    let mut config = kube::Config::new("https://127.0.0.1:1".parse().unwrap());
    config.proxy_url = Some("ftp://127.0.0.1:2".parse().unwrap());
    let error = connect(&config, Env::system()).err().unwrap();
    assert!(error.is_terminal() && error.to_string().contains("`ftp`"), "{error}");
}
