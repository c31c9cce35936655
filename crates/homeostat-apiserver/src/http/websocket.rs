//! Watches over a WebSocket: browsers cannot read an answer that never ends in any other way. Each
//! event is a message, in however many pieces it comes; what the client sends is not read.
//!
//! The handshake is as strict, and as terse, as kube-apiserver's.

use futures::{SinkExt as _, StreamExt as _};
use http::header::{
    CONNECTION, HeaderName, HeaderValue, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::body::{Body, full};
use super::marks::Marks;
use super::watch::IsWatch;
use crate::registry::options;

const VERSION: &str = "13";

/// Whether the client wants a WebSocket.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    text(UPGRADE).is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket"))
        && text(CONNECTION).is_some_and(|words| words.to_ascii_lowercase().contains("upgrade"))
}

/// A connection that a client would rather use for a WebSocket.
pub(crate) struct Offer {
    upgrade: Option<OnUpgrade>,
    headers: HeaderMap,
}

impl Offer {
    /// What is offered for a watch, if anything is.
    pub(crate) fn of(request: &mut Request<Body>, watches: bool) -> Option<Self> {
        let query = request.uri().query().unwrap_or_default();
        let watches = watches || options::flag(&options::read(query), "watch");
        if !watches || *request.method() != Method::GET || !is_wanted(request.headers()) {
            return None;
        }
        let upgrade = request.extensions_mut().remove::<OnUpgrade>();
        Some(Self { upgrade, headers: request.headers().clone() })
    }

    /// Takes the offer for a watch that was begun; one that was refused stays refused.
    pub(crate) fn take(self, watch: Response<Body>, marks: &mut Marks) -> Response<Body> {
        if watch.status() != StatusCode::OK {
            return watch;
        }
        let text = |name: HeaderName| self.headers.get(name).and_then(|value| value.to_str().ok());
        // Whatever comes from here on is the socket's own.
        marks.leave_off();
        let Some(key) = text(SEC_WEBSOCKET_KEY) else {
            return refusal(StatusCode::BAD_REQUEST, "");
        };
        if text(SEC_WEBSOCKET_VERSION) != Some(VERSION) {
            let words = "missing or bad WebSocket Version";
            let mut response = refusal(StatusCode::BAD_REQUEST, words);
            let known = HeaderValue::from_static(VERSION);
            response.headers_mut().insert(SEC_WEBSOCKET_VERSION, known);
            return response;
        }
        if text(ORIGIN).is_none() {
            return refusal(StatusCode::FORBIDDEN, "");
        }
        let protocols = protocols(&self.headers);
        let Some(upgrade) = self.upgrade.filter(|_| protocols.len() < 2) else {
            return refusal(StatusCode::BAD_REQUEST, "");
        };
        let mut response = Response::new(full(""));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        // Whoever does not read it is not waited for here, either.
        response.extensions_mut().insert(IsWatch);
        let headers = response.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
            headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        }
        if let Some(protocol) = protocols.first().and_then(|name| HeaderValue::from_str(name).ok())
        {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        tokio::spawn(send(upgrade, watch.into_body()));
        response
    }
}

fn refusal(code: StatusCode, words: &'static str) -> Response<Body> {
    let mut response = Response::new(full(words));
    *response.status_mut() = code;
    response
}

/// The protocols that a client speaks.
pub(crate) fn protocols(headers: &HeaderMap) -> Vec<String> {
    let given = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let given = given.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    given.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// Sends the events of a watch until it ends or the client goes.
async fn send(upgrade: OnUpgrade, mut watch: Body) {
    let Ok(connection) = upgrade.await else { return };
    let mut socket =
        WebSocketStream::from_raw_socket(TokioIo::new(connection), Role::Server, None).await;
    let mut event = Vec::new();
    loop {
        let frame = tokio::select! {
            biased;
            message = socket.next() => match message {
                None | Some(Err(_) | Ok(Message::Close(_))) => return,
                Some(Ok(_)) => continue,
            },
            frame = watch.frame() => frame,
        };
        let Some(Ok(frame)) = frame else { break };
        let Ok(lines) = frame.into_data() else { continue };
        for part in lines.split_inclusive(|byte| *byte == b'\n') {
            event.extend_from_slice(part);
            if !part.ends_with(b"\n") {
                // The rest of a large object is in the next frame.
                continue;
            }
            let text = String::from_utf8_lossy(&std::mem::take(&mut event)).into_owned();
            if socket.send(Message::text(text)).await.is_err() {
                return;
            }
        }
    }
    let end = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    let _ = socket.close(Some(end)).await;
}
