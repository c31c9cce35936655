//! A running `homeostat up`, driven from outside as a user would: by its output, signals and kubectl.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on may panic")]
#![allow(clippy::disallowed_methods, reason = "it waits for other processes, in real time")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use tempfile::TempDir;

/// How long anything may take before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody without rights.
const ORDINARY: u32 = 1000;

/// Every kubectl at hand: those the test run was given, else the one on the `PATH`.
pub(crate) fn kubectls() -> Vec<PathBuf> {
    let given = std::env::var_os("HOMEOSTAT_KUBECTL");
    let given: Vec<PathBuf> =
        given.iter().flat_map(std::env::split_paths).filter(|path| path.is_file()).collect();
    if given.is_empty() { vec![PathBuf::from("kubectl")] } else { given }
}

/// An embedded cluster in a process of its own; dropping it stops it.
pub(crate) struct Up {
    child: Child,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) kubectl: PathBuf,
    folder: TempDir,
    /// What it says after it is ready, and who listens to it.
    said: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

impl Up {
    /// Starts `homeostat up` and waits until it is ready. Its kubeconfig goes with this value, unless
    /// the arguments name another.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::launch(Command::new(env!("CARGO_BIN_EXE_homeostat")), folder, arguments)
    }

    /// The same as an ordinary user, also when root runs the test.
    pub(crate) fn start_as_ordinary_user(arguments: &[&str]) -> Self {
        if !geteuid().is_root() {
            return Self::start(arguments);
        }
        let folder = tempfile::tempdir().unwrap();
        // Where the program is built, others may not look.
        let program = folder.path().join("homeostat");
        fs::copy(env!("CARGO_BIN_EXE_homeostat"), &program).unwrap();
        for path in [folder.path(), &program] {
            chown(path, Some(ORDINARY), Some(ORDINARY)).unwrap();
        }
        let mut command = Command::new(program);
        command.uid(ORDINARY).gid(ORDINARY).env("HOME", folder.path());
        Self::launch(command, folder, arguments)
    }

    fn launch(mut command: Command, folder: TempDir, arguments: &[&str]) -> Self {
        let file = folder.path().join("kubeconfig");
        let own = ["--kubeconfig".as_ref(), file.as_os_str()];
        let is_named = arguments.contains(&"--kubeconfig");
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut child = command
            .arg("up")
            .args(own.iter().filter(|_| !is_named))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let path = line.trim().strip_prefix("ready ").unwrap_or_else(|| {
            panic!(
                "not ready: {line}{}",
                fs::read_to_string(folder.path().join("log")).unwrap_or_default()
            )
        });
        let kubeconfig = PathBuf::from(path);
        // What else it prints must not block it.
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        let listener = Some(std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                *heard.lock().unwrap() += &format!("{line}\n");
            }
        }));
        Self { child, kubeconfig, kubectl: kubectls().remove(0), folder, said, listener }
    }

    /// The same cluster, driven by another kubectl.
    pub(crate) fn with(&mut self, kubectl: &Path) -> &Self {
        self.kubectl = kubectl.to_owned();
        self
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.folder.path().join("cache"))
            .current_dir(self.folder.path());
        command
    }

    /// Runs kubectl; its output, whatever became of it.
    pub(crate) fn try_kubectl(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs kubectl, which must succeed, and returns what it printed.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.try_kubectl(arguments);
        assert!(
            output.status.success(),
            "kubectl {arguments:?} failed: {}{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            self.log(),
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Pipes `text` into kubectl, which must succeed.
    pub(crate) fn pipe(&self, arguments: &[&str], text: &str) -> String {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?} failed: {words}\n{}", self.log());
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn apply(&self, text: &str) -> String {
        self.pipe(&["apply", "-f", "-"], text)
    }

    /// Waits until the object's JSON path has that value.
    pub(crate) fn wait_for(&self, object: &str, path: &str, value: &str) {
        let condition = format!("--for=jsonpath={{{path}}}={value}");
        let timeout = format!("--timeout={}s", PATIENCE.as_secs());
        self.kubectl(&["wait", object, &condition, &timeout]);
    }

    /// One value of an object.
    pub(crate) fn value(&self, object: &str, path: &str) -> String {
        self.kubectl(&["get", object, "-o", &format!("jsonpath={{{path}}}")])
    }

    /// One value of an object that may not be there.
    pub(crate) fn try_value(&self, object: &str, path: &str) -> Option<String> {
        let output = self.try_kubectl(&["get", object, "-o", &format!("jsonpath={{{path}}}")]);
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The decoded value of a key of a Secret.
    pub(crate) fn secret(&self, name: &str, key: &str) -> String {
        let template = format!("go-template={{{{index .data \"{key}\" | base64decode}}}}");
        self.kubectl(&["get", "secret", name, "-o", &template])
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The directories it holds for the time of its life.
    pub(crate) fn temporary(&self) -> Vec<PathBuf> {
        let open = fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().flatten();
        let open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        let locks = open.filter(|path| path.ends_with("lock"));
        locks.filter_map(|lock| lock.parent().map(Path::to_owned)).collect()
    }

    /// The processes below this one.
    pub(crate) fn descendants(&self) -> Vec<String> {
        descendants(self.pid())
    }

    /// Sends a signal and waits for the end; the exit code.
    pub(crate) fn end(self, signal: Signal) -> Option<i32> {
        self.end_hearing(signal).0
    }

    /// The same, and what it said between being ready and its end.
    pub(crate) fn end_hearing(mut self, signal: Signal) -> (Option<i32>, String) {
        kill(self.pid(), signal).unwrap();
        let code = self.child.wait().unwrap().code();
        self.listener.take().unwrap().join().unwrap();
        (code, self.said())
    }

    /// What it has said since it was ready.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = kill(self.pid(), Signal::SIGTERM);
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the log of homeostat up:\n{}", self.log());
        }
    }
}

/// The command lines of all processes below `root`.
pub(crate) fn descendants(root: Pid) -> Vec<String> {
    let mut parents: Vec<(i32, i32, String)> = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name stands in parentheses and may hold anything; state and parent follow it.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let state = fields.next().unwrap_or_default();
        let Some(parent) = fields.next().and_then(|field| field.parse::<i32>().ok()) else {
            continue;
        };
        let command =
            fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default().replace('\0', " ");
        if state != "Z" {
            parents.push((pid, parent, command));
        }
    }
    let mut found = vec![root.as_raw()];
    let mut commands = Vec::new();
    let mut index = 0;
    while index < found.len() {
        for (pid, parent, command) in &parents {
            if *parent == found[index] {
                found.push(*pid);
                commands.push(format!("{pid} {command}"));
            }
        }
        index += 1;
    }
    commands
}

/// Waits until `probe` gives something: for what has no event to wait for, such as an outside process.
pub(crate) fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < deadline, "it did not happen: {what}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// The body of an HTTP answer, if there is one.
pub(crate) fn http(address: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some(body.to_owned())
}

/// Runs a statement through psql; its output, or nothing when it fails.
pub(crate) fn psql(uri: &str, statement: &str) -> Option<String> {
    let output = Command::new("psql")
        .args([uri, "-qtAc", statement])
        .env("PGCONNECT_TIMEOUT", "5")
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
