//! Words for people on standard output. Whoever listens may go away: the cluster goes on without.

use std::fmt::Arguments;
use std::io::{Write, stdout};

/// Says one line, to nobody if need be.
pub(crate) fn say(words: Arguments<'_>) {
    let mut output = stdout().lock();
    let _ = writeln!(output, "{words}").and_then(|()| output.flush());
}
