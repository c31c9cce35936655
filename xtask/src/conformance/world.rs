//! What is judged: a running server with its controllers and at least one Node.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::oracle::{Binaries, Oracle};
use crate::workspace::{cargo, command, output, run, target};

/// A server that ends with this value.
pub(super) struct World {
    kubeconfig: PathBuf,
    /// `homeostat up`, or the controllers of the real server.
    child: Child,
    _oracle: Option<Oracle>,
}

impl World {
    /// The embedded cluster, as its users start it; from what is built already unless told to `build`.
    pub(super) fn embedded(folder: &Path, build: bool) -> Result<Self> {
        if build {
            run(cargo(), &["build", "--quiet", "--package", "homeostat-cli"])?;
        }
        let kubeconfig = folder.join("kubeconfig");
        let mut child = command(target()?.join("debug").join("homeostat"))
            // A spec waits for its page of a list to grow old.
            .args(["up", "--compaction-interval", "60", "--kubeconfig"])
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.join("server.log"))?)
            .spawn()
            .context("homeostat could not be started")?;
        let mut line = String::new();
        if let Some(said) = child.stdout.take() {
            BufReader::new(said).read_line(&mut line)?;
        }
        if !line.starts_with("ready") {
            bail!("homeostat up did not start; see {}", folder.join("server.log").display());
        }
        Ok(Self { kubeconfig, child, _oracle: None })
    }

    /// kube-apiserver and kube-controller-manager, with a Node that nobody stands behind.
    pub(super) fn real(binaries: &Binaries, folder: &Path) -> Result<Self> {
        let state = folder.join("kube-apiserver");
        if state.exists() {
            std::fs::remove_dir_all(&state)?;
        }
        let oracle = Oracle::start(&state)?;
        let kubeconfig = oracle.kubeconfig.clone();
        let node = folder.join("node.json");
        std::fs::write(&node, NODE)?;
        let client = format!("--kubeconfig={}", kubeconfig.display());
        output(
            &binaries.kubectl().display().to_string(),
            &["create", &client, "-f", &node.display().to_string()],
            folder,
        )?;
        let child = command(binaries.path("kube-controller-manager"))
            .arg(client)
            .args([
                "--bind-address=127.0.0.1",
                "--secure-port=0",
                "--leader-elect=false",
                "--use-service-account-credentials=false",
                // Nobody renews the Node's lease: without this it would soon be unreachable.
                "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
            ])
            // It makes this folder when it is missing: here, not in the system.
            .arg(format!("--flex-volume-plugin-dir={}", folder.join("plugins").display()))
            .arg(format!(
                "--service-account-private-key-file={}",
                state.join("service-account.key").display()
            ))
            .arg(format!(
                "--root-ca-file={}",
                state.join("certificates").join("apiserver.crt").display()
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.join("kube-controller-manager.log"))?)
            .spawn()
            .context("kube-controller-manager could not be started")?;
        Ok(Self { kubeconfig, child, _oracle: Some(oracle) })
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let _ = self.child.wait();
    }
}

const NODE: &str = r#"{
    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "nobody"},
    "status": {
        "capacity": {"cpu": "2", "memory": "4Gi", "pods": "110"},
        "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"},
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}]
    }
}"#;
