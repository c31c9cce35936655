//! The server that is measured, or that others are measured on: nothing but the API, over TLS.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use homeostat_apiserver::{DataDirectory, Identity, Server, ServerConfig};
use homeostat_env::Env;
use tokio::net::TcpListener;

#[derive(clap::Args)]
pub(crate) struct Serve {
    /// Where the kubeconfig goes.
    kubeconfig: PathBuf,
    /// Where everything is kept; without it, in memory.
    data: Option<PathBuf>,
}

impl Serve {
    pub(crate) async fn run(self) -> Result<()> {
        let env = Env::system();
        let directory = self.data.as_deref().map(DataDirectory::open).transpose()?;
        let identity = match &directory {
            Some(directory) => Identity::kept(&env, directory, &[])?,
            None => Identity::generate(&env, &[])?,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://{}", listener.local_addr()?);
        let config = ServerConfig::new(env);
        let server = match &directory {
            Some(directory) => Server::open(config, directory).await?,
            None => Server::new(config),
        };
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
