//! Runs the hand-written loop on the cluster that the environment names, until Ctrl-C.

use homeostat::{Env, Result, client};

#[tokio::main]
async fn main() -> Result<()> {
    homeostat::log::to_stderr();
    let env = Env::system();
    let client = client::from_env(env.clone()).await?;
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    raw_controller::run(client, env, stop).await?;
    tracing::info!("stopped");
    Ok(())
}
