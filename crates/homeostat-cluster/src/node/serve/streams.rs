//! The channels of exec and attach over SPDY, as every kubectl before 1.31 speaks them: the client
//! opens one stream per channel, and nothing begins before the last is there.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use futures::StreamExt;
use http::{Request, Response};
use tokio::sync::mpsc;

use super::channel::{self, Receiver, Sender, pair};
use super::exec::{ERROR, RESIZE, STDERR, STDIN, STDOUT};
use super::spdy::{Frame, Happened, Session};
use super::wire::{self, Incoming, Outgoing};
use super::{Body, Refusal, upgrade};

const PROTOCOL: &str = "v4.channel.k8s.io";

/// What the client calls the channels.
const NAMES: [(&str, u8); 5] = [
    ("stdin", STDIN),
    ("stdout", STDOUT),
    ("stderr", STDERR),
    ("error", ERROR),
    ("resize", RESIZE),
];

/// Answers with `101 Switching Protocols`, and runs `serve` once the client opened all of `wanted`.
pub(super) fn upgrade<B, F, Fut>(
    request: Request<B>,
    wanted: BTreeSet<u8>,
    serve: F,
) -> Result<Response<Body>, Refusal>
where
    F: FnOnce(Sender, Receiver) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    upgrade::spdy(request, &[PROTOCOL], |io| {
        wire::bare(io, |incoming, outgoing| async move {
            let mut streams = Streams::new(incoming, outgoing.clone());
            while !wanted.iter().all(|channel| streams.ids.contains_key(channel)) {
                if streams.step().await.is_none() {
                    return;
                }
            }
            let ids = streams.ids.clone();
            let received = streams.received().boxed();
            let (sender, messages) = pair();
            let written = write(&ids, messages, &outgoing);
            tokio::join!(serve(sender, Receiver::new(received)), written);
        })
    })
}

struct Streams {
    incoming: Incoming,
    outgoing: Outgoing,
    session: Session,
    ids: BTreeMap<u8, u32>,
    early: Vec<channel::Incoming>,
}

impl Streams {
    fn new(incoming: Incoming, outgoing: Outgoing) -> Self {
        let (session, ids, early) = (Session::default(), BTreeMap::new(), Vec::new());
        Self { incoming, outgoing, session, ids, early }
    }

    /// Takes the client's next frame; `None` when it is gone.
    async fn step(&mut self) -> Option<()> {
        let frame = self.incoming.next().await?.ok()?;
        let step = self.session.receive(frame);
        if let Some(answer) = step.answer {
            self.outgoing.send(answer).await.ok()?;
        }
        for happened in step.happened {
            match happened {
                Happened::Opened { id, headers } => {
                    let kind = headers.iter().find(|(name, _)| name == "streamtype");
                    let known = NAMES.iter().find(|(name, _)| kind.is_some_and(|it| it.1 == *name));
                    let reply = match known {
                        Some((_, channel)) if !self.ids.contains_key(channel) => {
                            self.ids.insert(*channel, id);
                            self.session.accept(id)
                        }
                        _ => self.session.refuse(id),
                    };
                    self.outgoing.send(reply).await.ok()?;
                }
                Happened::Data { id, data } => {
                    let incoming = self.channel(id).map(|it| channel::Incoming::Data(it, data));
                    self.early.extend(incoming);
                }
                Happened::Finished { id } | Happened::Reset { id } => {
                    self.early.extend(self.channel(id).map(channel::Incoming::Closed));
                }
                Happened::GoneAway => return None,
            }
        }
        Some(())
    }

    fn channel(&self, id: u32) -> Option<u8> {
        self.ids.iter().find(|(_, of)| **of == id).map(|(channel, _)| *channel)
    }

    /// What the client sends, from the first byte on.
    fn received(self) -> impl futures::Stream<Item = channel::Incoming> {
        futures::stream::unfold(self, |mut streams| async move {
            while streams.early.is_empty() {
                streams.step().await?;
            }
            let next = streams.early.remove(0);
            Some((next, streams))
        })
    }
}

/// Writes until every sender is gone, then ends the streams.
async fn write(
    ids: &BTreeMap<u8, u32>,
    mut messages: mpsc::Receiver<(u8, bytes::Bytes)>,
    outgoing: &Outgoing,
) {
    while let Some((channel, data)) = messages.recv().await {
        let Some(id) = ids.get(&channel).copied().filter(|_| !data.is_empty()) else { continue };
        if outgoing.send(Frame::Data { id, fin: false, data }).await.is_err() {
            return;
        }
    }
    for id in ids.values().copied() {
        // The client may be gone.
        let _ = outgoing.send(Frame::Data { id, fin: true, data: bytes::Bytes::new() }).await;
    }
}
