//! The same kubectl on this server and on kube-apiserver: it must say the same.
//!
//! `commands.sh` is what people type, one command a line. Every version of kubectl at hand runs all
//! of them against both; what it prints and how it ends is compared, modulo uids, revisions, times
//! and addresses. No difference is accepted.

#![expect(clippy::unwrap_used, reason = "a side that cannot be reached ends the test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use homeostat_apiserver::{AddressRange, Identity, Server, ServerConfig};
use homeostat_env::Env;
use regex::Regex;
use tokio::net::TcpListener;

const ORACLE: &str = "HOMEOSTAT_ORACLE_KUBECONFIG";
/// Set when every judge is there.
const JUDGES: &str = "HOMEOSTAT_JUDGES";
const KUBECTLS: &str = "HOMEOSTAT_KUBECTL";

const FILES: [(&str, &str); 5] = [
    ("manifests.yaml", include_str!("manifests.yaml")),
    ("definition.yaml", include_str!("definition.yaml")),
    ("boat.yaml", include_str!("boat.yaml")),
    ("bad.yaml", include_str!("bad.yaml")),
    ("revisions.yaml", include_str!("revisions.yaml")),
];

/// One server as kubectl sees it.
#[derive(Clone)]
struct Side {
    kubeconfig: PathBuf,
    folder: PathBuf,
    kubectl: PathBuf,
    /// What makes the names of this run its own.
    run: String,
}

impl Side {
    fn prepare(&self) {
        std::fs::create_dir_all(&self.folder).unwrap();
        for (name, text) in FILES {
            std::fs::write(self.folder.join(name), text.replace("RUN", &self.run)).unwrap();
        }
    }

    /// Runs a command; what it said and how it ended.
    fn run(&self, command: &str) -> String {
        let namespace = self.namespace();
        let command = command.replace("NS", &namespace).replace("RUN", &self.run);
        let script =
            format!("kubectl() {{ timeout 40 \"$KUBECTL\" -n {namespace} \"$@\"; }}; {command}");
        let output = Command::new("sh")
            .args(["-c", &script])
            .env("KUBECTL", &self.kubectl)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.folder.join("cache"))
            .env("TZ", "UTC")
            .current_dir(&self.folder)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (said, complained) = (text(&output.stdout), text(&output.stderr));
        format!("{said}{complained}exit {:?}\n", output.status.code())
    }

    fn namespace(&self) -> String {
        format!("words-{}", self.run)
    }
}

/// Replaces what cannot be equal.
fn normal(text: &str) -> String {
    let rules = [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "<time>"),
        (r#"([rR]esource ?Version"?: +"?)\d+"#, "$1<revision>"),
        (r"\b(\d+[smh]){1,2}\b( +)", "<age> "),
        (r"(?m)\b(\d+[smh]){1,2}$", "<age>"),
        (r"https://(127\.0\.0\.1|localhost):\d+", "<server>"),
        (r"10\.96\.\d+\.\d+ *", "<address> "),
        (r"\b3\d{4}\b", "<port>"),
        (r"(made|once|from-cron|web|nightly|hourly)-[a-z0-9]{5}\b", "$1-<random>"),
        (r" +", " "),
        (r"-{3,}", "---"),
    ];
    rules.iter().fold(text.to_owned(), |text, (pattern, by)| {
        Regex::new(pattern).unwrap().replace_all(&text, *by).into_owned()
    })
}

async fn serve(folder: &Path) -> PathBuf {
    let env = Env::system();
    let server = Server::new(ServerConfig {
        service_account_admission: true,
        service_range: AddressRange { base: [10, 96, 0, 0].into(), prefix: 16 },
        ..ServerConfig::new(env.clone())
    });
    let identity = Identity::generate(&env, &[]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let kubeconfig = folder.join("kubeconfig");
    std::fs::write(&kubeconfig, identity.access().kubeconfig(&url)).unwrap();
    tokio::spawn(async move { server.serve_tls(listener, identity).await });
    kubeconfig
}

/// An event of kube-apiserver's repair loop, which now and then takes an address that was given out a
/// moment ago for a lost one.
const REPAIRED: &str = "ClusterIPNotAllocated";

/// Runs every command on both sides and says where they differ.
fn compare(ours: &Side, theirs: &Side) -> Vec<String> {
    let mut found = Vec::new();
    ours.prepare();
    theirs.prepare();
    let commands = include_str!("commands.sh").lines();
    for command in commands.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (our, mut their) = std::thread::scope(|scope| {
            let theirs = scope.spawn(|| theirs.run(command));
            (ours.run(command), theirs.join().unwrap())
        });
        if their.contains(REPAIRED) {
            theirs.run("kubectl delete events --all");
            their = theirs.run(command);
        }
        let (our, their) = (normal(&our), normal(&their));
        if our != their {
            found.push(format!("$ {command}\n{}", difference(&our, &their)));
        }
    }
    found
}

/// The lines that only one side has.
fn difference(our: &str, their: &str) -> String {
    let only = |sign: &str, some: &str, others: &str| {
        let others: Vec<&str> = others.lines().collect();
        let lines = some.lines().filter(|line| !others.contains(line)).take(20);
        lines.map(|line| format!("{sign} {line}\n")).collect::<String>()
    };
    let lines = only("ours  ", our, their) + &only("theirs", their, our);
    if lines.is_empty() { format!("another order\n{our}---\n{their}") } else { lines }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_says_the_same_of_both_servers() {
    let (Ok(oracle), Some(kubectls)) = (std::env::var(ORACLE), std::env::var_os(KUBECTLS)) else {
        assert!(std::env::var_os(JUDGES).is_none(), "{ORACLE} or {KUBECTLS} is not set");
        eprintln!("NOT RUN: kubectl on both servers; {ORACLE} and {KUBECTLS} name none");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = serve(folder.path()).await;
    let mut found = Vec::new();
    for (index, kubectl) in std::env::split_paths(&kubectls).enumerate() {
        let run = Env::system().random_alphanumeric(8).to_lowercase();
        let side = |name: &str, kubeconfig: &Path| Side {
            kubeconfig: kubeconfig.to_owned(),
            folder: folder.path().join(format!("{name}-{index}")),
            kubectl: kubectl.clone(),
            run: run.clone(),
        };
        let (ours, theirs) = (side("ours", &kubeconfig), side("theirs", Path::new(&oracle)));
        let compared = tokio::task::spawn_blocking(move || {
            let found = compare(&ours, &theirs);
            theirs.run("kubectl delete namespace NS --wait=false");
            found
        });
        for difference in compared.await.unwrap() {
            found.push(format!("{}: {difference}", kubectl.display()));
        }
    }
    for difference in &found {
        eprintln!("{difference}");
    }
    assert!(found.is_empty(), "{} commands differ", found.len());
}
