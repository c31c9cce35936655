//! The server that is measured, or that others are measured on: nothing but the API, over TLS.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use homeostat_apiserver::{DataDirectory, Identity, Server, ServerConfig};
use homeostat_env::Env;
use tokio::net::TcpListener;

#[derive(clap::Args)]
pub(crate) struct Serve {
    /// Where the kubeconfig goes.
    kubeconfig: PathBuf,
    /// Where everything is kept.
    data: PathBuf,
}

impl Serve {
    pub(crate) async fn run(self) -> Result<()> {
        let env = Env::system();
        let directory = DataDirectory::open(&self.data)?;
        let identity = Identity::kept(&env, &directory, &[])?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let server = Server::open(ServerConfig::new(env), &directory).await?;
        tell(&self.kubeconfig, &identity, &listener)?;
        server.serve_tls(listener, identity).await?;
        Ok(())
    }
}

/// A server without a disk, in this process, which others reach through the kubeconfig.
pub(crate) async fn in_memory(kubeconfig: &Path) -> Result<Server> {
    let env = Env::system();
    let identity = Identity::generate(&env, &[])?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = Server::new(ServerConfig::new(env));
    tell(kubeconfig, &identity, &listener)?;
    let serving = server.clone();
    tokio::spawn(async move { serving.serve_tls(listener, identity).await });
    Ok(server)
}

/// Writes down how to reach a server, all at once: somebody waits for the file.
fn tell(kubeconfig: &Path, identity: &Identity, listener: &TcpListener) -> Result<()> {
    let url = format!("https://{}", listener.local_addr()?);
    let beside = kubeconfig.with_extension("new");
    std::fs::write(&beside, identity.access().kubeconfig(&url))?;
    std::fs::rename(&beside, kubeconfig)?;
    Ok(())
}

/// How long a server in this process takes, in memory: the second one, as in any test after the
/// first (tables are read once per process).
pub(crate) fn in_process_start() -> [Duration; 2] {
    [(), ()].map(|()| {
        let begin = Instant::now();
        let server = Server::new(ServerConfig::new(Env::system()));
        let taken = begin.elapsed();
        drop(server);
        taken
    })
}
