//! Frames of SPDY over a connection: bare, or as the binary messages of a WebSocket.

use std::future::Future;

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{Sink, SinkExt, StreamExt, future};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::codec::{BytesCodec, Framed};

use super::spdy::{Broken, Decoder, Encoder, Frame};
use super::upgrade::{Raw, Socket, goodbye};

/// The frames that a client sends.
pub(super) struct Incoming {
    bytes: BoxStream<'static, Bytes>,
    decoder: Decoder,
}

impl Incoming {
    pub(super) fn new(bytes: BoxStream<'static, Bytes>) -> Self {
        Self { bytes, decoder: Decoder::new() }
    }

    /// The next frame; `None` when the client is gone. Nothing is lost when this is dropped.
    pub(super) async fn next(&mut self) -> Option<Result<Frame, Broken>> {
        loop {
            match self.decoder.next() {
                Ok(Some(frame)) => return Some(Ok(frame)),
                Ok(None) => self.decoder.feed(&self.bytes.next().await?),
                Err(broken) => return Some(Err(broken)),
            }
        }
    }
}

/// The end that sends frames; clones share the connection.
pub(super) type Outgoing = mpsc::Sender<Frame>;

/// Runs `serve` on a bare connection.
pub(super) async fn bare<F, Fut>(io: Raw, serve: F)
where
    F: FnOnce(Incoming, Outgoing) -> Fut,
    Fut: Future<Output = ()>,
{
    let (mut sink, stream) = Framed::new(io, BytesCodec::new()).split::<Bytes>();
    let bytes = stream
        .take_while(|bytes| future::ready(bytes.is_ok()))
        .filter_map(|bytes| future::ready(bytes.ok().map(BytesMut::freeze)));
    let (outgoing, frames) = mpsc::channel(16);
    tokio::join!(serve(Incoming::new(bytes.boxed()), outgoing), write(frames, &mut sink));
    // The client may have hung up first.
    let _ = sink.close().await;
}

/// Runs `serve` on a WebSocket.
pub(super) async fn within<F, Fut>(socket: Socket, serve: F)
where
    F: FnOnce(Incoming, Outgoing) -> Fut,
    Fut: Future<Output = ()>,
{
    let (mut sink, stream) = socket.split();
    let bytes = stream
        .take_while(|message| future::ready(!matches!(message, Ok(Message::Close(_)) | Err(_))))
        .filter_map(|message| {
            future::ready(match message {
                Ok(Message::Binary(bytes)) => Some(bytes),
                _ => None,
            })
        });
    let (outgoing, frames) = mpsc::channel(16);
    let binary = (&mut sink).with(|bytes| future::ok::<_, Error>(Message::Binary(bytes)));
    tokio::join!(serve(Incoming::new(bytes.boxed()), outgoing), write(frames, binary));
    // The client may have hung up first.
    let _ = sink.send(goodbye()).await;
    let _ = sink.flush().await;
}

/// Writes until every sender is gone, or the client.
async fn write<E>(
    mut frames: mpsc::Receiver<Frame>,
    mut sink: impl Sink<Bytes, Error = E> + Unpin,
) {
    let Ok(mut encoder) = Encoder::new() else { return };
    while let Some(frame) = frames.recv().await {
        let Ok(bytes) = encoder.encode(&frame) else { return };
        if sink.send(bytes).await.is_err() {
            return;
        }
    }
}
