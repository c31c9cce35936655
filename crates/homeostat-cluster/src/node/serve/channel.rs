//! Several byte streams over one connection, by number, as exec and attach know them: over a
//! WebSocket the first byte of a message names the channel; over SPDY each is a stream.

use std::future::Future;

use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{Sink, SinkExt, StreamExt, stream};
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use super::upgrade::{self, Socket, goodbye};
use super::{Body, Refusal};

/// Closing one channel, from protocol version 5 on: `[255, channel]`.
const CLOSE: u8 = 255;

/// The end that sends; clones share the connection.
#[derive(Debug, Clone)]
pub(super) struct Sender(mpsc::Sender<(u8, Bytes)>);

/// The end that receives.
pub(super) struct Receiver(BoxStream<'static, Incoming>);

/// What the client sent.
#[derive(Debug)]
pub(super) enum Incoming {
    Data(u8, Bytes),
    Closed(u8),
}

/// Answers with `101 Switching Protocols` in the first of `protocols` that the client offers, and
/// runs `serve` on the WebSocket.
pub(super) fn upgrade<B, F, Fut>(
    request: Request<B>,
    protocols: &[&'static str],
    serve: F,
) -> Result<Response<Body>, Refusal>
where
    F: FnOnce(Sender, Receiver) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    upgrade::websocket(request, protocols, |socket| within(socket, serve))
}

async fn within<F, Fut>(socket: Socket, serve: F)
where
    F: FnOnce(Sender, Receiver) -> Fut,
    Fut: Future<Output = ()>,
{
    let (mut sink, mut stream) = socket.split();
    let (arrived, arriving) = mpsc::channel(16);
    let answer = async {
        let (sender, messages) = pair();
        let received = stream::unfold(arriving, |mut arriving| async move {
            arriving.recv().await.map(|incoming| (incoming, arriving))
        });
        tokio::join!(serve(sender, Receiver::new(received.boxed())), write(&mut sink, messages));
        // The client may have hung up first.
        let _ = sink.send(goodbye()).await;
        let _ = sink.flush().await;
    };
    // To the client's own end, whether or not anybody wants what it sends: a connection that is closed
    // with something unread in it is reset, and takes from the client what it has yet to read.
    let receive = async {
        while let Some(Ok(message)) = stream.next().await {
            if matches!(message, Message::Close(_)) {
                break;
            }
            if let Some(incoming) = read(message) {
                let _ = arrived.send(incoming).await;
            }
        }
        drop(arrived);
    };
    tokio::join!(answer, receive);
}

fn read(message: Message) -> Option<Incoming> {
    let data: Bytes = match message {
        Message::Binary(data) => data,
        Message::Text(text) => text.into(),
        _ => return None,
    };
    match *data.first()? {
        CLOSE => data.get(1).copied().map(Incoming::Closed),
        channel => Some(Incoming::Data(channel, data.slice(1..))),
    }
}

/// Writes until every sender is gone, or the client.
async fn write(mut sink: impl Sink<Message> + Unpin, mut messages: mpsc::Receiver<(u8, Bytes)>) {
    while let Some((channel, data)) = messages.recv().await {
        let mut message = BytesMut::with_capacity(data.len() + 1);
        message.put_u8(channel);
        message.put_slice(&data);
        if sink.send(Message::Binary(message.freeze())).await.is_err() {
            return;
        }
    }
}

/// A sender, and where its channels' data goes.
pub(super) fn pair() -> (Sender, mpsc::Receiver<(u8, Bytes)>) {
    let (sender, messages) = mpsc::channel(16);
    (Sender(sender), messages)
}

impl Sender {
    /// Sends on a channel; whether the connection still stands.
    pub(super) async fn send(&self, channel: u8, data: impl Into<Bytes>) -> bool {
        self.0.send((channel, data.into())).await.is_ok()
    }

    /// Copies a stream into a channel until either ends.
    pub(super) async fn copy(&self, channel: u8, mut from: impl AsyncRead + Unpin) {
        loop {
            let mut buffer = BytesMut::with_capacity(32 * 1024);
            match from.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    if !self.send(channel, buffer.freeze()).await {
                        return;
                    }
                }
            }
        }
    }
}

impl Receiver {
    pub(super) fn new(received: BoxStream<'static, Incoming>) -> Self {
        Self(received)
    }

    /// The next data; `None` when the client is gone.
    pub(super) async fn next(&mut self) -> Option<Incoming> {
        self.0.next().await
    }
}
