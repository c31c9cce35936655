//! What kubectl keeps open: port-forward, exec, attach and cp, with every kubectl at hand and over
//! both carriers they know.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod running;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use running::{Up, http, kubectls};

const PODS: &str = "
apiVersion: v1
kind: Pod
metadata: {name: hello, labels: {app: hello}}
spec:
  containers: [{name: web, image: 'homeostat.dev/hello:v1', ports: [{name: web, containerPort: 8080}]}]
---
apiVersion: v1
kind: Service
metadata: {name: hello}
spec: {selector: {app: hello}, ports: [{port: 80, targetPort: web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: box}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: box
    image: busybox
    command: [sh, -c, 'while ! test -e /data/done; do echo tick; sleep 0.1; done; echo last words']
    volumeMounts: [{name: work, mountPath: /data}]
  restartPolicy: Never
  volumes: [{name: work, emptyDir: {}}]
";

const LISTENER: &str = "
apiVersion: v1
kind: Pod
metadata: {name: listener}
spec:
  containers:
  - {name: one, image: busybox, command: [sh, -c, 'cat; echo bye'], stdin: true, stdinOnce: true}
  restartPolicy: Never
";

/// Runs a test once per kubectl and carrier; WebSockets are what kubectl tries first.
fn with_every_kubectl(test: impl Fn(&Up, &dyn Fn(&[&str]) -> Command)) {
    for kubectl in kubectls() {
        for websockets in ["true", "false"] {
            let mut up = Up::start(&[]);
            let up = up.with(&kubectl);
            up.apply(PODS);
            for pod in ["pod/hello", "pod/box"] {
                up.wait_for(pod, ".status.containerStatuses[0].ready", "true");
            }
            test(up, &|arguments| {
                let mut command = up.command(arguments);
                command
                    .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets)
                    .env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets);
                command
            });
        }
    }
}

