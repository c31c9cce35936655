//! Frames of SPDY/3.1, from bytes and to bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::Broken;
use super::headers::{Headers, Packer, Unpacker};

const VERSION: u16 = 3;
const CONTROL: u16 = 0x8000;
const HEAD: usize = 8;
const FIN: u8 = 0x01;
const ID: u32 = 0x7fff_ffff;
const MAX_LENGTH: u32 = 0x00ff_ffff;

/// Control frames carry headers or a few numbers; data frames may be as long as their length says.
const MAX_CONTROL: usize = 64 * 1024;

/// One frame. Those that mean nothing here, such as settings, are [`Frame::Other`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Frame {
    /// The peer opens a stream; with `fin` it will send nothing on it.
    SynStream { id: u32, fin: bool, headers: Headers },
    /// A stream is accepted.
    SynReply { id: u32, fin: bool, headers: Headers },
    /// A stream ends in both directions at once.
    RstStream { id: u32, status: u32 },
    /// Asks to be sent back, or comes back.
    Ping(u32),
    /// No stream will be opened after `last`.
    GoAway { last: u32, status: u32 },
    /// Bytes of a stream; with `fin` they are the last.
    Data { id: u32, fin: bool, data: Bytes },
    /// A frame of another type: settings, window updates, more headers.
    Other(u16),
}

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;

/// Bytes in, frames out; a frame may arrive in any number of pieces.
#[derive(Debug)]
pub(in super::super) struct Decoder {
    buffer: BytesMut,
    unpacker: Unpacker,
}

impl Decoder {
    pub(in super::super) fn new() -> Self {
        Self { buffer: BytesMut::new(), unpacker: Unpacker::new() }
    }

    pub(in super::super) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame, or `None` until more bytes are fed. After an error nothing more can be read.
    pub(in super::super) fn next(&mut self) -> Result<Option<Frame>, Broken> {
        let Some(mut head) = self.buffer.get(..HEAD) else { return Ok(None) };
        let first = head.get_u32();
        let flags_and_length = head.get_u32();
        let fin = flags_and_length.to_be_bytes()[0] & FIN != 0;
        let length = usize::try_from(flags_and_length & MAX_LENGTH).unwrap_or(usize::MAX);
        let [high, low] = [first >> 16, first & 0xffff].map(|half| half as u16);
        let control = high & CONTROL != 0;
        if control && high & !CONTROL != VERSION {
            return Err(Broken::Version(high & !CONTROL));
        }
        if control && length > MAX_CONTROL {
            return Err(Broken::TooLong(length));
        }
        if self.buffer.len() < HEAD + length {
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        let body = self.buffer.split_to(length).freeze();
        if control {
            return self.control(low, fin, body).map(Some);
        }
        Ok(Some(Frame::Data { id: first & ID, fin, data: body }))
    }

    fn control(&mut self, kind: u16, fin: bool, mut body: Bytes) -> Result<Frame, Broken> {
        let mut number = || body.try_get_u32().map_err(|_| Broken::TooShort(kind));
        Ok(match kind {
            SYN_STREAM => {
                let id = number()? & ID;
                let _associated = number()?;
                let _priority_and_slot = body.try_get_u16().map_err(|_| Broken::TooShort(kind))?;
                Frame::SynStream { id, fin, headers: self.unpacker.unpack(&body)? }
            }
            SYN_REPLY => {
                let id = number()? & ID;
                Frame::SynReply { id, fin, headers: self.unpacker.unpack(&body)? }
            }
            HEADERS => {
                number()?;
                // Later blocks refer to this one, wanted or not.
                self.unpacker.unpack(&body)?;
                Frame::Other(kind)
            }
            RST_STREAM => Frame::RstStream { id: number()? & ID, status: number()? },
            PING => Frame::Ping(number()?),
            GOAWAY => Frame::GoAway { last: number()? & ID, status: number()? },
            other => Frame::Other(other),
        })
    }
}

/// Frames in, bytes out.
#[derive(Debug)]
pub(in super::super) struct Encoder(Packer);

impl Encoder {
    pub(in super::super) fn new() -> Result<Self, Broken> {
        Ok(Self(Packer::new()?))
    }

