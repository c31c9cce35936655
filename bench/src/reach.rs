//! How to reach a server that was started.

use std::path::Path;

use anyhow::Result;
use homeostat_apiserver::Identity;
use tokio::net::TcpListener;

/// Writes down how to reach a server, all at once: somebody waits for the file.
pub(crate) fn tell(kubeconfig: &Path, identity: &Identity, listener: &TcpListener) -> Result<()> {
    let url = format!("https://{}", listener.local_addr()?);
    let beside = kubeconfig.with_extension("new");
    std::fs::write(&beside, identity.access().kubeconfig(&url))?;
    std::fs::rename(&beside, kubeconfig)?;
    Ok(())
}
