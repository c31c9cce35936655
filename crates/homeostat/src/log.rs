//! The log of a program that runs controllers, for a `main` that asks no more of it.
//!
//! Everything in this crate speaks through `tracing` and never prints: which lines are written, and
//! where to, is for the program to say. [`to_stderr`] says what most want.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// From now on the log goes to standard error: what `RUST_LOG` asks for, or else `info` and above.
///
/// It has colours on a terminal only, and none there if `NO_COLOR` is set. Does nothing when the
/// program has chosen another subscriber before.
///
/// ```no_run
/// # use homeostat::{Manager, Result};
/// # async fn run() -> Result<()> {
/// homeostat::log::to_stderr();
/// Manager::from_env().await?.run().await
/// # }
/// ```
pub fn to_stderr() {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // A program that has a log already goes on with that one.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter.from_env_lossy())
        .with_ansi(wanted && io::stderr().is_terminal())
        .with_writer(io::stderr)
        .try_init();
}
