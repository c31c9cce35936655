//! The agent's end of a container's standard input: a pipe, or a terminal.
//!
//! It stays open between clients, as long as the container wants it so; a container without one
//! reads from nothing.

use std::io::{Error, Result};
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::Mutex;

use super::sandbox::Input;

/// Where what clients type goes.
#[derive(Debug)]
pub(crate) struct Keyboard {
    /// `None` once it is closed.
    to: Mutex<Option<pipe::Sender>>,
    terminal: Option<OwnedFd>,
    once: bool,
}

/// Both ends of a container's input.
pub(super) struct Ends {
    /// For the program.
    pub(super) theirs: OwnedFd,
    pub(super) keyboard: Keyboard,
    /// What the program writes to its terminal, if it has one.
    pub(super) screen: Option<Box<dyn AsyncRead + Send + Unpin>>,
}

/// Makes what the container asks for; `None` when it asks for nothing.
pub(super) fn open(input: Input) -> Result<Option<Ends>> {
    Ok(Some(match input {
        Input::Nothing => return Ok(None),
        Input::Pipe { once } => {
            let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
            let to = Mutex::new(Some(pipe::Sender::from_owned_fd(ours)?));
            Ends { theirs, keyboard: Keyboard { to, terminal: None, once }, screen: None }
        }
        Input::Terminal { once } => {
            let (ours, theirs) = terminal()?;
            fcntl_setfl(&ours, fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
            // A terminal is no pipe, but it is read and written like one.
            let to = pipe::Sender::from_owned_fd_unchecked(ours.try_clone()?)?;
            let screen = pipe::Receiver::from_owned_fd_unchecked(ours.try_clone()?)?;
            let keyboard = Keyboard { to: Mutex::new(Some(to)), terminal: Some(ours), once };
            Ends { theirs, keyboard, screen: Some(Box::new(screen)) }
        }
    }))
}

/// Both ends of a new terminal: ours, and the program's. No process inherits them unasked: whoever
/// holds the program's end keeps the screen from ending, and other containers start all the time.
///
/// # Errors
/// When the system has no terminal to give.
pub(super) fn terminal() -> Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    Ok((ours, theirs))
}

impl Keyboard {
    /// Types. Waits for the program to read.
    ///
    /// # Errors
    /// When the program reads no more, or the input is closed.
    pub(crate) async fn write(&self, bytes: &[u8]) -> Result<()> {
        let mut to = self.to.lock().await;
        let to = to.as_mut().ok_or_else(|| Error::from(std::io::ErrorKind::BrokenPipe))?;
        to.write_all(bytes).await
    }

    /// A client has no more to say: the end of the input, if one client was to be the only one.
    pub(crate) async fn let_go(&self) {
        if self.once && self.terminal.is_none() {
            self.to.lock().await.take();
        }
    }

    /// Says how large the client's window is.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        if let Some(terminal) = &self.terminal {
            let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
            // A terminal that cannot be resized still works.
            let _ = tcsetwinsize(terminal, size);
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::{FdFlags, fcntl_getfd};

    use super::*;

    #[test]
    fn no_other_program_that_starts_meanwhile_holds_a_terminal() {
        let (ours, theirs) = terminal().unwrap();
        for end in [ours, theirs] {
            assert!(fcntl_getfd(&end).unwrap().contains(FdFlags::CLOEXEC));
        }
    }
}
