//! Several byte streams over one WebSocket: the first byte of a message names the channel.

use std::future::Future;

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{Request, Response, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::{Body, Refusal, full};

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Closing one channel, from protocol version 5 on: `[255, channel]`.
const CLOSE: u8 = 255;

/// The end that sends; clones share the connection.
#[derive(Debug, Clone)]
pub(super) struct Sender(mpsc::Sender<Message>);

/// The end that receives.
#[derive(Debug)]
pub(super) struct Receiver(SplitStream<Socket>);

/// What the client sent.
#[derive(Debug)]
pub(super) enum Incoming {
    Data(u8, Bytes),
    Closed(u8),
}

/// Answers with `101 Switching Protocols` in the first of `protocols` that the client offers, and
/// runs `serve` on the connection.
pub(super) fn upgrade<B, F, Fut>(
    mut request: Request<B>,
    protocols: &[&'static str],
    serve: F,
) -> Result<Response<Body>, Refusal>
where
    F: FnOnce(Sender, Receiver) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let refuse = |words: String| Err((StatusCode::BAD_REQUEST, words));
    let wanted = header(UPGRADE).is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
    let Some(key) = header(SEC_WEBSOCKET_KEY).filter(|_| wanted) else {
        return refuse("unable to upgrade: this node speaks WebSocket only".into());
    };
    let accept = derive_accept_key(key.as_bytes());
    let offered = request.headers().get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let offered: Vec<&str> = offered
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .collect();
    let Some(protocol) = protocols.iter().find(|protocol| offered.contains(protocol)) else {
        let (ours, theirs) = (protocols.join(", "), offered.join(", "));
        return refuse(format!(
            "unable to upgrade: this node speaks {ours}, the client offered {theirs:?}"
        ));
    };
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let upgraded = match upgraded.await {
            Ok(upgraded) => upgraded,
            Err(error) => return tracing::debug!(%error, "the client went away"),
        };
        let io = TokioIo::new(upgraded);
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
        let (sink, stream) = socket.split();
        let (sender, messages) = mpsc::channel(16);
        let writer = write(sink, messages);
        tokio::join!(serve(Sender(sender), Receiver(stream)), writer);
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, accept)
        .header(SEC_WEBSOCKET_PROTOCOL, *protocol)
        .body(full(""))
        .map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

/// Writes until every sender is gone, then says goodbye.
async fn write(mut sink: SplitSink<Socket, Message>, mut messages: mpsc::Receiver<Message>) {
    while let Some(message) = messages.recv().await {
        if sink.send(message).await.is_err() {
            return;
        }
    }
    // Clients take a close without a code for an accident. They may have hung up first.
    let goodbye = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
    let _ = sink.send(Message::Close(Some(goodbye))).await;
    let _ = sink.flush().await;
}

impl Sender {
    /// Sends on a channel; whether the connection still stands.
    pub(super) async fn send(&self, channel: u8, data: &[u8]) -> bool {
        let mut message = Vec::with_capacity(data.len() + 1);
        message.push(channel);
        message.extend_from_slice(data);
        self.0.send(Message::Binary(message.into())).await.is_ok()
    }

    /// Copies a stream into a channel until either ends.
    pub(super) async fn copy(&self, channel: u8, mut from: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 32 * 1024];
        loop {
            match from.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => {
                    if !self.send(channel, &buffer[..read]).await {
                        return;
                    }
                }
            }
        }
    }
}

impl Receiver {
    /// The next data; `None` when the client is gone.
    pub(super) async fn next(&mut self) -> Option<Incoming> {
        loop {
            let data: Bytes = match self.0.next().await? {
                Ok(Message::Binary(data)) => data,
                Ok(Message::Text(text)) => Bytes::copy_from_slice(text.as_bytes()),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => continue,
            };
            match data.first().copied() {
                None => {}
                Some(CLOSE) => {
                    if let Some(channel) = data.get(1) {
                        return Some(Incoming::Closed(*channel));
                    }
                }
                Some(channel) => return Some(Incoming::Data(channel, data.slice(1..))),
            }
        }
    }
}
