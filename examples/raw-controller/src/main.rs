//! Runs the hand-written loop on the cluster that the environment names, until Ctrl-C.

use homeostat::{Env, Result, client};
use raw_controller::SELECTOR;

#[tokio::main]
async fn main() -> Result<()> {
    homeostat::take_no_arguments!();
    homeostat::log::to_stderr();
    tracing::info!("every Deployment with the label {SELECTOR} gets one more container: try");
    tracing::info!("`kubectl create deployment web --image=homeostat.dev/hello:1`,");
    tracing::info!("`kubectl label deployment web {SELECTOR}` and `kubectl get pods`");
    let env = Env::system();
    let client = client::from_env(env.clone()).await?;
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    raw_controller::run(client, env, stop).await?;
    tracing::info!("stopped");
    Ok(())
}
