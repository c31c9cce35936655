//! Several byte streams over one WebSocket: the first byte of a message names the channel.

use std::future::Future;

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use super::upgrade::{self, Socket};
use super::{Body, Refusal};

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
    request: Request<B>,
    protocols: &[&'static str],
    serve: F,
) -> Result<Response<Body>, Refusal>
where
    F: FnOnce(Sender, Receiver) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    upgrade::websocket(request, protocols, |socket| async move {
        let (sink, stream) = socket.split();
        let (sender, messages) = mpsc::channel(16);
        let writer = write(sink, messages);
        tokio::join!(serve(Sender(sender), Receiver(stream)), writer);
    })
}

/// Writes until every sender is gone, then says goodbye.
async fn write(mut sink: SplitSink<Socket, Message>, mut messages: mpsc::Receiver<Message>) {
    while let Some(message) = messages.recv().await {
        if sink.send(message).await.is_err() {
            return;
        }
    }
    // The client may have hung up first.
    let _ = sink.send(upgrade::goodbye()).await;
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
