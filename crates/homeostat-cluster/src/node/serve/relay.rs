//! One forwarded connection: between a pair of streams and a port of a Pod.

use std::net::{Ipv4Addr, SocketAddrV4};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use super::spdy::Frame;
use super::wire::Outgoing;

/// The streams of one forwarded connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) error: u32,
    pub(super) data: u32,
}

/// Carries bytes both ways until the Pod hangs up, then ends both streams. A client that sends
/// nothing more is passed on to the Pod, which may still answer.
pub(super) async fn relay(
    pod: Option<Ipv4Addr>,
    port: u16,
    streams: Pair,
    from_client: mpsc::Receiver<Bytes>,
    to_client: Outgoing,
) -> Pair {
    let words = match connect(pod, port).await {
        Ok(connection) => {
            let (reader, writer) = connection.into_split();
            let sent = async {
                up(from_client, writer).await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                biased;
                () = down(reader, streams.data, &to_client) => {}
                () = sent => {}
            }
            String::new()
        }
        Err(words) => words,
    };
    // The reason comes first: the client looks for it as soon as the data ends.
    for (id, data) in [(streams.error, Bytes::from(words)), (streams.data, Bytes::new())] {
        // The client may be gone.
        let _ = to_client.send(Frame::Data { id, fin: true, data }).await;
    }
    streams
}

async fn connect(pod: Option<Ipv4Addr>, port: u16) -> Result<TcpStream, String> {
    let ip = pod.ok_or("the Pod is gone")?;
    let connection = TcpStream::connect(SocketAddrV4::new(ip, port)).await;
    connection.map_err(|error| format!("nothing answers on port {port} of the Pod ({ip}): {error}"))
}

async fn up(mut from_client: mpsc::Receiver<Bytes>, mut writer: OwnedWriteHalf) {
    while let Some(data) = from_client.recv().await {
        if writer.write_all(&data).await.is_err() {
            return;
        }
    }
}

async fn down(mut reader: OwnedReadHalf, id: u32, to_client: &Outgoing) {
    loop {
        let mut data = BytesMut::with_capacity(32 * 1024);
        match reader.read_buf(&mut data).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let frame = Frame::Data { id, fin: false, data: data.freeze() };
                if to_client.send(frame).await.is_err() {
                    return;
                }
            }
        }
    }
}
