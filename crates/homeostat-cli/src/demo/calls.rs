//! What the user of a terminal asks of the program that has it, by signals: to look at the window
//! again, or to let go of the terminal for a while.

use nix::sys::signal::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// The window has another size, or the terminal is ours again.
    Look,
    /// Ctrl-Z.
    Rest,
}

/// The signals; none of them where there is no terminal, so that they do what they always do.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    stop: Option<Signal>,
    go_on: Option<Signal>,
    resize: Option<Signal>,
}

impl Calls {
    /// Listens from now on.
    pub(crate) fn listen() -> Self {
        let listen = |number: Number| signal(SignalKind::from_raw(number as i32)).ok();
        Self {
            stop: listen(Number::SIGTSTP),
            go_on: listen(Number::SIGCONT),
            resize: listen(Number::SIGWINCH),
        }
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Call {
        tokio::select! {
            biased;
            () = heard(&mut self.stop) => Call::Rest,
            () = heard(&mut self.go_on) => Call::Look,
            () = heard(&mut self.resize) => Call::Look,
        }
    }
}

async fn heard(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