/// A child that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a port-forward; the local address it listens on.
fn forward(mut command: Command) -> (Running, String) {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Running(command.spawn().unwrap());
    let mut output = BufReader::new(child.0.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let address = line.strip_prefix("Forwarding from ").and_then(|line| line.split_once(" -> "));
    let address = address.unwrap_or_else(|| panic!("not forwarding: {line:?}")).0.to_owned();
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    (child, address)
}

#[test]
fn port_forward_reaches_a_pod_and_a_service() {
    with_every_kubectl(|_, kubectl| {
        for (object, port) in [("pod/hello", ":8080"), ("pod/hello", ":web"), ("svc/hello", ":80")]
        {
            let (_running, address) = forward(kubectl(&["port-forward", object, port]));
            // Connections that wait do not hold up those that speak.
            let _silent = TcpStream::connect(&address).unwrap();
            for _ in 0..5 {
                assert_eq!(http(&address).as_deref(), Some("hello v1 from hello\n"));
            }
        }
    });
}

#[test]
fn port_forward_says_what_is_wrong_with_a_port() {
    with_every_kubectl(|_, kubectl| {
        let (mut running, address) = forward(kubectl(&["port-forward", "pod/hello", ":9"]));
        assert_eq!(http(&address), None);
        let mut words = String::new();
        running.0.stderr.take().unwrap().read_to_string(&mut words).unwrap();
        assert!(words.contains("nothing answers on port 9 of the Pod"), "{words}");
        assert!(!running.0.wait().unwrap().success());
    });
}

#[test]
fn cp_copies_both_ways() {
    with_every_kubectl(|up, kubectl| {
        let copy = |from: &str, to: &str| {
            let output = kubectl(&["cp", from, to]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let large: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
        fs::create_dir(path("there")).unwrap();
        fs::write(path("there/small"), "small\n").unwrap();
        fs::write(path("there/large"), &large).unwrap();
        copy(&path("there"), "box:/data/copied");
        assert_eq!(up.kubectl(&["exec", "box", "--", "cat", "/data/copied/small"]), "small\n");
        copy("box:/data/copied", &path("back"));
        assert_eq!(fs::read_to_string(path("back/small")).unwrap(), "small\n");
        assert!(fs::read(path("back/large")).unwrap() == large);
    });
}

#[test]
fn exec_keeps_the_streams_and_the_exit_code_apart() {
    with_every_kubectl(|_, kubectl| {
        let script = "cat; echo problem >&2; exit 7";
        let mut child = kubectl(&["exec", "-i", "box", "--", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"through and back").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "through and back");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("problem\n"), "{output:?}");
        assert_eq!(output.status.code(), Some(7));
    });
}

#[test]
fn exec_ends_with_the_command_though_input_still_comes() {
    with_every_kubectl(|_, kubectl| {
        let endless = File::open("/dev/zero").unwrap();
        let output =
            kubectl(&["exec", "-i", "box", "--", "sh", "-c", "head -c 5 >/dev/null; echo enough"])
                .stdin(endless)
                .output()
                .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "enough\n", "{output:?}");
        assert!(output.status.success());
    });
}

#[test]
fn attach_shows_what_a_container_writes_until_it_ends() {
    with_every_kubectl(|_, kubectl| {
        let mut command = kubectl(&["attach", "box"]);
        let mut attached = Running(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut output = BufReader::new(attached.0.stdout.take().unwrap());
        let mut text = String::new();
        output.read_line(&mut text).unwrap();
        assert_eq!(text, "tick\n");
        // It may not live to tell: what ends the container ends all that runs in it.
        let _ = kubectl(&["exec", "box", "--", "touch", "/data/done"]).output().unwrap();
        output.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("tick\nlast words\n"), "{text}");
        assert!(attached.0.wait().unwrap().success());
    });
}

/// A terminal with a kubectl in it.
struct Terminal {
    kubectl: Running,
    screen: File,
    seen: String,
}

impl Terminal {
    fn run(mut command: Command) -> Self {
        let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        let command = command.stdin(end()).stdout(end()).stderr(end());
        let kubectl = Running(command.spawn().unwrap());
        Self { kubectl, screen: File::from(pty.master), seen: String::new() }
    }

    fn type_in(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).unwrap();
    }

    /// Reads on until the screen shows `text`.
    fn shows(&mut self, text: &str) {
        while !self.seen.contains(text) {
            let mut piece = [0; 4096];
            let read = self.screen.read(&mut piece).unwrap_or_default();
            assert!(read > 0, "{text:?} is not in {:?}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    }

    fn resize(&self, ws_row: u16, ws_col: u16) {
        let size = rustix::termios::Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.screen, size).unwrap();
        // Only the terminal of a session tells its processes.
        let pid = Pid::from_raw(self.kubectl.0.id().cast_signed());
        kill(pid, Signal::SIGWINCH).unwrap();
    }
}

#[test]
fn exec_in_a_terminal_is_a_terminal() {
    with_every_kubectl(|_, kubectl| {
        let script = "trap 'stty size' WINCH; trap 'echo interrupted; exit 5' INT; \
                      until test \"$(stty size)\" = '30 100'; do sleep 0.1; done; \
                      echo ready; read line; echo got $line; while :; do sleep 0.1; done";
        let mut terminal =
            Terminal::run(kubectl(&["exec", "-it", "box", "--", "sh", "-c", script]));
        terminal.shows("ready\r\n");
        terminal.type_in("words\r");
        terminal.shows("got words\r\n");
        terminal.resize(31, 101);
        terminal.shows("31 101\r\n");
        terminal.type_in("\u{3}");
        terminal.shows("interrupted\r\n");
        assert_eq!(terminal.kubectl.0.wait().unwrap().code(), Some(5));
    });
}

/// Types a line, ends the input, and reads what is said until kubectl ends.
fn converse(command: Command) -> String {
    let (said, well) = talk(command);
    assert!(well, "{said}");
    said
}

/// What was said, and whether kubectl says that it went well.
fn talk(mut command: Command) -> (String, bool) {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut talking = Running(command.spawn().unwrap());
    talking.0.stdin.take().unwrap().write_all(b"typed\n").unwrap();
    let mut said = String::new();
    talking.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    (said, talking.0.wait().unwrap().success())
}

#[test]
fn attach_types_into_a_container_that_listens() {
    with_every_kubectl(|up, kubectl| {
        up.apply(LISTENER);
        up.wait_for("pod/listener", ".status.phase", "Running");
        assert_eq!(converse(kubectl(&["attach", "-i", "-q", "listener"])), "typed\nbye\n");
        // Its one input has ended, and so has the container.
        up.wait_for("pod/listener", ".status.phase", "Succeeded");
        assert_eq!(up.kubectl(&["logs", "listener"]), "typed\nbye\n");
    });
}

#[test]
fn run_talks_to_the_container_that_it_made() {
    with_every_kubectl(|_, kubectl| {
        let talk = ["run", "talk", "-i", "--rm", "--quiet", "--restart=Never", "--image=busybox"];
        let arguments = [&talk[..], &["--", "sh", "-c", "cat; echo bye"]].concat();
        let said = converse(kubectl(&arguments));
        assert!(said.starts_with("typed\nbye\n"), "{said}");
    });
}

#[test]
fn run_shows_what_a_failing_container_wrote_once() {
    with_every_kubectl(|_, kubectl| {
        let fails = ["run", "fails", "-i", "--rm", "--quiet", "--restart=Never", "--image=busybox"];
        let arguments = [&fails[..], &["--", "sh", "-c", "cat; exit 3"]].concat();
        let (said, well) = talk(kubectl(&arguments));
        assert_eq!(said.matches("typed").count(), 1, "{said}");
        assert!(!well);
    });
}

#[test]
fn run_in_a_terminal_is_a_terminal() {
    with_every_kubectl(|_, kubectl| {
        let talk = ["run", "talk", "-it", "--rm", "--restart=Never", "--image=busybox"];
        // The size comes once kubectl holds the terminal: only then does what is typed arrive as it is.
        let script = "stty -echo; until test \"$(stty size)\" = '30 100'; do sleep 0.1; done; \
                      echo ready; cat; echo left $(tty)";
        let arguments = [&talk[..], &["--", "sh", "-c", script]].concat();
        let mut terminal = Terminal::run(kubectl(&arguments));
        terminal.shows("ready\r\n");
        terminal.type_in("words\r");
        terminal.shows("words\r\n");
        // The end of the input, as a terminal has it.
        terminal.type_in("\u{4}");
        terminal.shows("left /dev/pts/");
        assert!(terminal.kubectl.0.wait().unwrap().success());
    });
}
