//! The WebApp operator as a program of its own, on whatever cluster the environment names.

use std::io::IsTerminal as _;

use homeostat::{Manager, Result};
use operator_webapp::{WebApp, controller};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

#[tokio::main]
async fn main() -> Result<()> {
    // `RUST_LOG`, or else whatever is worth a line.
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    let colours = std::io::stdout().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter.from_env_lossy()).with_ansi(colours).init();
    Manager::from_env().await?.with_crd::<WebApp>().with(controller()).run().await
}
