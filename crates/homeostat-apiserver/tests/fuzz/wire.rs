//! The way over a socket: TLS, HTTP/1.1 and HTTP/2, for requests that are well framed, and for bytes
//! that are not.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use homeostat_apiserver::{Access, Body, Identity, Server};
use homeostat_env::Env;
use http_body_util::BodyExt as _;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use crate::dice::Dice;
use crate::request::{Delivery, Request};
use crate::{frames, lines, secured};

/// Every connection on which nothing useful happens has ended by then.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Of larger bodies the end may meet a connection that the server has already closed.
const SURELY_READ: usize = 64 * 1024;

/// A server behind a socket.
pub(crate) struct Wire {
    env: Env,
    address: SocketAddr,
    is_second: bool,
    /// Kept from request to request.
    connection: Mutex<Option<Connection>>,
}

enum Connection {
    First(http1::SendRequest<Body>),
    Second(http2::SendRequest<Body>),
}

/// Who the server is: made once, for that takes longer than many requests.
fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| Identity::generate(&Env::system(), &[]).unwrap())
}

fn access() -> &'static Access {
    identity().access()
}

impl Wire {
    /// Serves on a socket; requests come over HTTP/2 or HTTP/1.1.
    pub(crate) fn to(server: &Server, env: &Env, is_second: bool) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let address = listener.local_addr().unwrap();
        let server = server.clone();
        tokio::spawn(async move { server.serve_tls(listener, identity().clone()).await });
        Self { env: env.clone(), address, is_second, connection: Mutex::default() }
    }

    async fn secured(
        &self,
        is_second: bool,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let protocol = is_second.then_some(&b"h2"[..]);
        secured::connect(&access().ca_pem, self.address, protocol).await
    }

    async fn connect(&self) -> Result<Connection, String> {
        let failed = |error: &dyn std::fmt::Display| format!("no connection: {error}");
        let stream = self.secured(self.is_second).await.map_err(|error| failed(&error))?;
        let stream = TokioIo::new(stream);
        if self.is_second {
            let made = http2::handshake(TokioExecutor::new(), stream).await;
            let (sender, connection) = made.map_err(|error| failed(&error))?;
            tokio::spawn(connection);
            return Ok(Connection::Second(sender));
        }
        // Each warning is a header, and there may be more of them than hyper expects.
        let made = http1::Builder::new().max_headers(1000).handshake(stream).await;
        let (sender, connection) = made.map_err(|error| failed(&error))?;
        tokio::spawn(connection.with_upgrades());
        Ok(Connection::First(sender))
    }

    /// Sends a well framed request; `None` for what cannot be sent, or not to its end.
    pub(crate) async fn send(
        &self,
        request: &Request,
        sent: http::Request<Body>,
    ) -> Result<Option<http::Response<Body>>, String> {
        if request.method == "CONNECT" {
            return Ok(None);
        }
        let Some(sent) = self.address(request, sent) else { return Ok(None) };
        let answer = match self.exchange(sent).await? {
            // Closed before it was begun: that is no answer yet.
            Err(error) if error.is_canceled() => {
                let again = request.build().and_then(|sent| self.address(request, sent));
                let Some(again) = again else { return Ok(None) };
                self.exchange(again).await?
            }
            answer => answer,
        };
        match answer {
            Ok(answer) => Ok(Some(answer.map(|body| body.map_err(Into::into).boxed_unsync()))),
            Err(error) => {
                let is_ours = error.is_user()
                    || request.delivery == Delivery::Breaks
                    || request.body.len() > SURELY_READ;
                if is_ours { Ok(None) } else { Err(format!("no answer over the wire: {error}")) }
            }
        }
    }

    /// The request with what it needs on the way.
    fn address(
        &self,
        request: &Request,
        mut sent: http::Request<Body>,
    ) -> Option<http::Request<Body>> {
        if !sent.headers().contains_key("authorization") {
            let token = format!("Bearer {}", access().token);
            sent.headers_mut().insert("authorization", token.parse().unwrap());
        }
        if self.is_second {
            let target = format!("https://localhost{}", request.target);
            *sent.uri_mut() = target.parse().ok()?;
        } else {
            sent.headers_mut().insert("host", http::HeaderValue::from_static("localhost"));
        }
        Some(sent)
    }

    /// Over the connection that is there, or a new one.
    async fn exchange(
        &self,
        sent: http::Request<Body>,
    ) -> Result<hyper::Result<http::Response<hyper::body::Incoming>>, String> {
        let mut kept = self.connection.lock().await;
        let is_open = match &mut *kept {
            Some(Connection::First(sender)) => sender.ready().await.is_ok(),
            Some(Connection::Second(sender)) => sender.ready().await.is_ok(),
            None => false,
        };
        if !is_open {
            *kept = Some(self.connect().await?);
        }
        let answer = match kept.as_mut() {
            Some(Connection::First(sender)) => sender.send_request(sent).await,
            Some(Connection::Second(sender)) => sender.send_request(sent).await,
            None => return Err("no connection".to_owned()),
        };
        if answer.is_err() {
            *kept = None;
        }
        Ok(answer)
    }

    /// Leaves the connection; what was not read of the answer is not waited for.
    pub(crate) async fn leave(&self) {
        self.connection.lock().await.take();
    }

    /// Sends bytes that are not what they should be. The connection must end, and the server must
    /// still answer others.
    pub(crate) async fn disturb(&self, dice: &Dice) -> Result<(), String> {
        let token = format!("Bearer {}", access().token);
        let kind = dice.below(7);
        let bytes = match kind {
            0 => lines::no_handshake(dice),
            1..4 => lines::conversation(dice, &token),
            _ => frames::conversation(dice, &token),
        };
        let shown = || {
            let text = bytes.escape_ascii().to_string().replace(&access().token, "TOKEN");
            text.chars().take(4000).collect::<String>()
        };
        let lost = |error: std::io::Error| format!("no connection: {error}");
        let told = if kind == 0 {
            let stream = TcpStream::connect(self.address).await.map_err(lost)?;
            self.talk(stream, &bytes).await
        } else {
            let stream = self.secured(kind >= 4).await.map_err(lost)?;
            self.talk(stream, &bytes).await
        };
        let told = told.ok_or_else(|| format!("a connection that never ends: {}", shown()))?;
        let fault = b"HTTP/1.1 500";
        if told.windows(fault.len()).any(|words| words == fault) {
            return Err(format!("a 500 for {}", shown()));
        }
        let asked = Request::get("/livez", "application/json");
        let sent = asked.build().ok_or("nothing to send")?;
        match self.send(&asked, sent).await? {
            Some(answer) if answer.status() == 200 => Ok(()),
            other => Err(format!("{other:?} after {}", shown())),
        }
    }

    /// Says everything, then listens; `None` if there is no end to it.
    async fn talk(&self, stream: impl AsyncRead + AsyncWrite, bytes: &[u8]) -> Option<Vec<u8>> {
        let (mut from, mut to) = tokio::io::split(Box::pin(stream));
        let mut told = Vec::new();
        let both = async {
            let said = async {
                // It may have been closed before everything was said.
                let _ = to.write_all(bytes).await;
                let _ = to.flush().await;
            };
            let heard = async {
                let _ = from.read_to_end(&mut told).await;
            };
            futures::future::join(said, heard).await;
        };
        self.env.timeout(PATIENCE, both).await.ok()?;
        Some(told)
    }
}
