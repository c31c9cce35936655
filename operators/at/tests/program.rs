//! The operator as a program of its own: what it says about itself, its cluster and its rivals.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]
#![allow(clippy::disallowed_methods, reason = "it waits for other processes, in real time")]

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use homeostat::Env;
use homeostat_apiserver::{Identity, Server, ServerConfig};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(60);

fn program(arguments: &[&str]) -> Output {
    let program = Command::new(env!("CARGO_BIN_EXE_at-operator")).args(arguments).output();
    program.unwrap()
}

#[test]
fn help_and_version_are_told_and_anything_else_is_refused_with_a_tip() {
    let help = program(&["--help"]);
    let words = String::from_utf8(help.stdout).unwrap();
    assert_eq!(help.status.code(), Some(0));
    assert!(words.starts_with("At: runs a command once, at a given time."), "{words}");
    assert!(words.contains("Usage: at-operator\n") && words.contains("KUBECONFIG"), "{words}");
    assert_eq!(program(&["-h"]).stdout, words.into_bytes());
    let version = program(&["--version"]);
    assert!(String::from_utf8(version.stdout).unwrap().starts_with("at-operator 0."));

    let refused = program(&["--kubeconfig=x"]);
    assert_eq!(refused.status.code(), Some(2), "as of homeostat itself");
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.starts_with("error: unexpected argument '--kubeconfig=x' found"), "{words}");
    assert!(words.contains("\n\n  tip: ") && words.contains("KUBECONFIG=FILE"), "{words}");
}

/// The program at work, and its log.
struct Operator {
    child: Child,
    lines: Receiver<String>,
    log: String,
}

impl Operator {
    fn start(kubeconfig: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_at-operator"))
            .env("KUBECONFIG", kubeconfig)
            .env_remove("RUST_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (output, (sender, lines)) = (child.stderr.take().unwrap(), channel());
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                drop(sender.send(line));
            }
        });
        Self { child, lines, log: String::new() }
    }

    /// Reads on until a line with these words.
    fn until(&mut self, words: &str) {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no {words:?} in:\n{}", self.log));
            self.log += &format!("{line}\n");
            if line.contains(words) {
                return;
            }
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves there until the sender is dropped.
async fn serve(
    server: &Server,
    identity: &Identity,
    address: SocketAddr,
) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<()>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (server, identity) = (server.clone(), identity.clone());
    let (end, ended) = oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        let ended = async { drop(ended.await) };
        server.serve_tls_until(listener, identity, ended).await.unwrap();
    });
    (address, end, serving)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_ends_and_comes_back_is_told_once_each_by_its_address() {
    let env = Env::system();
    let server = Server::new(ServerConfig::new(env.clone()));
    let identity = Identity::generate(&env, &[]).unwrap();
    let (address, end, serving) =
        serve(&server, &identity, SocketAddr::from(([127, 0, 0, 1], 0))).await;
    let url = format!("https://{address}");
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, identity.access().kubeconfig(&url)).unwrap();

    let mut operator = Operator::start(&kubeconfig);
    operator.until(&format!("running on {url};"));
    let mut rival = Operator::start(&kubeconfig);
    rival.until("another process leads; waiting");

    drop(end);
    serving.await.unwrap();
    for process in [&mut operator, &mut rival] {
        process.until(&format!("the API at {url} cannot be reached and is tried again"));
    }
    // With the same port, or not at all.
    let (_, end, serving) = serve(&server, &identity, address).await;
    operator.until(&format!("the API at {url} is reached again"));
    rival.until(&format!("the API at {url} is reached again"));
    assert!(!rival.log.contains("running on"), "it waits all the while: {}", rival.log);
    drop(end);
    serving.abort();
    for process in [operator, rival] {
        let log = &process.log;
        assert_eq!(log.matches("cannot be reached").count(), 1, "{log}");
        for word in ["EOF", "close_notify", "pending", "the lease could not"] {
            assert!(!log.contains(word), "{word}: {log}");
        }
    }
}
