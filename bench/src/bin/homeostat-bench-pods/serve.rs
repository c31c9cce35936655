//! The server that controllers are measured on, in this process: nothing but the API, over TLS.

use std::path::Path;

use anyhow::Result;
use homeostat_apiserver::{Identity, Server, ServerConfig};
use homeostat_env::Env;
use tokio::net::TcpListener;

use crate::reach;

/// A server without a disk, in this process, which others reach through the kubeconfig.
pub(crate) async fn in_memory(kubeconfig: &Path) -> Result<Server> {
    let env = Env::system();
    let identity = Identity::generate(&env, &[])?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = Server::new(ServerConfig::new(env));
    reach::tell(kubeconfig, &identity, &listener)?;
    let serving = server.clone();
    tokio::spawn(async move { serving.serve_tls(listener, identity).await });
    Ok(server)
}
