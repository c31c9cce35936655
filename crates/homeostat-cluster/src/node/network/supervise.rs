//! Answers the questions of one filter until the last process under it is gone.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use nix::errno::Errno;
use nix::libc;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::{SendFlags, SocketType, sockopt};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use tokio::io::Interest;
use tokio::task::JoinSet;

use super::filter::{Answer, Listener, Question, awaitable};
use super::translate::{Call, Verdict, translate};

/// More than the largest datagram of IPv4.
const LARGEST_DATAGRAM: u64 = 0x1_0000;

/// Answers until the filter's processes are gone.
///
/// # Errors
/// When the listener does not work; its processes are then refused the calls it stands for.
pub(super) async fn supervise(listener: Listener, pod: Ipv4Addr) -> Result<()> {
    let listener = Arc::new(listener);
    let mut connecting = JoinSet::new();
    loop {
        let question = tokio::select! {
            biased;
            Some(_) = connecting.join_next() => continue,
            question = listener.next() => question?,
        };
        let Some(question) = question else { return Ok(()) };
        match carry_out(&listener, &question, pod) {
            Ok(Step::Answer(answer)) => listener.answer(question.id, answer),
            Ok(Step::Connecting(socket, address)) => {
                let listener = listener.clone();
                connecting.spawn(async move {
                    let result = connected(socket, address).await.map(|()| 0);
                    listener.answer(question.id, Answer::Return(result));
                });
            }
            Err(error) => {
                tracing::debug!(%error, ?question, "a call goes on untranslated");
                listener.answer(question.id, Answer::Continue);
            }
        }
    }
}

enum Step {
    Answer(Answer),
    Connecting(OwnedFd, SocketAddr),
}

/// Does what the program wants, where it wants something else than it says.
fn carry_out(listener: &Listener, question: &Question, pod: Ipv4Addr) -> Result<Step> {
    let as_asked = Ok(Step::Answer(Answer::Continue));
    let [descriptor, second, third, flags, fifth, sixth] = question.arguments;
    let (call, at, length) = match question.call {
        libc::SYS_bind => (Call::Bind, second, third),
        libc::SYS_connect => (Call::Reach, second, third),
        libc::SYS_sendto => (Call::Reach, fifth, sixth),
        _ => return as_asked,
    };
    let memory = File::open(format!("/proc/{}/mem", question.thread))?;
    let Some(address) = read_address(&memory, at, length)? else { return as_asked };
    if translate(call, address, pod, false) == Verdict::AsAsked {
        return as_asked;
    }
    let socket = socket_of(question.thread, descriptor)?;
    let only_v6 = address.is_ipv6() && sockopt::ipv6_v6only(&socket)?;
    // The thread's number was its own all along only if it still waits for us.
    if !listener.still_waits(question.id) {
        return as_asked;
    }
    let instead = match translate(call, address, pod, only_v6) {
        Verdict::AsAsked => return as_asked,
        Verdict::Refused => return Ok(Step::Answer(Answer::Return(Err(Errno::ECONNREFUSED)))),
        Verdict::Instead(instead) => instead,
    };
    let kind = sockopt::socket_type(&socket)?;
    let result = match question.call {
        libc::SYS_bind => returned(rustix::net::bind(&socket, &instead)),
        libc::SYS_connect if kind == SocketType::STREAM => {
            let blocking = !fcntl_getfl(&socket)?.contains(OFlags::NONBLOCK);
            match connect_without_waiting(&socket, instead) {
                Err(Errno::EINPROGRESS | Errno::EALREADY) if blocking => {
                    return Ok(Step::Connecting(socket, instead));
                }
                result => result.map(|()| 0),
            }
        }
        libc::SYS_connect => returned(rustix::net::connect(&socket, &instead)),
        // A stream has its destination already.
        _ if kind != SocketType::DGRAM || third > LARGEST_DATAGRAM => return as_asked,
        _ => {
            let mut datagram = vec![0; usize::try_from(third).map_err(Error::other)?];
            memory.read_exact_at(&mut datagram, second)?;
            let flags = u32::try_from(flags).map_err(Error::other)?;
            let flags = SendFlags::from_bits_retain(flags) | SendFlags::DONTWAIT;
            let sent = rustix::net::sendto(&socket, &datagram, flags, &instead);
            sent.map(|sent| i64::try_from(sent).unwrap_or(i64::MAX)).map_err(errno)
        }
    };
    Ok(Step::Answer(Answer::Return(result)))
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

fn returned(done: rustix::io::Result<()>) -> std::result::Result<i64, Errno> {
    done.map(|()| 0).map_err(errno)
}

/// The address that a call names; `None` when it is neither IPv4 nor IPv6, or too short.
fn read_address(memory: &File, at: u64, length: u64) -> Result<Option<SocketAddr>> {
    let mut raw = [0; size_of::<libc::sockaddr_in6>()];
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(raw.len());
    memory.read_exact_at(&mut raw[..length], at)?;
    Ok(parse(&raw[..length]))
}

/// A `sockaddr_in` or `sockaddr_in6`.
fn parse(raw: &[u8]) -> Option<SocketAddr> {
    let bytes = |from: usize| raw.get(from..from + 4)?.try_into().ok();
    let family = u16::from_ne_bytes(raw.get(..2)?.try_into().ok()?);
    let port = u16::from_be_bytes(raw.get(2..4)?.try_into().ok()?);
    match i32::from(family) {
        libc::AF_INET if raw.len() >= size_of::<libc::sockaddr_in>() => {
            let ip: [u8; 4] = bytes(4)?;
            Some(SocketAddrV4::new(ip.into(), port).into())
        }
        // The scope at the end is younger than the rest.
        libc::AF_INET6 if raw.len() >= size_of::<libc::sockaddr_in6>() - 4 => {
            let ip: [u8; 16] = raw.get(8..24)?.try_into().ok()?;
            let flow = u32::from_ne_bytes(bytes(4)?);
            let scope = bytes(24).map_or(0, u32::from_ne_bytes);
            Some(SocketAddrV6::new(ip.into(), port, flow, scope).into())
        }
        _ => None,
    }
}

/// A second handle on a socket of another process.
fn socket_of(thread: u32, descriptor: u64) -> Result<OwnedFd> {
    let status = fs::read_to_string(format!("/proc/{thread}/status"))?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    let process = process.and_then(rustix::process::Pid::from_raw);
    let process = process.ok_or_else(|| Error::from(ErrorKind::NotFound))?;
    let process = pidfd_open(process, PidfdFlags::empty())?;
    let descriptor = i32::try_from(descriptor).map_err(Error::other)?;
    Ok(pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty())?)
}

