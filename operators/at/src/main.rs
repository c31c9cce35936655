//! The At operator as a program of its own, on whatever cluster the environment names.

use homeostat::{Manager, Result};
use operator_at::{At, controller};

#[tokio::main]
async fn main() -> Result<()> {
    homeostat::log::to_stderr();
    Manager::from_env().await?.with_crd::<At>().with(controller()).run().await
}
