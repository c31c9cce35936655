//! Runs the hand-written loop on the cluster that the environment names, until Ctrl-C.

use homeostat::Env;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().init();
    let client = kube::Client::try_default().await?;
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    raw_controller::run(client, Env::system(), stop).await?;
    Ok(())
}
