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

/// Where the process that is asked finds its configuration.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// `$KUBECONFIG` names one file.
    Named,
    /// It lists two: clusters and contexts in one, users in the other.
    Listed,
    /// It is not set; `~/.kube/config` is there.
    Home,
}

/// Whom the cluster `wanted` hears of when a manager for `context` asks it something.
fn user_heard_by(wanted: &str, context: &str, found: Place) -> String {
    let ((url, heard), folder) = (server(), tempfile::tempdir().unwrap());
    let cluster = |name: &str| {
        let url = if name == wanted { &*url } else { "http://127.0.0.1:1" };
        json!({ "name": name, "cluster": { "server": url } })
    };
    let user = |name: &str| json!({ "name": name, "user": { "token": format!("token-{name}") } });
    let place = |name: &str| json!({ "name": name, "context": { "cluster": name, "user": name } });
    let both = |make: &dyn Fn(&str) -> serde_json::Value| json!([make("first"), make("second")]);
    let mut config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "first",
        "clusters": both(&cluster), "users": both(&user), "contexts": both(&place),
    });
    std::fs::create_dir(folder.path().join(".kube")).unwrap();
    let [path, other] = ["config", "users"].map(|name| folder.path().join(".kube").join(name));
    if found == Place::Listed {
        let users = config.as_object_mut().unwrap().shift_remove("users");
        let users = json!({ "apiVersion": "v1", "kind": "Config", "users": users });
        std::fs::write(&other, users.to_string()).unwrap();
    }
    std::fs::write(&path, config.to_string()).unwrap();
    let mut process = Command::new(std::env::current_exe().unwrap());
    process
        .args(["--exact", "the_other_process", "--ignored"])
        .env("HOME", folder.path())
        .env(CONTEXT, context)
        .env_remove("HTTPS_PROXY")
        .env_remove("https_proxy")
        .stdout(Stdio::null());
    match found {
        Place::Named => process.env("KUBECONFIG", &path),
        Place::Listed => process.env("KUBECONFIG", std::env::join_paths([&path, &other]).unwrap()),
        Place::Home => process.env_remove("KUBECONFIG"),
    };
    assert!(process.status().unwrap().success());
    let heard = heard.join().unwrap();
    let word =
        |line: &String| line.to_lowercase().strip_prefix("authorization: ").map(str::to_owned);
    heard.iter().find_map(word).unwrap()
}

#[test]
fn a_manager_is_for_the_current_context_or_for_the_one_that_is_named() {
    assert_eq!(user_heard_by("first", "", Place::Named), "bearer token-first");
    assert_eq!(user_heard_by("second", "second", Place::Named), "bearer token-second");
}

#[test]
fn several_files_are_read_as_one_and_the_usual_one_when_none_is_named() {
    for place in [Place::Listed, Place::Home] {
        assert_eq!(user_heard_by("first", "", place), "bearer token-first");
        assert_eq!(user_heard_by("second", "second", place), "bearer token-second");
    }
}

#[test]
fn a_file_that_is_named_and_missing_is_told_and_a_pod_that_has_none_says_what_it_lacks() {
    let said = |kubeconfig: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap());
        process
            .args(["--exact", "the_process_that_finds_no_cluster", "--ignored", "--nocapture"])
            .env("HOME", folder.path())
            .env("KUBECONFIG", kubeconfig)
            .env("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            .env_remove("KUBERNETES_SERVICE_PORT");
        String::from_utf8(process.output().unwrap().stdout).unwrap()
    };
    let named = said("/nowhere/config");
    assert!(named.contains("there is no kubeconfig /nowhere/config"), "{named}");
    let unnamed = said("");
    assert!(unnamed.contains("the service account of this Pod cannot be used"), "{unnamed}");
}

#[tokio::test]
#[ignore = "run by the other test, with an environment of its own"]
async fn the_process_that_finds_no_cluster() {
    println!("{}", Manager::from_env().await.unwrap_err().chain());
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
