//! Every Pod its own ports: what the kernel and the agent make of a program's calls.
//!
//! The program inside is this very test binary: [`inside`] does what the test put in `SCRIPT`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests may")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Stdio;

use homeostat_cluster::node::process::{Container, Helper, Output};
use homeostat_cluster::node::sandbox::{Input, Program, Spec};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};

const SCRIPT: &str = "HOMEOSTAT_TEST_SCRIPT";

/// Not a test by itself: the program of the containers.
#[test]
fn inside() {
    let Ok(script) = std::env::var(SCRIPT) else { return };
    let mut kept: Vec<TcpListener> = Vec::new();
    let mut heard: Vec<UdpSocket> = Vec::new();
    for line in script.lines() {
        let (verb, address) = line.split_once(' ').unwrap();
        let said = match verb {
            "listen" => TcpListener::bind(address).map(|listener| {
                let at = listener.local_addr().unwrap();
                kept.push(listener);
                at.to_string()
            }),
            "greet" => TcpStream::connect(address).and_then(|mut stream| {
                stream.write_all(b"!")?;
                Ok(stream.peer_addr()?.to_string())
            }),
            "accept" => kept[0].accept().and_then(|(mut stream, _)| {
                let mut said = [0];
                stream.read_exact(&mut said)?;
                Ok(String::from_utf8_lossy(&said).into())
            }),
            "hear" => UdpSocket::bind(address).map(|socket| {
                let at = socket.local_addr().unwrap();
                heard.push(socket);
                at.to_string()
            }),
            "tell" => heard[1].send_to(b"datagram", address).map(|sent| sent.to_string()),
            "heard" => heard[0].recv_from(&mut [0; 64]).map(|(length, _)| length.to_string()),
            _ => panic!("{verb}?"),
        };
        println!("> {verb} {}", said.unwrap_or_else(|error| format!("{:?}", error.kind())));
    }
    println!("> done");
    std::thread::park();
}

async fn helpers() -> [Helper; 2] {
    let helper = Helper::probe(env!("CARGO_BIN_EXE_homeostat-sandbox").into()).await.unwrap();
    [helper.clone(), helper.without_namespaces()]
}

/// An address of this test run: other runs on this host have others.
fn pod(number: u8) -> Ipv4Addr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 64 + number, high, low)
}

fn program(script: &str) -> Program {
    let test = std::env::current_exe().unwrap().display().to_string();
    Program {
        argv: [&test, "--exact", "inside", "--nocapture"].map(String::from).to_vec(),
        env: vec![(SCRIPT.into(), script.into())],
        directory: None,
        user: None,
        group: None,
        groups: Vec::new(),
    }
}

fn spec(helper: &Helper, scratch: &Path, address: Ipv4Addr, script: &str) -> Spec {
    Spec {
        tier: helper.tier(),
        hostname: "pod".into(),
        scratch: scratch.to_owned(),
        mounts: Vec::new(),
        ports: Some(helper.ports(address)),
        input: Input::Nothing,
        program: program(script),
    }
}

struct Inside {
    container: Container,
    lines: Lines<BufReader<Output>>,
    _stderr: Output,
    _scratch: TempDir,
}

impl Inside {
    /// Runs a script in a container of the Pod at `address`.
    async fn run(helper: &Helper, address: Ipv4Addr, script: &str) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let started = helper.start(spec(helper, scratch.path(), address, script)).await.unwrap();
        assert_eq!(started.shares_ports, None);
        let lines = BufReader::new(started.stdout).lines();
        Self { container: started.container, lines, _stderr: started.stderr, _scratch: scratch }
    }

    /// The next thing it says, of as many as `N`.
    async fn says<const N: usize>(&mut self, expected: [&str; N]) {
        let mut said = Vec::new();
        while said.len() < N {
            let line = self.lines.next_line().await.unwrap().expect("it goes on");
            said.extend(line.split_once("> ").map(|(_, words)| words.to_owned()));
        }
        assert_eq!(said, expected);
    }

    async fn end(self) {
        self.container.signal(9).await;
        self.container.wait().await;
    }
}

