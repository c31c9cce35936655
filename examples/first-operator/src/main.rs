//! The Greeting operator as a program, on whatever cluster the environment names.

use first_operator::{Greeting, controller};
use homeostat::{Manager, Result};

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().init();
    Manager::from_env().await?.with_crd::<Greeting>().with(controller()).run().await
}
