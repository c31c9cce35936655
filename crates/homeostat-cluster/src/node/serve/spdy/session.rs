//! What the frames of a client mean: streams that open, carry data, finish and break.
//!
//! The node's end never opens a stream. It grants no windows and waits for none: the clients of
//! Kubernetes neither send window updates nor heed them, the connection itself is the brake.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::frame::Frame;
use super::headers::Headers;

/// More than any client needs at once: each forwarded connection takes two.
const MAX_STREAMS: usize = 2_000;

const PROTOCOL_ERROR: u32 = 1;
const INVALID_STREAM: u32 = 2;
const REFUSED_STREAM: u32 = 3;

/// What a frame brought about.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Happened {
    /// The client opened a stream and waits for [`Session::accept`] or [`Session::refuse`].
    Opened { id: u32, headers: Headers },
    /// Bytes of an open stream.
    Data { id: u32, data: Bytes },
    /// The client sends nothing more on a stream; it may still read.
    Finished { id: u32 },
    /// The client neither sends nor reads any more on a stream.
    Reset { id: u32 },
    /// The client is about to leave.
    GoneAway,
}

/// The outcome of a frame.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Step {
    /// What to send back.
    pub(in super::super) answer: Option<Frame>,
    /// What happened, in order.
    pub(in super::super) happened: Vec<Happened>,
}

#[derive(Debug, Default)]
struct Stream {
    finished_by_client: bool,
    finished_by_node: bool,
}

/// The streams of one connection.
#[derive(Debug, Default)]
pub(in super::super) struct Session {
    last: u32,
    open: BTreeMap<u32, Stream>,
}

impl Session {
    /// Takes the client's next frame.
    pub(in super::super) fn receive(&mut self, frame: Frame) -> Step {
        match frame {
            Frame::SynStream { id, fin, headers } => self.opened(id, fin, headers),
            Frame::Data { id, fin, data } => self.data(id, fin, data),
            Frame::RstStream { id, .. } => {
                let known = self.open.remove(&id).is_some();
                happened(known.then_some(Happened::Reset { id }))
            }
            // Odd numbers are the client's; an even one would be the echo of a ping of ours.
            Frame::Ping(number) if number % 2 == 1 => answer(Frame::Ping(number)),
            Frame::GoAway { .. } => happened([Happened::GoneAway]),
            Frame::Ping(_) | Frame::SynReply { .. } | Frame::Other(_) => Step::default(),
        }
    }

    fn opened(&mut self, id: u32, fin: bool, headers: Headers) -> Step {
        if id.is_multiple_of(2) || id <= self.last {
            return answer(Frame::RstStream { id, status: PROTOCOL_ERROR });
        }
        self.last = id;
        if self.open.len() >= MAX_STREAMS {
            return answer(Frame::RstStream { id, status: REFUSED_STREAM });
        }
        self.open.insert(id, Stream { finished_by_client: fin, ..Stream::default() });
        let finished = fin.then_some(Happened::Finished { id });
        happened([Happened::Opened { id, headers }].into_iter().chain(finished))
    }

    fn data(&mut self, id: u32, fin: bool, data: Bytes) -> Step {
        let Some(stream) = self.open.get_mut(&id) else {
            // Bytes may still be under way when a stream ends; they never come before it opens.
            let never_opened = id > self.last || id.is_multiple_of(2);
            let reset = Frame::RstStream { id, status: INVALID_STREAM };
            return Step { answer: never_opened.then_some(reset), ..Step::default() };
        };
        if stream.finished_by_client {
            return Step::default();
        }
        let data = (!data.is_empty()).then_some(Happened::Data { id, data });
        let finished = fin.then_some(Happened::Finished { id });
        stream.finished_by_client = fin;
        if fin && stream.finished_by_node {
            self.open.remove(&id);
        }
        happened(data.into_iter().chain(finished))
    }

    /// The frame that accepts a stream.
    pub(in super::super) fn accept(&self, id: u32) -> Frame {
        Frame::SynReply { id, fin: false, headers: Headers::new() }
    }

