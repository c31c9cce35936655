//! Whose a kubeconfig is that lies somewhere already: one of ours is told by what neither kubectl nor
//! a choice of namespace or context changes in it. Never writes.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

/// The names in every kubeconfig of ours, and where its server is.
const CLUSTER: &str = "homeostat";
const USER: &str = "admin";
const LOOPBACK: &str = "https://127.0.0.1:";

/// What is where a kubeconfig is to be written.
pub(super) enum Found {
    Nothing,
    /// The file of a cluster that runs.
    Running,
    /// One of ours, of a cluster that is gone.
    Left,
    /// Somebody else's.
    Another,
}

/// What is there.
pub(super) fn found(path: &Path) -> Found {
    let file = match File::open(path) {
        Ok(file) => file,
        // Whoever keeps it to himself does not want it replaced.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Found::Another,
        Err(_) => return Found::Nothing,
    };
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        return Found::Running;
    }
    match fs::read(path) {
        Ok(there) if !there.is_empty() && Named::in_file(path).is_none() => Found::Another,
        _ => Found::Left,
    }
}

/// The cluster that a kubeconfig of ours names, by what neither kubectl nor a choice of namespace or
/// context changes in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    server: String,
    authority: Option<String>,
}

impl Named {
    pub(super) fn in_file(path: &Path) -> Option<Self> {
        Self::in_text(&fs::read_to_string(path).ok()?)
    }

    /// Nothing if the text names any other cluster, or any other user: it is somebody else's then.
    pub(super) fn in_text(text: &str) -> Option<Self> {
        let config = kube::config::Kubeconfig::from_yaml(text).ok()?;
        let ([cluster], [user]) = (&config.clusters[..], &config.auth_infos[..]) else {
            return None;
        };
        if cluster.name != CLUSTER || user.name != USER {
            return None;
        }
        let cluster = cluster.cluster.clone()?;
        let server = cluster.server.filter(|server| server.starts_with(LOOPBACK))?;
        Some(Self { server, authority: cluster.certificate_authority_data })
    }
}
