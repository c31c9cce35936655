//! Hands a descriptor to another process over a Unix socket.

use std::io::{IoSlice, IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// Sends `words`, and the descriptor with their first byte.
pub(super) fn send(
    socket: impl AsFd,
    words: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !descriptors.is_empty() {
        rights.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(words)], &mut rights, SendFlags::empty())?;
    Ok(())
}

/// Receives up to as many bytes as `words` has, and what came with them.
///
/// # Errors
/// When the other end is gone.
pub(super) fn receive(socket: impl AsFd, words: &mut [u8]) -> Result<Option<OwnedFd>> {
    let wanted = words.len();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(words)];
    let got = rustix::net::recvmsg(socket, &mut into, &mut rights, RecvFlags::CMSG_CLOEXEC)?;
    if got.bytes != wanted {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(rights.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut all) => all.next(),
        _ => None,
    }))
}
