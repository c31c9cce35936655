//! Where sandboxes hand in the agent's end of their filters.

use std::io::Result;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener as StdUnixListener;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::OwnPorts;
use super::filter::Listener;
use super::supervise::supervise;
use crate::node::descriptor;

/// A socket with an abstract name, which the kernel chose and which leaves nothing on disk.
/// Dropping it closes it; what was handed in is looked after until its processes are gone.
#[derive(Debug)]
pub(crate) struct Reception {
    name: String,
    task: JoinHandle<()>,
}

impl Reception {
    /// Opens it.
    ///
    /// # Errors
    /// When the system has no socket to give.
    pub(crate) fn open() -> Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new_unnamed())?;
        rustix::net::listen(&socket, 128)?;
        let socket = StdUnixListener::from(socket);
        let name = socket.local_addr()?;
        let name = String::from_utf8_lossy(name.as_abstract_name().unwrap_or_default()).into();
        let task = tokio::spawn(receive(UnixListener::from_std(socket)?));
        Ok(Self { name, task })
    }

    /// What the sandbox of a Pod with this address must know.
    pub(crate) fn ports(&self, address: Ipv4Addr) -> OwnPorts {
        OwnPorts { address, reception: self.name.clone() }
    }
}

impl Drop for Reception {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn receive(socket: UnixListener) {
    loop {
        match socket.accept().await {
            Ok((sandbox, _)) => {
                tokio::spawn(async move {
                    if let Err(error) = take_in(sandbox).await {
                        tracing::warn!(%error, "a container's network cannot be looked after");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a container's network was not handed in");
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn take_in(sandbox: UnixStream) -> Result<()> {
    // An abstract name is open to everybody on the host.
    if sandbox.peer_cred()?.uid() != nix::unistd::geteuid().as_raw() {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    sandbox.readable().await?;
    let (address, listener) = loop {
        match sandbox.try_io(Interest::READABLE, || one_listener(&sandbox)) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                sandbox.readable().await?;
            }
            other => break other?,
        }
    };
    supervise(Listener::new(listener)?, address).await
}

fn one_listener(sandbox: &UnixStream) -> Result<(Ipv4Addr, OwnedFd)> {
    let mut address = [0; 4];
    let listener = descriptor::receive(sandbox, &mut address)?;
    Ok((address.into(), listener.ok_or(std::io::ErrorKind::UnexpectedEof)?))
}