/// A port of the host's localhost, taken for as long as the listener lives.
fn taken() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[tokio::test]
async fn two_pods_and_the_host_listen_on_the_same_port() {
    for helper in helpers().await {
        let (_host, port) = taken();
        let (one, two) = (pod(0), pod(1));
        let script = format!("listen 0.0.0.0:{port}\naccept .");
        let mut first = Inside::run(&helper, one, &script).await;
        first.says([&format!("listen {one}:{port}")]).await;
        let mut second = Inside::run(&helper, two, &script).await;
        second.says([&format!("listen {two}:{port}")]).await;
        TcpStream::connect((one, port)).unwrap().write_all(b"1").unwrap();
        TcpStream::connect((two, port)).unwrap().write_all(b"2").unwrap();
        first.says(["accept 1"]).await;
        second.says(["accept 2"]).await;
        first.end().await;
        drop(TcpListener::bind((one, port)).expect("the port is free when the Pod is gone"));
        second.end().await;
    }
}

#[tokio::test]
async fn localhost_is_the_pods_own_for_all_its_containers_and_for_commands_that_enter() {
    for helper in helpers().await {
        let (_host, port) = taken();
        let (one, two) = (pod(2), pod(3));
        let script = format!("listen 127.0.0.1:{port}\naccept .\naccept .");
        let mut server = Inside::run(&helper, one, &script).await;
        server.says([&format!("listen {one}:{port}")]).await;
        let greet = format!("greet 127.0.0.1:{port}");
        let mut neighbour = Inside::run(&helper, one, &greet).await;
        neighbour.says([&format!("greet {one}:{port}")]).await;
        server.says(["accept !"]).await;
        let mut stranger = Inside::run(&helper, two, &greet).await;
        stranger.says(["greet ConnectionRefused"]).await;
        let argv = ["/usr/bin/env".to_owned(), format!("{SCRIPT}={greet}")];
        let argv = argv.into_iter().chain(program("").argv).collect();
        let mut command = server.container.enter(argv, false).unwrap();
        let mut entered = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        server.says(["accept !"]).await;
        entered.kill().await.unwrap();
        for inside in [server, neighbour, stranger] {
            inside.end().await;
        }
    }
}

#[tokio::test]
async fn a_listener_for_ipv6_and_ipv4_answers_on_the_pods_address() {
    for helper in helpers().await {
        let (_host, port) = taken();
        let one = pod(4);
        let script = format!("listen [::]:{port}\naccept .\ngreet [::1]:{port}");
        let mut server = Inside::run(&helper, one, &script).await;
        let mapped = format!("[::ffff:{one}]:{port}");
        server.says([&format!("listen {mapped}")]).await;
        TcpStream::connect((one, port)).unwrap().write_all(b"6").unwrap();
        server.says(["accept 6", &format!("greet {mapped}")]).await;
        server.end().await;
    }
}

#[tokio::test]
async fn datagrams_reach_the_pods_own_localhost() {
    for helper in helpers().await {
        let host = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = host.local_addr().unwrap().port();
        let one = pod(5);
        let script = format!("hear 0.0.0.0:{port}\nhear 0.0.0.0:0\ntell 127.0.0.1:{port}\nheard .");
        let mut inside = Inside::run(&helper, one, &script).await;
        inside.says([&format!("hear {one}:{port}")]).await;
        let anywhere = inside.lines.next_line().await.unwrap().unwrap();
        assert!(anywhere.starts_with("> hear 0.0.0.0:"), "{anywhere}");
        inside.says(["tell 8", "heard 8"]).await;
        inside.end().await;
    }
}

#[tokio::test]
async fn where_it_cannot_be_had_the_program_runs_and_the_reason_is_told() {
    for helper in helpers().await {
        let ports = serde_json::json!({ "address": pod(8), "reception": "nobody is there" });
        let scratch = tempfile::tempdir().unwrap();
        let mut spec = spec(&helper, scratch.path(), pod(8), "listen 127.0.0.1:0");
        spec.ports = serde_json::from_value(ports).unwrap();
        let started = helper.start(spec).await.unwrap();
        assert!(started.shares_ports.is_some());
        let mut lines = BufReader::new(started.stdout).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("> listen") {
                assert!(line.starts_with("> listen 127.0.0.1:"), "{line}");
                break;
            }
        }
        started.container.signal(9).await;
        started.container.wait().await;
    }
}

#[tokio::test]
async fn other_addresses_mean_what_they_say() {
    for helper in helpers().await {
        let (one, two) = (pod(6), pod(7));
        let there = TcpListener::bind((two, 0)).unwrap();
        let address = there.local_addr().unwrap();
        let mut inside = Inside::run(&helper, one, &format!("greet {address}")).await;
        inside.says([&format!("greet {address}"), "done"]).await;
        inside.end().await;
    }
}
