//! A client that speaks in frames, and a Pod that is a listener in the test.

use futures::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::super::spdy::Encoder;
use super::*;

const ERROR: u32 = 1;
const DATA: u32 = 3;

/// The client's end of a tunnel.
struct Client {
    encoder: Encoder,
    to_node: mpsc::UnboundedSender<Bytes>,
    from_node: mpsc::Receiver<Frame>,
    served: tokio::task::JoinHandle<()>,
}

impl Client {
    fn of(pod: Option<Ipv4Addr>) -> Self {
        let (to_node, bytes) = mpsc::unbounded_channel();
        let (outgoing, from_node) = mpsc::channel(16);
        let bytes = futures::stream::unfold(bytes, async |mut bytes| {
            let next = bytes.recv().await?;
            Some((next, bytes))
        });
        let incoming = Incoming::new(bytes.boxed());
        let served = tokio::spawn(Tunnel::new(move || pod, outgoing).serve(incoming));
        Self { encoder: Encoder::new().unwrap(), to_node, from_node, served }
    }

    fn send(&mut self, frame: &Frame) {
        self.to_node.send(self.encoder.encode(frame).unwrap()).unwrap();
    }

    fn data(&mut self, data: &'static [u8], fin: bool) {
        self.send(&Frame::Data { id: DATA, fin, data: Bytes::from_static(data) });
    }

    async fn open(&mut self, id: u32, kind: &str, port: u16) -> Frame {
        let headers = [("streamtype", kind), ("port", &port.to_string()), ("requestid", "0")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        self.send(&Frame::SynStream { id, fin: false, headers });
        self.from_node.recv().await.unwrap()
    }

    /// Opens the two streams of a connection.
    async fn connect(&mut self, port: u16) {
        for (id, kind) in [(ERROR, "error"), (DATA, "data")] {
            let reply = self.open(id, kind, port).await;
            assert_eq!(reply, Frame::SynReply { id, fin: false, headers: Vec::new() });
        }
    }

    /// What arrives on both streams until they end.
    async fn rest(&mut self) -> (String, Vec<u8>) {
        let (mut error, mut data, mut ends) = (Vec::new(), Vec::new(), 0);
        while ends < 2 {
            match self.from_node.recv().await.unwrap() {
                Frame::Data { id, fin, data: piece } => {
                    let into = if id == ERROR { &mut error } else { &mut data };
                    into.extend_from_slice(&piece);
                    ends += u8::from(fin);
                }
                other => panic!("unexpected: {other:?}"),
            }
        }
        (String::from_utf8(error).unwrap(), data)
    }
}

async fn pod() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

async fn connected() -> (Client, TcpStream) {
    let (listener, port) = pod().await;
    let mut client = Client::of(Some(Ipv4Addr::LOCALHOST));
    client.connect(port).await;
    let (stream, _) = listener.accept().await.unwrap();
    (client, stream)
}

#[tokio::test]
async fn bytes_go_both_ways_and_a_client_that_is_done_still_gets_its_answer() {
    let (mut client, mut stream) = connected().await;
    client.data(b"question", true);
    let mut question = String::new();
    stream.read_to_string(&mut question).await.unwrap();
    assert_eq!(question, "question");
    stream.write_all(b"answer").await.unwrap();
    drop(stream);
    assert_eq!(client.rest().await, (String::new(), b"answer".to_vec()));
}

#[tokio::test]
async fn megabytes_pass_through_a_pod_that_echoes() {
    static PIECE: [u8; 32 * 1024] = [7; 32 * 1024];
    let (mut client, mut stream) = connected().await;
    tokio::spawn(async move {
        let (mut reader, mut writer) = stream.split();
        tokio::io::copy(&mut reader, &mut writer).await.unwrap();
    });
    for _ in 0..256 {
        client.data(&PIECE, false);
    }
    client.data(b"", true);
    let (error, data) = client.rest().await;
    assert_eq!((error.as_str(), data.len()), ("", 256 * PIECE.len()));
}

#[tokio::test]
async fn a_port_that_nobody_answers_on_is_told_on_the_error_stream() {
    let (listener, port) = pod().await;
    drop(listener);
    let mut client = Client::of(Some(Ipv4Addr::LOCALHOST));
    client.connect(port).await;
    let (error, data) = client.rest().await;
    assert!(error.contains(&format!("nothing answers on port {port}")), "{error}");
    assert!(data.is_empty());
}

#[tokio::test]
async fn the_address_of_a_pod_that_is_gone_is_not_used() {
    let (_listener, port) = pod().await;
    let mut client = Client::of(None);
    client.connect(port).await;
    assert_eq!(client.rest().await.0, "the Pod is gone");
}

#[tokio::test]
async fn a_reset_hangs_up_on_the_pod_and_ends_the_error_stream() {
    let (mut client, mut stream) = connected().await;
    client.send(&Frame::RstStream { id: DATA, status: 5 });
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or_default(), 0);
    let end = Frame::Data { id: ERROR, fin: true, data: Bytes::new() };
    assert_eq!(client.from_node.recv().await, Some(end));
}

#[tokio::test]
async fn a_client_that_leaves_hangs_up_on_the_pod() {
    let (mut client, mut stream) = connected().await;
    client.send(&Frame::GoAway { last: 0, status: 0 });
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or_default(), 0);
    client.served.await.unwrap();
}

#[tokio::test]
async fn streams_that_say_too_little_are_refused() {
    let mut client = Client::of(Some(Ipv4Addr::LOCALHOST));
    for (id, kind) in [(1, "data"), (3, "stdin")] {
        let reply = client.open(id, kind, 80).await;
        assert!(matches!(reply, Frame::RstStream { id: refused, .. } if refused == id));
    }
}

#[tokio::test]
async fn a_client_that_makes_no_sense_is_told_to_go_away() {
    let mut client = Client::of(None);
    client.to_node.send(Bytes::from_static(b"\x80\x09GET / HTTP/1.1")).unwrap();
    assert_eq!(client.from_node.recv().await, Some(Frame::GoAway { last: 0, status: 1 }));
    client.served.await.unwrap();
}
