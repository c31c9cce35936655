//! The API server that is measured: nothing but the API, over TLS, on a disk, with the allocator of the
//! `homeostat` binary.
//!
//! A program of its own, so that the controllers of the bench keep the allocator that their peers have.

#[path = "../reach.rs"]
mod reach;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use homeostat_apiserver::{DataDirectory, Identity, Server, ServerConfig};
use homeostat_env::Env;
use mimalloc::MiMalloc;
use tokio::net::TcpListener;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Parser)]
struct Serve {
    /// Where the kubeconfig goes.
    kubeconfig: PathBuf,
    /// Where everything is kept.
    data: PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    let serve = Serve::parse();
    let env = Env::system();
    let directory = DataDirectory::open(&serve.data)?;
    let identity = Identity::kept(&env, &directory, &[])?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = Server::open(ServerConfig::new(env), &directory).await?;
    reach::tell(&serve.kubeconfig, &identity, &listener)?;
    server.serve_tls(listener, identity).await?;
    Ok(())
}
