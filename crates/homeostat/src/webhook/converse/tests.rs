//! How long callers are waited for. They speak TLS through memory, so that time is virtual.

use jiff::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::certificate::Certificate;
use super::super::tests::{made, nobody};
use super::*;

/// A certificate in use, and who trusts it.
pub(in super::super) async fn of_one(env: &Env) -> (Arc<Current>, String) {
    let (certificate, key) = made();
    let given = Certificate::pem(&*certificate, key);
    (Arc::new(Current::load(given, &nobody(), env.clone()).await.unwrap()), certificate)
}

/// Answers at `/` after a while, and at `/long` with more than a connection holds.
pub(in super::super) fn site(env: &Env, after: Duration) -> Site {
    let sleeper = env.clone();
    let short: Handler = Arc::new(move |_| {
        let env = sleeper.clone();
        async move {
            env.sleep(after).await;
            Ok(json!("short"))
        }
        .boxed()
    });
    let long: Handler = Arc::new(|_| async { Ok(json!("long".repeat(1 << 20))) }.boxed());
    let handlers = BTreeMap::from([("/".to_owned(), short), ("/long".to_owned(), long)]);
    Site { handlers: Arc::new(handlers), env: env.clone(), metrics: Metrics::default() }
}

pub(in super::super) async fn shake_hands<S>(stream: S, authority: &str) -> TlsStream<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

/// Asks at `/` and returns the answer; nothing when the connection is closed.
pub(in super::super) async fn ask<S>(caller: &mut TlsStream<S>) -> String
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let question = b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 2\r\n\r\n{}";
    if caller.write_all(question).await.is_err() {
        return String::new();
    }
    let mut answer = String::new();
    while !answer.ends_with("\"short\"") {
        let mut more = [0; 1024];
        match caller.read(&mut more).await {
            Ok(0) | Err(_) => break,
            Ok(read) => answer += std::str::from_utf8(&more[..read]).unwrap(),
        }
    }
    answer
}

/// A conversation on virtual time.
struct Talk {
    env: Env,
    began: Instant,
    places: Arc<Semaphore>,
    closing: CancellationToken,
    server: JoinHandle<()>,
}

impl Talk {
    /// With a handler that takes so long, and who is to speak in it.
    async fn begin(after: Duration) -> (Self, DuplexStream, String) {
        let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
        let (certificate, authority) = of_one(&env).await;
        let (near, far) = tokio::io::duplex(64 * 1024);
        let closing = CancellationToken::new();
        let places = Arc::new(Semaphore::new(CALLERS));
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        let talk = converse(far, place, certificate, site(&env, after), closing.clone());
        let (began, server) = (env.instant(), tokio::spawn(talk));
        (Self { env, began, places, closing, server }, near, authority)
    }

    /// The same after a handshake.
    async fn with_caller(after: Duration) -> (Self, TlsStream<DuplexStream>) {
        let (talk, near, authority) = Self::begin(after).await;
        let caller = shake_hands(near, &authority).await;
        (talk, caller)
    }

    /// Others come until so many places are free.
    fn others_leave_free(&self, free: usize) {
        let taken = self.places.available_permits() - free;
        self.places.try_acquire_many(u32::try_from(taken).unwrap()).unwrap().forget();
    }

    /// When the server left, from the beginning.
    async fn end(self) -> Duration {
        self.server.await.unwrap();
        self.env.instant().saturating_duration_since(self.began)
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_kept_for_longer_than_the_api_keeps_it() {
    let (talk, mut caller) = Talk::with_caller(Duration::ZERO).await;
    for _ in 0..3 {
        let answer = ask(&mut caller).await;
        assert!(answer.contains("200 OK") && !answer.contains("connection:"), "{answer:?}");
        talk.env.sleep(Duration::from_secs(95)).await;
    }
    assert_eq!(talk.end().await, Duration::from_secs(2 * 95) + SILENCE, "but not for ever");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_shake_hands_is_let_go_soon() {
    let (talk, _near, _) = Talk::begin(Duration::ZERO).await;
    let places = Arc::clone(&talk.places);
    assert_eq!(talk.end().await, HELLO);
    assert_eq!(places.available_permits(), CALLERS, "its place is free again");
}

#[tokio::test(start_paused = true)]
async fn who_speaks_no_tls_takes_no_place() {
    let (talk, mut near, _) = Talk::begin(Duration::ZERO).await;
    near.write_all(b"POST / HTTP/1.1\r\n\r\n").await.unwrap();
    talk.server.await.unwrap();
    assert_eq!(talk.places.available_permits(), CALLERS);
}

#[tokio::test(start_paused = true)]
async fn half_of_the_places_are_for_who_comes_with_questions() {
    for (free, closes) in [(FREE, false), (FREE - 1, true)] {
        let (talk, mut caller) = Talk::with_caller(Duration::ZERO).await;
        talk.others_leave_free(free);
        let answer = ask(&mut caller).await;
        assert_eq!(answer.contains("connection: close"), closes, "{free} are free: {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_asks_nothing_is_let_go_soon_when_places_are_scarce() {
    for begun in ["", "POST /", "POST / HTTP/1.1\r\nhost: here\r\n"] {
        let (talk, mut caller) = Talk::with_caller(Duration::ZERO).await;
        caller.write_all(begun.as_bytes()).await.unwrap();
        talk.others_leave_free(FREE - 1);
        assert_eq!(talk.end().await, HELLO, "{begun:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_asks_late_is_answered_while_there_are_places() {
    let (talk, mut caller) = Talk::with_caller(Duration::ZERO).await;
    talk.others_leave_free(FREE);
    talk.env.sleep(Duration::from_secs(95)).await;
    assert!(ask(&mut caller).await.contains("200 OK"));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_does_not_end_is_given_up() {
    let (talk, mut caller) = Talk::with_caller(Duration::ZERO).await;
    caller.write_all(b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 9\r\n\r\n").await.unwrap();
    let dribble = async {
        loop {
            talk.env.sleep(Duration::from_secs(7)).await;
            caller.write_all(b"{").await.unwrap();
            caller.flush().await.unwrap();
        }
    };
    assert!(talk.env.timeout(QUESTION, dribble).await.is_err());
    let mut answer = String::new();
    caller.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("408"), "{answer}");
    assert_eq!(talk.end().await, QUESTION);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_taken_is_given_up() {
    let (talk, mut caller) = Talk::with_caller(Duration::ZERO).await;
    let question = b"POST /long HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n";
    caller.write_all(question).await.unwrap();
    assert_eq!(talk.end().await, SILENCE);
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_who_dawdles() {
    for part in ["POST /", "POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 9\r\n\r\n{"] {
        let (talk, mut caller) = Talk::with_caller(Duration::ZERO).await;
        caller.write_all(part.as_bytes()).await.unwrap();
        talk.env.sleep(Duration::from_secs(1)).await;
        talk.closing.cancel();
        assert_eq!(talk.end().await, Duration::from_secs(1) + HURRY, "{part:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_a_handler_as_long_as_the_api_does() {
    let takes = LIMIT - Duration::from_secs(1);
    let (talk, mut caller) = Talk::with_caller(takes).await;
    let (answer, ()) = futures::join!(ask(&mut caller), async {
        talk.env.sleep(Duration::from_secs(1)).await;
        talk.closing.cancel();
    });
    assert!(answer.contains("200 OK"), "{answer:?}");
    assert_eq!(talk.end().await, takes);
}
