//! Port-forward over SPDY, as `kubectl port-forward` speaks it: for every connection made to the
//! client's end a stream for errors, then one for data, both with the same request number.
//!
//! A Pod that does not read holds up its own connection until [`WAITING`] pieces wait for it, and
//! after that the others of the same client: SPDY as Kubernetes speaks it has no brake per stream.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use bytes::Bytes;
use http::{Request, Response};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::relay::{Pair, relay};
use super::spdy::{Frame, Happened, Session};
use super::wire::{self, Incoming, Outgoing};
use super::{Body, Refusal, upgrade};

const WITHIN_WEBSOCKET: &str = "SPDY/3.1+portforward.k8s.io";
const BARE: &str = "portforward.k8s.io";

/// How many pieces of data wait for a Pod that does not read.
const WAITING: usize = 64;

/// Whether a request wants this protocol.
pub(super) fn is_meant<B>(request: &Request<B>) -> bool {
    upgrade::asks_for_spdy(request) || upgrade::offers(request, WITHIN_WEBSOCKET)
}

/// Forwards to the address that `pod` gives. It is asked anew for every connection: once the Pod is
/// gone, another may get its address.
pub(super) fn answer<B>(
    request: Request<B>,
    pod: impl Fn() -> Option<Ipv4Addr> + Send + Sync + 'static,
) -> Result<Response<Body>, Refusal> {
    let serve = |incoming, outgoing| Tunnel::new(pod, outgoing).serve(incoming);
    if upgrade::asks_for_spdy(&request) {
        upgrade::spdy(request, &[BARE], |io| wire::bare(io, serve))
    } else {
        upgrade::websocket(request, &[WITHIN_WEBSOCKET], |socket| wire::within(socket, serve))
    }
}

/// A forwarded connection, seen from the tunnel.
struct Forwarded {
    streams: Pair,
    /// Gone once the client sends nothing more.
    to_pod: Option<mpsc::Sender<Bytes>>,
    task: AbortHandle,
}

struct Tunnel<P> {
    pod: P,
    outgoing: Outgoing,
    session: Session,
    /// Streams for errors that wait for their data stream, by request number.
    waiting: BTreeMap<String, u32>,
    /// By the number of the data stream.
    forwarded: BTreeMap<u32, Forwarded>,
    relays: JoinSet<Pair>,
}

impl<P: Fn() -> Option<Ipv4Addr>> Tunnel<P> {
    fn new(pod: P, outgoing: Outgoing) -> Self {
        Self {
            pod,
            outgoing,
            session: Session::default(),
            waiting: BTreeMap::new(),
            forwarded: BTreeMap::new(),
            relays: JoinSet::new(),
        }
    }

    /// Serves until the client is gone; what is still forwarded then is cut off.
    async fn serve(mut self, mut incoming: Incoming) {
        loop {
            let frame = tokio::select! {
                biased;
                Some(ended) = self.relays.join_next() => {
                    if let Ok(streams) = ended {
                        self.forget(streams);
                    }
                    continue;
                }
                frame = incoming.next() => frame,
            };
            let frame = match frame {
                Some(Ok(frame)) => frame,
                Some(Err(broken)) => {
                    tracing::debug!(%broken, "a port-forward client makes no sense");
                    return self.send(self.session.go_away(true)).await;
                }
                None => return,
            };
            let step = self.session.receive(frame);
            if let Some(answer) = step.answer {
                self.send(answer).await;
            }
            for happened in step.happened {
                match happened {
                    Happened::Opened { id, headers } => {
                        let reply = self.open(id, &headers);
                        self.send(reply).await;
                    }
                    Happened::Data { id, data } => {
                        let forwarded = self.forwarded.get(&id);
                        if let Some(to_pod) = forwarded.and_then(|it| it.to_pod.as_ref()) {
                            // The Pod may have hung up.
                            let _ = to_pod.send(data).await;
                        }
                    }
                    Happened::Finished { id } => {
                        if let Some(forwarded) = self.forwarded.get_mut(&id) {
                            forwarded.to_pod = None;
                        }
                    }
                    Happened::Reset { id } => self.reset(id).await,
                    Happened::GoneAway => return,
                }
            }
        }
    }

    async fn send(&self, frame: Frame) {
        // When the client is gone, reading ends too.
        let _ = self.outgoing.send(frame).await;
    }

    /// The answer to a new stream.
    fn open(&mut self, id: u32, headers: &[(String, String)]) -> Frame {
        let header = |name| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        let request = header("requestid").cloned().unwrap_or_default();
        let port = header("port").and_then(|port| port.parse::<u16>().ok());
        match (header("streamtype").map(String::as_str), port) {
            (Some("error"), Some(_)) if !self.waiting.contains_key(&request) => {
                self.waiting.insert(request, id);
            }
            (Some("data"), Some(port)) => {
                let Some(error) = self.waiting.remove(&request) else {
                    return self.session.refuse(id);
                };
                let streams = Pair { error, data: id };
                let (to_pod, from_client) = mpsc::channel(WAITING);
                let outgoing = self.outgoing.clone();
                let relay = relay((self.pod)(), port, streams, from_client, outgoing);
                let task = self.relays.spawn(relay);
                self.forwarded.insert(id, Forwarded { streams, to_pod: Some(to_pod), task });
            }
            _ => return self.session.refuse(id),
        }
        self.session.accept(id)
    }

    /// The client drops a connection; it waits for the end of the error stream.
    async fn reset(&mut self, id: u32) {
        self.waiting.retain(|_, waiting| *waiting != id);
        let Some(forwarded) = self.forwarded.get(&id) else { return };
        forwarded.task.abort();
        let streams = forwarded.streams;
        self.send(Frame::Data { id: streams.error, fin: true, data: Bytes::new() }).await;
        self.forget(streams);
    }

    fn forget(&mut self, streams: Pair) {
        self.session.finished(streams.error);
        self.session.finished(streams.data);
        self.forwarded.remove(&streams.data);
    }
}

#[cfg(test)]
mod tests;
