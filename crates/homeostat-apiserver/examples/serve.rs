//! Serves an empty cluster's API over TLS and writes a kubeconfig for it: `serve FILE [PORT]`.

use homeostat_apiserver::{Identity, Server, ServerConfig};
use homeostat_env::Env;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: serve KUBECONFIG [PORT]")?;
    let port = arguments.next().map_or(Ok(0), |port| port.parse::<u16>())?;
    let env = Env::system();
    let server = Server::new(ServerConfig::new(env.clone()));
    let identity = Identity::generate(&env, &[])?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let url = format!("https://{}", listener.local_addr()?);
    std::fs::write(&file, identity.access().kubeconfig(&url))?;
    server.serve_tls(listener, identity).await?;
    Ok(())
}
