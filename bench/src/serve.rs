//! The server that is measured: nothing but the API, over TLS, with a data directory.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use homeostat_apiserver::{DataDirectory, Identity, Server, ServerConfig};
use homeostat_env::Env;
use tokio::net::TcpListener;

#[derive(clap::Args)]
pub(crate) struct Serve {
    /// Where everything is kept.
    data: PathBuf,
    /// Where the kubeconfig goes.
    kubeconfig: PathBuf,
}

impl Serve {
    pub(crate) async fn run(self) -> Result<()> {
        let env = Env::system();
        let directory = DataDirectory::open(&self.data)?;
        let identity = Identity::kept(&env, &directory, &[])?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://{}", listener.local_addr()?);
        let server = Server::open(ServerConfig::new(env), &directory).await?;
        let beside = self.kubeconfig.with_extension("new");
        std::fs::write(&beside, identity.access().kubeconfig(&url))?;
        std::fs::rename(&beside, &self.kubeconfig)?;
        server.serve_tls(listener, identity).await?;
        Ok(())
    }
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
