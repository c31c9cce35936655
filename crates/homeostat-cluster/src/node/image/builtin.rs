//! The images that are this very binary, started again inside a container.

use std::io::Result;

use tokio::signal::unix::{SignalKind, signal};

/// `image NAME ARGS…`: runs until it is told to stop; the answer is the exit code.
pub(crate) fn main(name: &str, args: &[String]) -> i32 {
    let outcome = match name {
        "hello" => run(super::hello::serve(args)),
        "pause" => run(async { stop().await }),
        "postgres" => super::postgres::main(args),
        _ => Err(std::io::Error::other(format!("there is no built-in image {name:?}"))),
    };
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "this is a container's log")]
            {
                eprintln!("{name}: {error}");
            }
            1
        }
    }
}

fn run(image: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(image)
}

/// Waits for SIGTERM or SIGINT.
pub(super) async fn stop() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