    /// The bytes of a frame; none for [`Frame::Other`], which is only ever received.
    pub(in super::super) fn encode(&mut self, frame: &Frame) -> Result<Bytes, Broken> {
        let mut body = Vec::new();
        let (kind, fin) = match frame {
            Frame::SynStream { id, fin, headers } => {
                body.put_u32(*id);
                body.put_u32(0);
                body.put_u16(0);
                body.put_slice(&self.0.pack(headers)?);
                (SYN_STREAM, *fin)
            }
            Frame::SynReply { id, fin, headers } => {
                body.put_u32(*id);
                body.put_slice(&self.0.pack(headers)?);
                (SYN_REPLY, *fin)
            }
            Frame::RstStream { id, status } => {
                body.put_u32(*id);
                body.put_u32(*status);
                (RST_STREAM, false)
            }
            Frame::Ping(number) => {
                body.put_u32(*number);
                (PING, false)
            }
            Frame::GoAway { last, status } => {
                body.put_u32(*last);
                body.put_u32(*status);
                (GOAWAY, false)
            }
            Frame::Data { id, fin, data } => return whole(id & ID, *fin, data),
            Frame::Other(_) => return Ok(Bytes::new()),
        };
        whole(u32::from(CONTROL | VERSION) << 16 | u32::from(kind), fin, &body)
    }
}

fn whole(first: u32, fin: bool, body: &[u8]) -> Result<Bytes, Broken> {
    let length = u32::try_from(body.len()).ok().filter(|length| *length <= MAX_LENGTH);
    let length = length.ok_or(Broken::TooLong(body.len()))?;
    let mut bytes = BytesMut::with_capacity(HEAD + body.len());
    bytes.put_u32(first);
    bytes.put_u32(if fin { u32::from(FIN) << 24 } else { 0 } | length);
    bytes.put_slice(body);
    Ok(bytes.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the Go library that kubectl is built with writes when it forwards a port.
    const RECORDED: &[u8] = include_bytes!("recorded.bin");

    fn all(decoder: &mut Decoder) -> Vec<Frame> {
        std::iter::from_fn(|| decoder.next().unwrap()).collect()
    }

    fn expected() -> Vec<Frame> {
        let syn = |id, kind: &str| {
            let headers = [("streamtype", kind), ("port", "8080"), ("requestid", "0")];
            let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
            Frame::SynStream { id, fin: false, headers: headers.into() }
        };
        vec![
            syn(1, "error"),
            Frame::Data { id: 1, fin: true, data: Bytes::new() },
            syn(3, "data"),
            Frame::Ping(1),
            Frame::Data { id: 3, fin: false, data: Bytes::from_static(b"hello") },
            Frame::Other(4),
            Frame::Other(9),
            Frame::RstStream { id: 3, status: 5 },
            Frame::GoAway { last: 0, status: 0 },
        ]
    }

    /// Go writes headers in any order.
    fn sorted(mut frames: Vec<Frame>) -> Vec<Frame> {
        for frame in &mut frames {
            if let Frame::SynStream { headers, .. } = frame {
                headers.sort();
            }
        }
        frames
    }

    #[test]
    fn what_kubectl_writes_is_read_whole_or_byte_by_byte() {
        let mut decoder = Decoder::new();
        decoder.feed(RECORDED);
        assert_eq!(sorted(all(&mut decoder)), sorted(expected()));

        let (mut decoder, mut frames) = (Decoder::new(), Vec::new());
        for byte in RECORDED {
            decoder.feed(&[*byte]);
            frames.extend(all(&mut decoder));
        }
        assert_eq!(sorted(frames), sorted(expected()));
    }

    #[test]
    fn every_frame_comes_out_as_it_went_in() {
        let (mut encoder, mut decoder) = (Encoder::new().unwrap(), Decoder::new());
        let reply = Frame::SynReply { id: 1, fin: true, headers: Vec::new() };
        let sent = expected().into_iter().chain([reply]);
        let sent: Vec<Frame> = sent.filter(|frame| !matches!(frame, Frame::Other(_))).collect();
        for frame in &sent {
            decoder.feed(&encoder.encode(frame).unwrap());
        }
        assert_eq!(all(&mut decoder), sent);
    }

    #[test]
    fn frames_that_cannot_be_spdy_break_the_connection() {
        let broken = |bytes: &[u8]| {
            let mut decoder = Decoder::new();
            decoder.feed(bytes);
            decoder.next().unwrap_err().to_string()
        };
        assert!(broken(&[0x80, 2, 0, 1, 0, 0, 0, 0]).contains("version 2"));
        assert!(broken(&[0x80, 3, 0, 1, 0, 0xff, 0, 0]).contains("too long"));
        assert!(broken(&[0x80, 3, 0, 6, 0, 0, 0, 1, 9]).contains("too short"));
        assert!(
            broken(b"\x80\x03\x00\x02\x00\x00\x00\x0a\x00\x00\x00\x01garbag").contains("headers")
        );
    }
}