/// Begins to connect, or asks how far it got. A socket that waits belongs to a program that is
/// waiting for us, so nobody sees that it does not wait for a moment.
fn connect_without_waiting(
    socket: &OwnedFd,
    address: SocketAddr,
) -> std::result::Result<(), Errno> {
    let flags = fcntl_getfl(socket).map_err(errno)?;
    fcntl_setfl(socket, flags | OFlags::NONBLOCK).map_err(errno)?;
    let result = rustix::net::connect(socket, &address);
    fcntl_setfl(socket, flags).map_err(errno)?;
    result.map_err(errno)
}

/// Waits for a connection that has begun.
async fn connected(socket: OwnedFd, address: SocketAddr) -> std::result::Result<(), Errno> {
    let failed = |error: Error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
    let socket = awaitable(socket, Interest::WRITABLE).map_err(failed)?;
    loop {
        let mut ready = socket.writable().await.map_err(failed)?;
        // Asked again, the kernel tells the result and takes the connection as made.
        match connect_without_waiting(socket.get_ref(), address) {
            Err(Errno::EINPROGRESS | Errno::EALREADY) => ready.clear_ready(),
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_kernel_reads_them() {
        let mut v4 = [0_u8; 16];
        v4[..2].copy_from_slice(&2_u16.to_ne_bytes());
        v4[2..8].copy_from_slice(&[0x1f, 0x90, 127, 0, 0, 1]);
        assert_eq!(parse(&v4), Some("127.0.0.1:8080".parse().unwrap()));
        assert_eq!(parse(&v4[..15]), None, "too short is the kernel's to refuse");
        let mut v6 = [0_u8; 28];
        v6[..2].copy_from_slice(&10_u16.to_ne_bytes());
        v6[2..4].copy_from_slice(&[0, 80]);
        v6[23] = 1;
        assert_eq!(parse(&v6), Some("[::1]:80".parse().unwrap()));
        assert_eq!(parse(&v6[..24]), Some("[::1]:80".parse().unwrap()));
        let unix = [&1_u16.to_ne_bytes()[..], b"/run/a/very/long/path"].concat();
        assert_eq!(parse(&unix), None);
    }
}
