//! `kubectl exec`.

use std::fs::File;
use std::process::Stdio;

use http::{Request, Response, StatusCode};
use rustix::termios::{Winsize, tcsetwinsize};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};

use super::channel::{self, Incoming, Receiver, Sender};
use super::query::Query;
use super::upgrade::asks_for_spdy;
use super::{Body, Refusal, streams};
use crate::node::directory::Runs;
use crate::node::input;
use crate::node::process::Container;
use crate::node::sandbox::exit_code;

pub(super) const STDIN: u8 = 0;
pub(super) const STDOUT: u8 = 1;
pub(super) const STDERR: u8 = 2;
pub(super) const ERROR: u8 = 3;
pub(super) const RESIZE: u8 = 4;

const WEBSOCKET: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

/// Upgrades in whatever way the client asks for.
pub(super) fn upgrade<B, F, Fut>(
    request: Request<B>,
    query: &Query,
    serve: F,
) -> Result<Response<Body>, Refusal>
where
    F: FnOnce(Sender, Receiver) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    if !asks_for_spdy(&request) {
        return channel::upgrade(request, &WEBSOCKET, serve);
    }
    let terminal = query.is_set("tty");
    let wanted = [
        (STDIN, query.is_set("stdin") || query.is_set("input")),
        (STDOUT, query.is_set("stdout") || query.is_set("output")),
        (STDERR, !terminal && (query.is_set("stderr") || query.is_set("error"))),
        (ERROR, true),
        (RESIZE, terminal),
    ];
    let wanted = wanted.into_iter().filter(|(_, wanted)| *wanted).map(|(channel, _)| channel);
    streams::upgrade(request, wanted.collect(), serve)
}

pub(super) fn running(runs: &Runs, name: &str) -> Result<Container, Refusal> {
    let alive = runs.process.clone().filter(|container| container.exited().is_none());
    alive.ok_or_else(|| (StatusCode::BAD_REQUEST, format!("container {name:?} is not running")))
}

pub(super) fn exec<B>(
    request: Request<B>,
    runs: &Runs,
    name: &str,
    query: &Query,
) -> Result<Response<Body>, Refusal> {
    let container = running(runs, name)?;
    let argv: Vec<String> = query.all("command").map(Into::into).collect();
    if argv.is_empty() {
        return Err((StatusCode::BAD_REQUEST, "you must specify a command".into()));
    }
    let terminal = query.is_set("tty");
    let stdin = query.is_set("stdin") || query.is_set("input");
    upgrade(request, query, move |sender, receiver| async move {
        sender.send(STDOUT, "").await;
        let outcome = match container.enter(argv, terminal) {
            Ok(command) if terminal => in_terminal(command, &sender, receiver).await,
            Ok(command) => in_pipes(command, stdin, &sender, receiver).await,
            Err(error) => Err(error),
        };
        let status = match outcome {
            Ok(code) => status(code),
            Err(error) => json!({
                "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
                "message": error.to_string(),
            }),
        };
        sender.send(ERROR, status.to_string()).await;
    })
}

/// The end of a command as clients read it.
pub(super) fn status(code: i32) -> Value {
    if code == 0 {
        return json!({ "metadata": {}, "status": "Success" });
    }
    json!({
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: exit status {code}"),
        "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
    })
}

async fn in_pipes(
    mut command: Command,
    stdin: bool,
    sender: &Sender,
    receiver: Receiver,
) -> std::io::Result<i32> {
    command.stdin(if stdin { Stdio::piped() } else { Stdio::null() });
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let input = child.stdin.take();
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(std::io::Error::other("the output streams are missing"));
    };
    let output = async {
        tokio::join!(sender.copy(STDOUT, out), sender.copy(STDERR, err));
    };
    tokio::select! {
        biased;
        code = finish(&mut child, output) => code,
        // Without a client the command has no use; dropping the child ends it.
        () = feed(input, receiver) => Ok(128 + 9),
    }
}

async fn finish(child: &mut Child, output: impl Future<Output = ()>) -> std::io::Result<i32> {
    output.await;
    Ok(exit_code(child.wait().await?))
}

/// Carries standard input to the command; returns when the client is gone.
async fn feed(mut input: Option<ChildStdin>, mut receiver: Receiver) {
    while let Some(incoming) = receiver.next().await {
        match incoming {
            Incoming::Data(STDIN, data) => {
                if let Some(pipe) = &mut input
                    && pipe.write_all(&data).await.is_err()
                {
                    input = None;
                }
            }
            Incoming::Closed(STDIN) => input = None,
            Incoming::Data(..) | Incoming::Closed(_) => {}
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Size {
    pub(super) width: u16,
    pub(super) height: u16,
}

async fn in_terminal(
    mut command: Command,
    sender: &Sender,
    mut receiver: Receiver,
) -> std::io::Result<i32> {
    let (master, slave) = input::terminal()?;
    let master = File::from(master);
    let stream = |fd: &std::os::fd::OwnedFd| Ok::<_, std::io::Error>(Stdio::from(fd.try_clone()?));
    let mut child =
        command.stdin(stream(&slave)?).stdout(stream(&slave)?).stderr(stream(&slave)?).spawn()?;
    // Only the command may hold the terminal, or its end would never be seen.
    drop(slave);
    drop(command);
    let output = tokio::fs::File::from_std(master.try_clone()?);
    let mut input = tokio::fs::File::from_std(master.try_clone()?);
    let copied = sender.copy(STDOUT, output);
    let typed = async {
        while let Some(incoming) = receiver.next().await {
            match incoming {
                Incoming::Data(STDIN, data) => {
                    // Nobody reads it when the command has ended meanwhile, whose last words and exit
                    // code are on their way.
                    let _ = input.write_all(&data).await;
                    let _ = input.flush().await;
                }
                Incoming::Data(RESIZE, data) => {
                    if let Ok(Size { width, height }) = serde_json::from_slice(&data) {
                        let (ws_col, ws_row) = (width, height);
                        let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
                        // A terminal that cannot be resized still works.
                        let _ = tcsetwinsize(&master, size);
                    }
                }
                Incoming::Data(..) | Incoming::Closed(_) => {}
            }
        }
    };
    tokio::select! {
        biased;
        code = finish(&mut child, copied) => code,
        () = typed => Ok(128 + 9),
    }
}
