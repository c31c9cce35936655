//! `kubectl attach`, and with it `kubectl run -i`: what a running container writes from now on, and
//! what is typed to it.

use http::{Request, Response, StatusCode};
use tokio::sync::broadcast::error::RecvError;

use super::channel::{Incoming, Receiver, Sender};
use super::exec::{ERROR, RESIZE, STDERR, STDIN, STDOUT, Size, running, status, upgrade};
use super::query::Query;
use super::{Body, Refusal};
use crate::node::directory::Runs;
use crate::node::input::Keyboard;
use crate::node::logs::Log;

pub(super) fn answer<B>(
    request: Request<B>,
    runs: &Runs,
    name: &str,
    query: &Query,
) -> Result<Response<Body>, Refusal> {
    let container = running(runs, name)?;
    let log = runs.newest.clone();
    let log =
        log.ok_or_else(|| (StatusCode::BAD_REQUEST, format!("container {name:?} has no output")))?;
    let types = query.is_set("stdin") || query.is_set("input");
    let keyboard = container.keyboard().filter(|_| types);
    if types && keyboard.is_none() {
        let words = format!("container {name:?} does not have stdin enabled");
        return Err((StatusCode::BAD_REQUEST, words));
    }
    upgrade(request, query, move |sender, receiver| async move {
        sender.send(STDOUT, "").await;
        let output = async {
            show(&log, &sender).await;
            container.wait().await;
            // How the container ended is the Pod's to say: who looked on has seen all there was.
            sender.send(ERROR, status(0).to_string()).await;
        };
        let client = async {
            type_in(keyboard.as_deref(), receiver).await;
            if let Some(keyboard) = &keyboard {
                keyboard.let_go().await;
            }
        };
        tokio::select! {
            biased;
            () = output => {}
            () = client => {}
        }
    })
}

/// Shows what the container writes until it has ended.
async fn show(log: &Log, sender: &Sender) {
    let (mut live, mut progress) = (log.live(), log.progress());
    loop {
        let piece = tokio::select! {
            biased;
            piece = live.recv() => piece,
            // Only looked at when there is nothing to show.
            _ = progress.wait_for(|(_, closed)| *closed) => return,
        };
        match piece {
            Ok((stream, bytes)) => {
                let channel = if stream == "stderr" { STDERR } else { STDOUT };
                if !sender.send(channel, bytes).await {
                    return;
                }
            }
            // The client is too slow for the program: it misses some.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// Types what the client sends; returns when the client is gone.
async fn type_in(keyboard: Option<&Keyboard>, mut receiver: Receiver) {
    while let Some(incoming) = receiver.next().await {
        let Some(keyboard) = keyboard else { continue };
        match incoming {
            // A program that reads no more may still write.
            Incoming::Data(STDIN, data) => drop(keyboard.write(&data).await),
            Incoming::Data(RESIZE, data) => {
                if let Ok(Size { width, height }) = serde_json::from_slice(&data) {
                    keyboard.resize(width, height);
                }
            }
            Incoming::Closed(STDIN) => keyboard.let_go().await,
            Incoming::Data(..) | Incoming::Closed(_) => {}
        }
    }
}
