//! What the sandbox promises, with real processes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::Stdio;

use homeostat_cluster::node::process::{Container, Helper, StartError, Started};
use homeostat_cluster::node::sandbox::{Input, Mount, Program, Spec, Tier};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

async fn helper() -> Helper {
    Helper::probe(env!("CARGO_BIN_EXE_homeostat-sandbox").into()).await.unwrap()
}

fn spec(helper: &Helper, scratch: &Path, script: &str) -> Spec {
    Spec {
        tier: helper.tier(),
        hostname: "the-pod".into(),
        scratch: scratch.to_owned(),
        mounts: Vec::new(),
        ports: None,
        input: Input::Nothing,
        program: Program {
            argv: vec!["sh".into(), "-c".into(), script.into()],
            env: vec![("PATH".into(), "/usr/bin:/bin".into()), ("GREETING".into(), "hi".into())],
            directory: None,
            user: None,
            group: None,
            groups: Vec::new(),
        },
    }
}

async fn output(mut started: Started) -> (String, i32) {
    let mut text = String::new();
    started.stdout.read_to_string(&mut text).await.unwrap();
    started.stderr.read_to_string(&mut text).await.unwrap();
    (text, started.container.wait().await)
}

async fn first_line(started: &mut Started) -> String {
    let mut line = String::new();
    BufReader::new(&mut started.stdout).read_line(&mut line).await.unwrap();
    line.trim().to_owned()
}

#[tokio::test]
async fn a_program_runs_with_its_environment_and_its_exit_code_comes_back() {
    let (helper, scratch) = (helper().await, tempfile::tempdir().unwrap());
    for helper in [helper.clone(), helper.without_namespaces()] {
        let started = helper.start(spec(&helper, scratch.path(), "echo $GREETING; exit 3")).await;
        assert_eq!(output(started.unwrap()).await, ("hi\n".into(), 3));
        let started = helper.start(spec(&helper, scratch.path(), "kill -9 $$")).await;
        assert_eq!(output(started.unwrap()).await, (String::new(), 137));
    }
}

#[tokio::test]
async fn a_volume_is_at_its_path_and_other_writes_stay_inside() {
    let (helper, scratch) = (helper().await, tempfile::tempdir().unwrap());
    if helper.tier() == Tier::Raw {
        eprintln!("NOT RUN: this host allows no namespaces");
        return;
    }
    let volume = tempfile::tempdir().unwrap();
    let script = "cat /var/lib/new/file; echo kept > /some/where/new/file; echo lost > /lost; hostname; ls -d /lost; \
                  (echo no > /read/only) 2>/dev/null || echo refused";
    std::fs::write(volume.path().join("file"), "before\n").unwrap();
    let mut spec = spec(&helper, scratch.path(), script);
    for (target, read_only) in
        [("/some/where/new", false), ("/read", true), ("/var/lib/new", false)]
    {
        let source = volume.path().to_owned();
        spec.mounts.push(Mount { source, target: target.into(), read_only });
    }
    let started = helper.start(spec).await.unwrap();
    assert_eq!(output(started).await, ("before\nthe-pod\n/lost\nrefused\n".into(), 0));
    assert_eq!(std::fs::read_to_string(volume.path().join("file")).unwrap(), "kept\n");
    assert!(!Path::new("/lost").exists() && !Path::new("/some").exists());
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "mounts are private");
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let (helper, scratch) = (helper().await, tempfile::tempdir().unwrap());
    let mut spec = spec(&helper, scratch.path(), "");
    spec.program.argv = vec!["no-such-program".into()];
    let Err(StartError::Program(message) | StartError::Sandbox(message)) = helper.start(spec).await
    else {
        panic!("it started");
    };
    assert!(message.contains("no-such-program"), "{message}");
}

#[tokio::test]
async fn a_signal_reaches_the_program_and_kill_ends_what_it_started() {
    let (helper, scratch) = (helper().await, tempfile::tempdir().unwrap());
    for helper in [helper.clone(), helper.without_namespaces()] {
        let trap = "trap 'echo stopping; exit 7' TERM; echo up; while :; do sleep 0.05; done";
        let mut started = helper.start(spec(&helper, scratch.path(), trap)).await.unwrap();
        assert_eq!(first_line(&mut started).await, "up");
        started.container.signal(15).await;
        assert_eq!(started.container.wait().await, 7);

        let stubborn = "trap '' TERM; sleep 1000 & echo up; wait";
        let mut started = helper.start(spec(&helper, scratch.path(), stubborn)).await.unwrap();
        assert_eq!(first_line(&mut started).await, "up");
        started.container.signal(9).await;
        assert_eq!(started.container.wait().await, 137);
        // End of file: nobody holds the other end of the pipe any more.
        let mut rest = String::new();
        started.stdout.read_to_string(&mut rest).await.unwrap();
    }
}

