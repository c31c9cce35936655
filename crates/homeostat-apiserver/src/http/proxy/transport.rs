//! One request to a program, over a connection of its own. Certificates are not looked at: a
//! program behind a proxy is known by its address alone.
//!
//! What belongs to one connection stays there; a connection that becomes another one is joined with
//! the client's. Nothing is sent twice.

use http::header::{
    CONNECTION, COOKIE, HOST, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::dial;
use crate::http::body::Body;

/// What is said about one connection, and means nothing on the next.
const OF_THE_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Whether a client wants its connection to become another one.
pub(super) fn wants_another(headers: &HeaderMap) -> bool {
    let said = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    said.into_iter().any(|words| words.to_ascii_lowercase().contains("upgrade"))
}

/// The host that a request is for, as its client calls it.
pub(super) fn host_of(request: &Request<Body>) -> Option<HeaderValue> {
    let authority = request.uri().authority();
    authority
        .and_then(|host| HeaderValue::from_str(host.as_str()).ok())
        .or_else(|| request.headers().get(HOST).cloned())
}

/// Sends `request` to `address` and gives the answer.
///
/// # Errors
/// Why there is none, in words for people.
pub(super) async fn send(
    address: &str,
    secure: bool,
    host: Option<HeaderValue>,
    request: Request<Body>,
) -> Result<Response<Body>, String> {
    let stream = dial::tcp(address).await?;
    if !secure {
        return exchange(stream, host, request).await;
    }
    let name = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
    let stream = dial::tls(dial::trusting_anyone()?, name, stream).await?;
    exchange(stream, host, request).await
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    host: Option<HeaderValue>,
    mut request: Request<Body>,
) -> Result<Response<Body>, String> {
    let another = wants_another(request.headers());
    let clients = request.extensions_mut().remove::<OnUpgrade>().filter(|_| another);
    let protocol = request.headers().get(UPGRADE).cloned();
    leave_behind(request.headers_mut());
    join_cookies(request.headers_mut());
    if let (Some(protocol), true) = (protocol, clients.is_some()) {
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        request.headers_mut().insert(UPGRADE, protocol);
    }
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host);
    }
    *request.version_mut() = Version::HTTP_11;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    // It ends with the answer, or with those who read it.
    tokio::spawn(connection.with_upgrades());
    let answer = sender.send_request(request).await;
    let mut answer: Response<Incoming> = answer.map_err(|error| {
        if error.is_incomplete_message() { "EOF".to_owned() } else { error.to_string() }
    })?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS
        && let Some(clients) = clients
    {
        tokio::spawn(join(clients, hyper::upgrade::on(&mut answer)));
    } else {
        leave_behind(answer.headers_mut());
    }
    Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
}

fn leave_behind(headers: &mut HeaderMap) {
    let said = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<String> =
        said.flat_map(|words| words.split(',')).map(|name| name.trim().to_owned()).collect();
    for name in named {
        headers.remove(name);
    }
    for name in OF_THE_CONNECTION {
        headers.remove(name);
    }
}

/// Over HTTP/2 cookies come in pieces, which HTTP/1.1 does not know.
fn join_cookies(headers: &mut HeaderMap) {
    let pieces: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if pieces.len() > 1
        && let Ok(whole) = HeaderValue::from_bytes(&pieces.join(&b"; "[..]))
    {
        headers.insert(COOKIE, whole);
    }
}

/// Lets two ends speak with each other until both have said everything.
async fn join(one: OnUpgrade, other: OnUpgrade) {
    let (Ok(one), Ok(other)) = futures::join!(one, other) else { return };
    let (mut one, mut other) = (TokioIo::new(one), TokioIo::new(other));
    let _ = tokio::io::copy_bidirectional(&mut one, &mut other).await;
}
