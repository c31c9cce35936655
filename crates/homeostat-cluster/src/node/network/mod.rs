//! Every Pod its own ports, without a network namespace and without root.
//!
//! ```text
//! program ──bind 0.0.0.0:80──▶ kernel ──seccomp notification──▶ agent ──bind POD_IP:80──▶ the program's own socket
//!                                 ◀──────────── the result ──────┘
//! ```
//!
//! A Pod has an address of its own on the host's loopback. The sandbox puts a filter under the
//! Pod's processes that reports `bind`, `connect` and `sendto` to the agent (`filter`); the agent
//! translates the address (`translate`: a Pod's "every address" and "localhost" are the Pod's
//! own), does the call on the program's own socket and answers with its result (`supervise`).
//! The bytes go through the kernel as ever.
//!
//! This is for programs that mean well, not a wall: calls that the filter does not see (io_uring,
//! `sendmsg` with a destination, 32-bit programs on a 64-bit host) act on the host's addresses.

mod filter;
mod reception;
mod supervise;
mod translate;

use std::io::Result;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use serde::{Deserialize, Serialize};

use super::descriptor;
pub(crate) use reception::Reception;

/// What a sandbox needs to give its processes ports of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnPorts {
    /// The Pod's address.
    address: Ipv4Addr,
    /// The abstract name of the socket on which the agent takes listeners in.
    reception: String,
}

/// How giving a process ports of its own can end.
#[derive(Debug)]
pub(crate) enum Installed {
    /// This process and everything it starts from now on is under the filter.
    Yes,
    /// The host does not allow it; nothing has changed.
    Refused(std::io::Error),
}

impl OwnPorts {
    /// Puts the calling process, which must have one thread, under the filter, and hands the other
    /// end to the agent.
    ///
    /// # Errors
    /// When the filter is there but the agent is not: whatever starts now could not use the network.
    pub(crate) fn install(&self) -> Result<Installed> {
        // Connected first: under the filter, connecting would wait for an agent that knows nothing.
        let agent = SocketAddr::from_abstract_name(&self.reception)
            .and_then(|name| UnixStream::connect_addr(&name));
        let agent = match agent {
            Ok(agent) => agent,
            Err(error) => return Ok(Installed::Refused(error)),
        };
        let listener = match filter::install() {
            Ok(listener) => listener,
            Err(error) => return Ok(Installed::Refused(error)),
        };
        descriptor::send(agent, &self.address.octets(), Some(listener.as_fd()))?;
        Ok(Installed::Yes)
    }
}