async fn inside(container: &Container, script: &str) -> (String, i32) {
    let argv = vec!["sh".into(), "-c".into(), script.into()];
    let mut command = container.enter(argv, false).unwrap();
    let done = command.stdin(Stdio::null()).output().await.unwrap();
    let text =
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    (text, done.status.code().unwrap())
}

#[tokio::test]
async fn a_second_program_can_enter_and_sees_the_same_world() {
    let (helper, scratch) = (helper().await, tempfile::tempdir().unwrap());
    if helper.tier() == Tier::Raw {
        eprintln!("NOT RUN: this host allows no namespaces");
        return;
    }
    let spec = spec(&helper, scratch.path(), "echo secret > /here; echo up; sleep 1000");
    let mut started = helper.start(spec).await.unwrap();
    assert_eq!(first_line(&mut started).await, "up");
    let seen = inside(&started.container, "cat /here; hostname; echo $GREETING; exit 5").await;
    assert_eq!(seen, ("secret\nthe-pod\nhi\n".into(), 5));
    started.container.signal(9).await;
    started.container.wait().await;
}

#[tokio::test]
async fn a_program_that_entered_ends_with_whoever_asked_for_it() {
    let (helper, scratch) = (helper().await, tempfile::tempdir().unwrap());
    for helper in [helper.clone(), helper.without_namespaces()] {
        let spec = spec(&helper, scratch.path(), "echo up; sleep 1000");
        let mut started = helper.start(spec).await.unwrap();
        assert_eq!(first_line(&mut started).await, "up");
        let argv = vec!["sh".into(), "-c".into(), "echo in; exec sleep 1000".into()];
        let mut command = started.container.enter(argv, false).unwrap();
        let mut entered = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(entered.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).await.unwrap();
        assert_eq!(line, "in\n");
        drop(entered);
        // End of file: the program does not hold the other end of the pipe any more.
        let limit = std::time::Duration::from_secs(20);
        let ended =
            homeostat_env::Env::system().timeout(limit, output.read_to_string(&mut line)).await;
        assert!(ended.is_ok(), "it is still there ({:?})", helper.tier());
        started.container.signal(9).await;
        started.container.wait().await;
    }
}

#[tokio::test]
async fn dropping_the_handle_ends_the_container() {
    let (helper, scratch) = (helper().await, tempfile::tempdir().unwrap());
    for helper in [helper.clone(), helper.without_namespaces()] {
        let spec = spec(&helper, scratch.path(), "sleep 1000 & echo up; wait");
        let mut started = helper.start(spec).await.unwrap();
        assert_eq!(first_line(&mut started).await, "up");
        drop(started.container);
        let mut rest = String::new();
        started.stdout.read_to_string(&mut rest).await.unwrap();
    }
}

/// The scratch directory is in the environment of the helper's child, so it can be looked for.
#[tokio::test]
async fn killing_the_agent_leaves_nothing_running() {
    const AGENT: &str = "HOMEOSTAT_TEST_AGENT_SCRATCH";
    if let Some(scratch) = std::env::var_os(AGENT) {
        let (helper, scratch) = (helper().await, PathBuf::from(scratch));
        let mut kept = Vec::new();
        for helper in [helper.clone(), helper.without_namespaces()] {
            let mut spec = spec(&helper, &scratch, "setsid sleep 1000 & echo up; sleep 1000");
            spec.program.env.push((AGENT.into(), scratch.display().to_string()));
            let mut started = helper.start(spec).await.unwrap();
            assert_eq!(first_line(&mut started).await, "up");
            kept.push(started);
        }
        println!("agent is up");
        return std::future::pending().await;
    }
    let scratch = tempfile::tempdir().unwrap();
    let mut agent = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killing_the_agent_leaves_nothing_running", "--nocapture"])
        .env(AGENT, scratch.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("agent is up") {
            break;
        }
    }
    let marker = format!("{AGENT}={}", scratch.path().display());
    assert!(processes_with(&marker) > 2, "the containers run");
    agent.kill().await.unwrap();
    let gone = async {
        while processes_with(&marker) > 0 {
            tokio::task::yield_now().await;
        }
    };
    homeostat_env::Env::system().timeout(std::time::Duration::from_secs(10), gone).await.unwrap();
}

fn processes_with(marker: &str) -> usize {
    let holds = |entry: std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|pair| pair == marker.as_bytes())
    };
    std::fs::read_dir("/proc").unwrap().flatten().map(holds).filter(|held| *held).count()
}
