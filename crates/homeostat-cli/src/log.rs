//! The log: lines on standard error, at once. While a picture has the terminal they wait, since they
//! would tear it apart and be painted over; then they come all together.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

/// More than this nobody reads: the oldest go.
const MOST: usize = 1 << 20;

/// What waits, if anything has to.
static HELD: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// From now on lines wait, unless they go somewhere else than to the terminal.
pub(crate) fn hold() {
    if io::stderr().is_terminal() {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
    }
}

/// Lines go out again, first those that have waited.
pub(crate) fn release() {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
    let _ = io::stderr().write_all(&held.unwrap_or_default());
}

/// Where the log writes to.
pub(crate) struct Log;

impl Write for Log {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        match HELD.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(held) => {
                held.extend_from_slice(piece);
                held.drain(..held.len().saturating_sub(MOST));
                Ok(piece.len())
            }
            None => io::stderr().write(piece),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
