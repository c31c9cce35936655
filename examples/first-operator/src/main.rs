//! The Greeting operator as a program, on whatever cluster the environment names.

use first_operator::{Greeting, controller};
use homeostat::{Manager, Result};

#[tokio::main]
async fn main() -> Result<()> {
    homeostat::take_no_arguments!();
    homeostat::log::to_stderr();
    Manager::from_env().await?.with_crd::<Greeting>().with(controller()).run().await
}
