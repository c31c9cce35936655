//! Starts and stops the oracle.
//!
//! A supervisor process owns etcd and kube-apiserver. For a test run it lives as long as its
//! standard input, which the kernel closes when the run dies however it dies; `up` detaches it and
//! `down` ends it. Where the system can (`setpriv`), the two servers also die with the supervisor.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Binaries, binaries};
use crate::workspace::{THIS_PROGRAM, cache, find};

const TOKEN: &str = "oracle-admin-token";
const READY: &str = "ready";

/// A running oracle that ends with this value, or with this process.
pub(crate) struct Oracle {
    supervisor: Child,
    /// How clients reach it.
    pub(crate) kubeconfig: PathBuf,
}

impl Oracle {
    /// Starts etcd and kube-apiserver with data in `folder`.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        binaries()?;
        let mut supervisor = Command::new(THIS_PROGRAM)
            .args(["oracle", "supervise"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        wait_until_ready(&mut supervisor)?;
        Ok(Self { supervisor, kubeconfig: folder.join("kubeconfig") })
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // Closing standard input asks the supervisor to stop; it waits for its servers.
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}

/// `oracle up`: idempotent, detached.
pub(super) fn up() -> Result<PathBuf> {
    let folder = state()?;
    let kubeconfig = folder.join("kubeconfig");
    if running(&folder).is_some() {
        return Ok(kubeconfig);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    binaries()?;
    let mut supervisor = Command::new(THIS_PROGRAM)
        .args(["oracle", "supervise", "--detached"])
        .arg(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    fs::write(folder.join("pid"), supervisor.id().to_string())?;
    wait_until_ready(&mut supervisor)?;
    Ok(kubeconfig)
}

/// `oracle down`: idempotent.
pub(super) fn down() -> Result<()> {
    let folder = state()?;
    if let Some(pid) = running(&folder) {
        kill(pid, Signal::SIGTERM)?;
        let deadline = Instant::now() + Duration::from_secs(20);
        while kill(pid, None).is_ok() {
            ensure!(Instant::now() < deadline, "the oracle (pid {pid}) does not stop");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    Ok(())
}

fn state() -> Result<PathBuf> {
    Ok(cache()?.join("oracle").join("running"))
}

fn running(folder: &Path) -> Option<Pid> {
    let pid = Pid::from_raw(fs::read_to_string(folder.join("pid")).ok()?.trim().parse().ok()?);
    // A pid may have been given to another program since: ask who it is.
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    (kill(pid, None).is_ok() && (command.is_empty() || command.contains("supervise")))
        .then_some(pid)
}

fn wait_until_ready(supervisor: &mut Child) -> Result<()> {
    let output = supervisor.stdout.take().context("the supervisor has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    if line.trim() == READY {
        return Ok(());
    }
    let _ = supervisor.wait();
    bail!("the oracle did not start: {}", line.trim())
}

/// The hidden command that owns the two servers.
pub(super) fn supervise(folder: &Path, detached: bool, durable: bool) -> Result<()> {
    let binaries = binaries()?;
    let _servers = match Servers::start(&binaries, folder, durable) {
        Ok(servers) => servers,
        Err(error) => {
            // The first line is the answer, whoever reads it.
            println!("{error:#}");
            return Ok(());
        }
    };
    println!("{READY}");
    std::io::stdout().flush()?;
    if detached {
        wait_for_signal()?;
    } else {
        let mut rest = Vec::new();
        let _ = std::io::stdin().read_to_end(&mut rest);
    }
    Ok(())
}

/// Blocks SIGTERM and SIGINT in this thread and waits for one of them.
fn wait_for_signal() -> Result<()> {
    use nix::sys::signal::SigSet;
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    signals.thread_block()?;
    signals.wait()?;
    Ok(())
}

struct Servers {
    children: Vec<Child>,
}

impl Servers {
    fn start(binaries: &Binaries, folder: &Path, durable: bool) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let mut servers = Self { children: Vec::new() };
        let [client, peer, secure] = free_ports()?;
        let etcd = format!("http://127.0.0.1:{client}");
        let etcd_peer = format!("http://127.0.0.1:{peer}");
        let mut arguments = vec![
            format!("--data-dir={}", folder.join("etcd").display()),
            format!("--listen-client-urls={etcd}"),
            format!("--advertise-client-urls={etcd}"),
            format!("--listen-peer-urls={etcd_peer}"),
            format!("--initial-advertise-peer-urls={etcd_peer}"),
            format!("--initial-cluster=default={etcd_peer}"),
        ];
        if !durable {
            // Its data is thrown away with the run.
            arguments.push("--unsafe-no-fsync".to_owned());
        }
        servers.spawn(folder, &binaries.path("etcd"), &arguments)?;
        let (private, public) =
            (folder.join("service-account.key"), folder.join("service-account.pub"));
        let key = rcgen::KeyPair::generate()?;
        fs::write(&private, key.serialize_pem())?;
        fs::write(&public, key.public_key_pem())?;
        let tokens = folder.join("tokens.csv");
        fs::write(&tokens, format!("{TOKEN},admin,admin,\"system:masters\"\n"))?;
        let certificates = folder.join("certificates");
        servers.spawn(
            folder,
            &binaries.path("kube-apiserver"),
            &[
                format!("--etcd-servers={etcd}"),
                "--bind-address=127.0.0.1".to_owned(),
                "--advertise-address=127.0.0.1".to_owned(),
                format!("--secure-port={secure}"),
                format!("--cert-dir={}", certificates.display()),
                format!("--token-auth-file={}", tokens.display()),
                "--authorization-mode=RBAC".to_owned(),
                // As clusters are set up, and as the embedded server is.
                "--allow-privileged=true".to_owned(),
                "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
                "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                format!("--service-account-key-file={}", public.display()),
                format!("--service-account-signing-key-file={}", private.display()),
                "--endpoint-reconciler-type=none".to_owned(),
            ],
        )?;
        fs::write(
            folder.join("kubeconfig"),
            kubeconfig(secure, &certificates.join("apiserver.crt")),
        )?;
        servers.wait_until_ready(binaries, folder)?;
        Ok(servers)
    }

    fn spawn(&mut self, folder: &Path, program: &Path, arguments: &[String]) -> Result<()> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = File::create(folder.join(format!("{name}.log")))?;
        let mut command = match find("setpriv") {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "KILL", "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        let child = command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("{name} could not be started"))?;
        self.children.push(child);
        Ok(())
    }

    fn wait_until_ready(&mut self, binaries: &Binaries, folder: &Path) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            for child in &mut self.children {
                if let Some(status) = child.try_wait()? {
                    bail!(
                        "a server of the oracle ended ({status}); its log is in {}",
                        folder.display()
                    );
                }
            }
            let ready = Command::new(binaries.kubectl())
                .args(["get", "--raw", "/readyz", "--kubeconfig"])
                .arg(folder.join("kubeconfig"))
                .stderr(Stdio::null())
                .stdout(Stdio::null())
                .status()?;
            if ready.success() {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "kube-apiserver is not ready; its log is in {}",
                folder.display()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // kube-apiserver first, so that it does not complain about a missing etcd.
        for child in self.children.iter_mut().rev() {
            // Its data is thrown away: there is nothing to end gracefully.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Three free loopback ports, held together so that they differ.
fn free_ports() -> Result<[u16; 3]> {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0"));
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener?.local_addr()?.port();
    }
    Ok(ports)
}

fn kubeconfig(port: u16, certificate: &Path) -> String {
    let certificate = certificate.display();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: oracle\n\
         clusters: [{{name: oracle, cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: '{certificate}'}}}}]\n\
         users: [{{name: admin, user: {{token: {TOKEN}}}}}]\n\
         contexts: [{{name: oracle, context: {{cluster: oracle, user: admin, namespace: default}}}}]\n"
    )
}
