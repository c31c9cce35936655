//! The WebApp operator as a program of its own, on whatever cluster the environment names. Of
//! several processes with the same namespace one works, the others wait.

use homeostat::{Lease, Manager, Result};
use operator_webapp::{OPERATOR, WebApp, controller};

#[tokio::main]
async fn main() -> Result<()> {
    homeostat::take_no_arguments!();
    homeostat::log::to_stderr();
    let manager = Manager::from_env().await?.lease(Lease::new(OPERATOR));
    manager.with_crd::<WebApp>().with(controller()).run().await
}