    /// Forgets a stream; the frame that refuses it.
    pub(in super::super) fn refuse(&mut self, id: u32) -> Frame {
        self.open.remove(&id);
        Frame::RstStream { id, status: REFUSED_STREAM }
    }

    /// Notes that the node sent its last frame on a stream.
    pub(in super::super) fn finished(&mut self, id: u32) {
        if let Some(stream) = self.open.get_mut(&id) {
            stream.finished_by_node = true;
            if stream.finished_by_client {
                self.open.remove(&id);
            }
        }
    }

    /// The frame that ends the connection; `broken` when the client's frames made no sense.
    pub(in super::super) fn go_away(&self, broken: bool) -> Frame {
        let status = if broken { PROTOCOL_ERROR } else { 0 };
        Frame::GoAway { last: self.last, status }
    }
}

fn answer(frame: Frame) -> Step {
    Step { answer: Some(frame), ..Step::default() }
}

fn happened(events: impl IntoIterator<Item = Happened>) -> Step {
    Step { answer: None, happened: events.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syn(id: u32) -> Frame {
        Frame::SynStream { id, fin: false, headers: Headers::new() }
    }

    fn data(id: u32, fin: bool) -> Frame {
        Frame::Data { id, fin, data: Bytes::from_static(b"x") }
    }

    fn with(ids: &[u32]) -> Session {
        let mut session = Session::default();
        for id in ids {
            let opened = Happened::Opened { id: *id, headers: Headers::new() };
            assert_eq!(session.receive(syn(*id)), happened([opened]));
        }
        session
    }

    #[test]
    fn data_arrives_before_the_end_it_carries() {
        let mut session = with(&[1]);
        let bytes = Bytes::from_static(b"x");
        let expected = [Happened::Data { id: 1, data: bytes }, Happened::Finished { id: 1 }];
        assert_eq!(session.receive(data(1, true)), happened(expected));
        assert_eq!(session.receive(data(1, true)), Step::default());
    }

    #[test]
    fn a_stream_is_forgotten_when_both_ends_finished_it() {
        for client_first in [true, false] {
            let mut session = with(&[1]);
            if client_first {
                session.receive(data(1, true));
                assert_eq!(session.open.len(), 1);
                session.finished(1);
            } else {
                session.finished(1);
                assert_eq!(session.open.len(), 1);
                session.receive(data(1, true));
            }
            assert!(session.open.is_empty());
        }
    }

    #[test]
    fn bytes_under_way_when_a_stream_ends_are_ignored_and_those_of_none_are_refused() {
        let mut session = with(&[1]);
        let reset = Frame::RstStream { id: 1, status: 5 };
        assert_eq!(session.receive(reset.clone()), happened([Happened::Reset { id: 1 }]));
        assert_eq!(session.receive(reset), Step::default());
        assert_eq!(session.receive(data(1, false)), Step::default());
        let refused = Frame::RstStream { id: 7, status: INVALID_STREAM };
        assert_eq!(session.receive(data(7, false)), answer(refused));
    }

    #[test]
    fn stream_numbers_are_odd_and_grow() {
        let mut session = with(&[3]);
        for id in [1, 3, 4] {
            let refused = Frame::RstStream { id, status: PROTOCOL_ERROR };
            assert_eq!(session.receive(syn(id)), answer(refused));
        }
        assert_eq!(session.open.len(), 1);
    }

    #[test]
    fn streams_without_end_are_refused() {
        let mut session = Session::default();
        let refused = (0..=MAX_STREAMS).filter(|index| {
            let id = u32::try_from(index * 2 + 1).unwrap();
            session.receive(syn(id)).answer.is_some()
        });
        assert_eq!(refused.count(), 1);
    }

    #[test]
    fn a_ping_comes_back_and_an_echo_does_not() {
        let mut session = Session::default();
        assert_eq!(session.receive(Frame::Ping(5)), answer(Frame::Ping(5)));
        assert_eq!(session.receive(Frame::Ping(2)), Step::default());
    }
}
