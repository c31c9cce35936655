//! The Database operator as a program of its own, on whatever cluster the environment names.

use homeostat::{Manager, Result};
use operator_database::{Database, controller};

#[tokio::main]
async fn main() -> Result<()> {
    homeostat::log::to_stderr();
    Manager::from_env().await?.with_crd::<Database>().with(controller()).run().await
}
