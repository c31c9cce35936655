//! The kernel's side: the filter, and the questions that come out of it.
//!
//! The only module with `unsafe`: no safe crate offers seccomp's user notification. Each block is
//! one system call on memory that this module owns.

#![expect(unsafe_code, reason = "seccomp(2) and its ioctls have no safe wrapper")]

use std::io::{Error, Result};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc::{self, c_long, c_ulong, sock_filter, sock_fprog};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_no_new_privs;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What the kernel calls the processor's own calling convention; 32-bit programs have another.
#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCH: u32 = 0;

/// Offsets in `seccomp_data`.
const NUMBER: u32 = 0;
const CONVENTION: u32 = 4;
const FIFTH_ARGUMENT: u32 = 16 + 4 * 8;

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

#[expect(clippy::cast_possible_truncation, reason = "the flag is 1")]
const CONTINUE: u32 = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;

#[expect(clippy::cast_possible_truncation, reason = "operation codes and call numbers are small")]
const fn step(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "call numbers are small"
)]
const fn number(call: c_long) -> u32 {
    call as u32
}

/// Reports `bind`, `connect` and a `sendto` with a destination; lets everything else pass.
const PROGRAM: [sock_filter; 12] = [
    step(LOAD, CONVENTION, 0, 0),
    step(IF_EQUAL, ARCH, 0, 8),
    step(LOAD, NUMBER, 0, 0),
    step(IF_EQUAL, number(libc::SYS_bind), 7, 0),
    step(IF_EQUAL, number(libc::SYS_connect), 6, 0),
    step(IF_EQUAL, number(libc::SYS_sendto), 0, 4),
    // A pointer of two halves; both are zero when there is no destination, as in every `send`.
    step(LOAD, FIFTH_ARGUMENT, 0, 0),
    step(IF_EQUAL, 0, 0, 3),
    step(LOAD, FIFTH_ARGUMENT + 4, 0, 0),
    step(IF_EQUAL, 0, 0, 1),
    step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
    step(RETURN, libc::SECCOMP_RET_USER_NOTIF, 0, 0),
];

/// Puts this process, which must have one thread, under the filter; the questions of it and of
/// what it starts come out of the answer.
///
/// # Errors
/// When the kernel, or a container around this process, does not allow it.
pub(super) fn install() -> Result<OwnedFd> {
    if ARCH == 0 {
        return Err(Error::other("not known for this sort of processor"));
    }
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // A call that was carried out must not be carried out again because a signal came between.
    let undisturbed = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let attempt = || match seccomp(flags | undisturbed) {
        // Before Linux 5.19.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => seccomp(flags),
        other => other,
    };
    match attempt() {
        // Whoever may not do this to a program with more rights must renounce such programs.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            set_no_new_privs()?;
            attempt()
        }
        other => other,
    }
}

fn seccomp(flags: c_ulong) -> Result<OwnedFd> {
    let mut program = PROGRAM;
    let length = u16::try_from(program.len()).map_err(Error::other)?;
    let program = sock_fprog { len: length, filter: program.as_mut_ptr() };
    // SAFETY: `program` points to `length` instructions that live until the call returns; the
    // kernel copies them.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            std::ptr::from_ref(&program),
        )
    };
    let fd = RawFd::try_from(Errno::result(fd)?).map_err(Error::other)?;
    // SAFETY: with NEW_LISTENER the kernel's answer is a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    /// Names it in the answer.
    pub(super) id: u64,
    /// The thread that calls.
    pub(super) thread: u32,
    /// The number of the call.
    pub(super) call: c_long,
    /// Its arguments.
    pub(super) arguments: [u64; 6],
}

/// What a call comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The kernel does what was asked.
    Continue,
    /// The call returns this, and nothing is done.
    Return(std::result::Result<i64, Errno>),
}

/// A descriptor that can be waited for.
///
/// # Errors
/// When the system refuses.
pub(super) fn awaitable(fd: OwnedFd, interest: Interest) -> Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, and the same descriptor, until it is dropped.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

/// The agent's end of a filter.
#[derive(Debug)]
pub(super) struct Listener(AsyncFd<OwnedFd>);

impl Listener {
    /// Takes the descriptor that [`install`] gave, from whatever process.
    ///
    /// # Errors
    /// When the system cannot wait for it.
    pub(super) fn new(fd: OwnedFd) -> Result<Self> {
        Ok(Self(awaitable(fd, Interest::READABLE)?))
    }

    /// Waits for a question; `None` when nobody is left to ask.
    ///
    /// # Errors
    /// When the listener does not work.
    pub(super) async fn next(&self) -> Result<Option<Question>> {
        loop {
            let mut ready = self.0.readable().await?;
            let mut ask = [PollFd::new(self.0.get_ref().as_fd(), PollFlags::POLLIN)];
            poll(&mut ask, PollTimeout::ZERO)?;
            let seen = ask[0].revents().unwrap_or(PollFlags::empty());
            if seen.contains(PollFlags::POLLIN) {
                match self.receive() {
                    // Whoever asked is gone.
                    Err(Errno::ENOENT | Errno::EINTR) => {}
                    other => return Ok(Some(other?)),
                }
            } else if seen.is_empty() {
                ready.clear_ready();
            } else {
                return Ok(None);
            }
        }
    }

    /// Takes the next question off. The kernel waits for one if there is none.
    fn receive(&self) -> std::result::Result<Question, Errno> {
        // SAFETY: zero is a value of every field of this plain structure.
        let mut question: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        let into = std::ptr::from_mut(&mut question);
        // SAFETY: the kernel writes one `seccomp_notif`, to a place of that size that is ours.
        let done = unsafe {
            libc::ioctl(self.0.get_ref().as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, into)
        };
        Errno::result(done)?;
        Ok(Question {
            id: question.id,
            thread: question.pid,
            call: question.data.nr.into(),
            arguments: question.data.args,
        })
    }

    /// Whether whoever asked still waits: only then is its thread's number still its own.
    pub(super) fn still_waits(&self, id: u64) -> bool {
        let what = std::ptr::from_ref(&id);
        // SAFETY: the kernel reads one `u64` from a place of that size that is ours.
        unsafe {
            libc::ioctl(self.0.get_ref().as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, what) == 0
        }
    }

    /// Answers a question; nothing happens when nobody waits for it any more.
    pub(super) fn answer(&self, id: u64, answer: Answer) {
        // SAFETY: zero is a value of every field of this plain structure.
        let mut reply: libc::seccomp_notif_resp = unsafe { std::mem::zeroed() };
        reply.id = id;
        match answer {
            Answer::Continue => reply.flags = CONTINUE,
            Answer::Return(Ok(value)) => reply.val = value,
            Answer::Return(Err(error)) => reply.error = -(error as i32),
        }
        let what = std::ptr::from_mut(&mut reply);
        // SAFETY: the kernel reads one `seccomp_notif_resp` from a place of that size that is ours.
        unsafe { libc::ioctl(self.0.get_ref().as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, what) };
    }
}
