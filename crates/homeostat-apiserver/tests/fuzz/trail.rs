//! What is being asked right now, for the two ends that no test can catch: a process that dies,
//! and a request that never comes back. It also keeps the request that took longest.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::request::Request;

/// A request that takes longer has hung: the slowest take seconds, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Keeps the request under way where it outlives the process.
#[derive(Debug)]
pub(crate) struct Trail {
    file: PathBuf,
    begun: Sender<String>,
    slowest: RefCell<(Duration, String)>,
}

impl Trail {
    /// A trail, and somebody who watches it.
    pub(crate) fn new() -> Self {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fuzz-request.txt");
        let (begun, requests) = channel::<String>();
        std::thread::spawn(move || {
            let mut last = String::new();
            loop {
                match requests.recv_timeout(PATIENCE) {
                    Ok(request) => last = request,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        eprintln!("no answer after {} s:\n{last}", PATIENCE.as_secs());
                        std::process::abort();
                    }
                }
            }
        });
        eprintln!("should this process die, {} has the request", file.display());
        Self { file, begun, slowest: RefCell::default() }
    }

    /// Runs a request that is sent now.
    #[expect(clippy::disallowed_methods, reason = "work takes real time, whatever the clock says")]
    pub(crate) async fn follow<T>(
        &self,
        seed: u64,
        request: &Request,
        work: impl Future<Output = T>,
    ) -> T {
        let note = format!("seed {seed}\n{request}");
        std::fs::write(&self.file, &note).unwrap();
        self.begun.send(note.clone()).unwrap();
        let begun = Instant::now();
        let done = work.await;
        if begun.elapsed() > self.slowest.borrow().0 {
            self.slowest.replace((begun.elapsed(), note));
        }
        done
    }

    /// The request that took longest, for whoever looks for what could hang.
    pub(crate) fn slowest(&self) -> (Duration, String) {
        self.slowest.borrow().clone()
    }
}
