//! Port-forward over the WebSocket channel protocol: two channels per port, data and error, each
//! beginning with the port's number. What speaks SPDY is left to the tunnel.

use std::net::Ipv4Addr;

use http::{Request, Response, StatusCode};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::task::JoinSet;

use super::channel::{Incoming, Receiver, Sender, upgrade};
use super::query::Query;
use super::{Body, NodeService, Refusal, tunnel};

const PROTOCOLS: [&str; 2] = ["v4.channel.k8s.io", "portforward.k8s.io"];

pub(super) fn answer<B>(
    request: Request<B>,
    service: &NodeService,
    (namespace, name): (&str, &str),
    query: &Query,
) -> Result<Response<Body>, Refusal> {
    let pod = service.pod(namespace, name)?;
    if tunnel::is_meant(&request) {
        let still_there = {
            let (host, uid) = (service.host.clone(), pod.uid);
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            move || {
                host.directory
                    .find(&namespace, &name)
                    .filter(|pod| pod.uid == uid)
                    .and_then(|pod| pod.ip)
            }
        };
        return tunnel::answer(request, still_there);
    }
    let lists = query.all("ports").chain(query.all("port"));
    let ports: Result<Vec<u16>, _> =
        lists.flat_map(|list| list.split(',')).map(str::parse).collect();
    let ports = ports.ok().filter(|ports| !ports.is_empty() && ports.len() < 128);
    let Some(ports) = ports else {
        return Err((StatusCode::BAD_REQUEST, "ports must be a list of port numbers".into()));
    };
    let ended = || (StatusCode::BAD_REQUEST, format!("pod \"{namespace}/{name}\" has ended"));
    let ip = pod.ip.ok_or_else(ended)?;
    upgrade(request, &PROTOCOLS, move |sender, receiver| serve(ip, ports, sender, receiver))
}

async fn serve(ip: Ipv4Addr, ports: Vec<u16>, sender: Sender, mut receiver: Receiver) {
    let mut copies = JoinSet::new();
    let mut writers: Vec<Option<OwnedWriteHalf>> = Vec::new();
    for (index, port) in ports.into_iter().enumerate() {
        let data = u8::try_from(index * 2).unwrap_or_default();
        for channel in [data, data + 1] {
            sender.send(channel, port.to_le_bytes().to_vec()).await;
        }
        match TcpStream::connect((ip, port)).await {
            Ok(stream) => {
                let (reader, writer) = stream.into_split();
                let sender = sender.clone();
                copies.spawn(async move { sender.copy(data, reader).await });
                writers.push(Some(writer));
            }
            Err(error) => {
                let words = format!("nothing answers on port {port} of the Pod ({ip}): {error}");
                sender.send(data + 1, words).await;
                writers.push(None);
            }
        }
    }
    drop(sender);
    let incoming = async {
        while let Some(incoming) = receiver.next().await {
            if let Incoming::Data(channel, data) = incoming
                && channel % 2 == 0
                && let Some(Some(writer)) = writers.get_mut(usize::from(channel / 2))
            {
                // The other direction ends by itself when the Pod hangs up.
                let _ = writer.write_all(&data).await;
            }
        }
    };
    let outgoing = async { while copies.join_next().await.is_some() {} };
    tokio::select! {
        biased;
        () = outgoing => {}
        () = incoming => {}
    }
}
