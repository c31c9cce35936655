//! The LogicalDatabase operator as a program of its own, on whatever cluster the environment names.

use homeostat::{Manager, Result};
use operator_logical_database::{LogicalDatabase, controller};

#[tokio::main]
async fn main() -> Result<()> {
    homeostat::log::to_stderr();
    Manager::from_env().await?.with_crd::<LogicalDatabase>().with(controller()).run().await
}
