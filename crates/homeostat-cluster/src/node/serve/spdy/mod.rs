//! SPDY/3.1, as far as Kubernetes clients speak it: many streams over one connection that a client
//! opens, without flow control, push or priorities.
//!
//! Everything here is pure: bytes to frames ([`Decoder`]), frames to bytes ([`Encoder`]), frames to
//! what they mean ([`Session`]). Nothing here reads, writes or waits; who owns the connection does.

mod frame;
mod headers;
mod session;

pub(super) use frame::{Decoder, Encoder, Frame};
pub(super) use session::{Happened, Session};

/// Why a connection cannot go on: after any of these the two ends disagree about what comes next.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("a frame of version {0}; this node speaks SPDY/3.1")]
    Version(u16),
    #[error("a control frame of {0} bytes is too long")]
    TooLong(usize),
    #[error("a control frame of type {0} is too short")]
    TooShort(u16),
    #[error("the headers of a frame cannot be read: {0}")]
    Headers(&'static str),
    #[error("the headers of a frame cannot be unpacked: {0}")]
    Packed(#[from] flate2::DecompressError),
    #[error("the headers of a frame cannot be packed: {0}")]
    Unpacked(#[from] flate2::CompressError),
}
