//! The LogicalDatabase operator as a program of its own, on whatever cluster the environment names.

use homeostat::{Manager, Result};
use operator_logical_database::{LogicalDatabase, controller};

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_env_filter(filter()).init();
    Manager::from_env().await?.with_crd::<LogicalDatabase>().with(controller()).run().await
}

/// `RUST_LOG`, or `info`.
fn filter() -> tracing_subscriber::EnvFilter {
    tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into())
}
