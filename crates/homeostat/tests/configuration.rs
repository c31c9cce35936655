//! Which cluster a manager is for, as the environment says. The environment is that of the whole
//! process, so each question is asked in a process of its own: this test, run once more.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

use homeostat::Manager;
use serde_json::json;

/// Says in the other process which context is asked for; empty for the current one.
const CONTEXT: &str = "HOMEOSTAT_TEST_CONTEXT";

/// A server that hears one request and gives back its lines.
fn server() -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heard = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let body = json!({ "major": "1", "minor": "36", "gitVersion": "", "gitCommit": "",
            "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": "" });
        let body = body.to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
        lines
    });
    (url, heard)
}

/// Whom the cluster `wanted` hears of when a manager for `context` asks it something.
fn user_heard_by(wanted: &str, context: &str) -> String {
    let ((url, heard), folder) = (server(), tempfile::tempdir().unwrap());
    let cluster = |name: &str| {
        let url = if name == wanted { &*url } else { "http://127.0.0.1:1" };
        json!({ "name": name, "cluster": { "server": url } })
    };
    let user = |name: &str| json!({ "name": name, "user": { "token": format!("token-{name}") } });
    let place = |name: &str| json!({ "name": name, "context": { "cluster": name, "user": name } });
    let both = |make: &dyn Fn(&str) -> serde_json::Value| json!([make("first"), make("second")]);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "first",
        "clusters": both(&cluster), "users": both(&user), "contexts": both(&place),
    });
    let path = folder.path().join("config");
    std::fs::write(&path, config.to_string()).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_other_process", "--ignored"])
        .env("KUBECONFIG", &path)
        .env(CONTEXT, context)
        .env_remove("HTTPS_PROXY")
        .env_remove("https_proxy")
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    let heard = heard.join().unwrap();
    let word =
        |line: &String| line.to_lowercase().strip_prefix("authorization: ").map(str::to_owned);
    heard.iter().find_map(word).unwrap()
}

#[test]
fn a_manager_is_for_the_current_context_or_for_the_one_that_is_named() {
    assert_eq!(user_heard_by("first", ""), "bearer token-first");
    assert_eq!(user_heard_by("second", "second"), "bearer token-second");
}

#[tokio::test]
#[ignore = "run by the other test, with an environment of its own"]
async fn the_other_process() {
    let context = std::env::var(CONTEXT).unwrap();
    let manager = match &*context {
        "" => Manager::from_env().await,
        name => Manager::from_context(name).await,
    };
    manager.unwrap().client().apiserver_version().await.unwrap();
    let error = Manager::from_context("nobody").await.unwrap_err();
    assert!(error.chain().contains("nobody"), "{error}");
}
