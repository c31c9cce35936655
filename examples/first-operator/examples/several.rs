//! The Greeting operator for several processes of which one works, with probes and metrics.

use first_operator::{Greeting, controller};
use homeostat::{Lease, Manager, Result};

#[tokio::main]
async fn main() -> Result<()> {
    homeostat::take_no_arguments!();
    homeostat::log::to_stderr();
    let manager = Manager::from_env()
        .await?
        .lease(Lease::new("greetings")) // one works, the others wait with warm caches
        .listen(([127, 0, 0, 1], 9464).into()); // /healthz, /readyz, /metrics
    manager.with_crd::<Greeting>().with(controller()).run().await
}
