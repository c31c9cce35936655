//! `101 Switching Protocols`: how a request becomes a connection, by WebSocket or by SPDY/3.1.

use std::future::Future;

use http::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{Request, Response, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::{Body, Refusal, full};

pub(super) type Raw = TokioIo<Upgraded>;
pub(super) type Socket = WebSocketStream<Raw>;

const SPDY: &str = "SPDY/3.1";

/// Where clients of SPDY say what they want to speak over it.
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// The end of a WebSocket; clients take one without a code for an accident.
pub(super) fn goodbye() -> Message {
    Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() }))
}

/// Whether the client wants SPDY without a WebSocket around it.
pub(super) fn asks_for_spdy<B>(request: &Request<B>) -> bool {
    asks_for(request, SPDY)
}

/// Whether the client would speak `protocol` over a WebSocket.
pub(super) fn offers<B>(request: &Request<B>, protocol: &str) -> bool {
    offered(request, &SEC_WEBSOCKET_PROTOCOL).contains(&protocol)
}

/// Answers in the first of `protocols` that the client offers, and runs `serve` on the WebSocket.
pub(super) fn websocket<B, F, Fut>(
    request: Request<B>,
    protocols: &[&'static str],
    serve: F,
) -> Result<Response<Body>, Refusal>
where
    F: FnOnce(Socket) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let key = request.headers().get(SEC_WEBSOCKET_KEY).filter(|_| asks_for(&request, "websocket"));
    let Some(key) = key else {
        let words = "unable to upgrade: this node speaks WebSocket only".to_owned();
        return Err((StatusCode::BAD_REQUEST, words));
    };
    let accept = derive_accept_key(key.as_bytes());
    let protocol = agree(&request, &SEC_WEBSOCKET_PROTOCOL, protocols)?;
    on_upgrade(request, |io| async move {
        serve(WebSocketStream::from_raw_socket(io, Role::Server, None).await).await;
    });
    let accept = HeaderValue::from_str(&accept)
        .map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let mut response = switching("websocket", SEC_WEBSOCKET_PROTOCOL, protocol);
    response.headers_mut().insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

/// Answers in the first of `protocols` that the client offers, and runs `serve` on the connection,
/// which carries frames of SPDY from then on.
pub(super) fn spdy<B, F, Fut>(
    request: Request<B>,
    protocols: &[&'static str],
    serve: F,
) -> Result<Response<Body>, Refusal>
where
    F: FnOnce(Raw) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let protocol = agree(&request, &STREAM_PROTOCOL, protocols)?;
    on_upgrade(request, serve);
    Ok(switching(SPDY, STREAM_PROTOCOL, protocol))
}

fn asks_for<B>(request: &Request<B>, name: &str) -> bool {
    let wanted = request.headers().get(UPGRADE).and_then(|value| value.to_str().ok());
    wanted.is_some_and(|wanted| wanted.eq_ignore_ascii_case(name))
}

fn offered<'a, B>(request: &'a Request<B>, header: &HeaderName) -> Vec<&'a str> {
    let values = request.headers().get_all(header).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).collect()
}

fn agree<B>(
    request: &Request<B>,
    header: &HeaderName,
    protocols: &[&'static str],
) -> Result<&'static str, Refusal> {
    let offered = offered(request, header);
    let protocol = protocols.iter().copied().find(|protocol| offered.contains(protocol));
    protocol.ok_or_else(|| {
        let (ours, theirs) = (protocols.join(", "), offered.join(", "));
        let words =
            format!("unable to upgrade: this node speaks {ours}, the client offered {theirs:?}");
        (StatusCode::BAD_REQUEST, words)
    })
}

/// Runs `serve` once the client has seen the answer.
fn on_upgrade<B, F, Fut>(mut request: Request<B>, serve: F)
where
    F: FnOnce(Raw) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        match upgraded.await {
            Ok(upgraded) => serve(TokioIo::new(upgraded)).await,
            Err(error) => tracing::debug!(%error, "the client went away"),
        }
    });
}

fn switching(to: &'static str, header: HeaderName, protocol: &'static str) -> Response<Body> {
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(to));
    headers.insert(header, HeaderValue::from_static(protocol));
    response
}
