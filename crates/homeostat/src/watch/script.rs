//! A server for tests that answers from a script and remembers what it was asked, and when.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::stream::{self, StreamExt};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};

use crate::Env;

/// How a scripted watch goes on after its last line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Close,
    CloseAfter(Duration),
    Open,
    Break,
    Panic,
}

#[derive(Debug)]
pub(crate) enum Answer {
    Json(u16, Value),
    /// 429 in a line of text, and in the header when to come back: kube-apiserver's flow control.
    Busy(&'static str),
    Lines(Vec<String>, End),
    /// A line each time that long has passed; it stays open.
    Slow(Vec<String>, Duration),
}

/// What was asked: milliseconds since the start, and the query.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) at: u64,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) accept: String,
}

impl Asked {
    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains_key("watch")
    }
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }
}

/// Answers in order; what comes after the script hangs.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    env: Env,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Script {
    pub(crate) fn new(env: &Env, answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            env: env.clone(),
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            asked: Arc::default(),
        }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn client(&self) -> kube::Client {
        let (script, start) = (self.clone(), self.env.instant());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let query = request.uri().query().unwrap_or_default();
            let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            let accept = request.headers().get("accept").and_then(|it| it.to_str().ok());
            let accept = accept.unwrap_or_default().to_owned();
            let at = u64::try_from((script.env.instant() - start).as_millis()).unwrap();
            script.asked.lock().unwrap().push(Asked { at, query, accept });
            let answer = script.answers.lock().unwrap().pop_front();
            let env = script.env.clone();
            async move {
                match answer {
                    Some(answer) => Ok::<_, Infallible>(respond(answer, env)),
                    None => std::future::pending().await,
                }
            }
        });
        kube::Client::new(service, "default")
    }
}

fn respond(answer: Answer, env: Env) -> http::Response<UnsyncBoxBody<Bytes, std::io::Error>> {
    let mut head = http::Response::builder();
    let (code, lines, end, pace) = match answer {
        Answer::Busy(after) => {
            head = head.header(http::header::RETRY_AFTER, after);
            let words = "Too many requests, please try again later.\n".to_owned();
            (429, vec![words], End::Close, Duration::ZERO)
        }
        Answer::Json(code, value) => (code, vec![value.to_string()], End::Close, Duration::ZERO),
        Answer::Lines(lines, end) => (200, lines, end, Duration::ZERO),
        Answer::Slow(lines, pace) => (200, lines, End::Open, pace),
    };
    let after = move |pause: Duration| {
        let env = env.clone();
        async move {
            if !pause.is_zero() {
                env.sleep(pause).await;
            }
        }
    };
    let paced = {
        let after = after.clone();
        move |line: String| after(pace).map(|()| Ok(Bytes::from(line)))
    };
    let lines = stream::iter(lines).then(paced);
    let rest = match end {
        End::Close => stream::empty().boxed(),
        End::CloseAfter(life) => stream::once(after(life)).flat_map(|()| stream::empty()).boxed(),
        End::Open => stream::pending().boxed(),
        // What came before is taken by then.
        End::Panic => stream::once(after(Duration::from_millis(1)))
            .map(|()| panic!("the line is cursed"))
            .boxed(),
        End::Break => {
            stream::iter([Err(std::io::Error::other("connection reset by the script"))]).boxed()
        }
    };
    let frames = lines.chain(rest).map(|bytes| bytes.map(Frame::data));
    let body = StreamBody::new(frames).boxed_unsync();
    head.status(code).body(body).unwrap()
}

pub(crate) fn object(name: &str, revision: u64) -> Value {
    json!({ "metadata": {
        "name": name, "namespace": "default", "uid": format!("uid-{name}"),
        "resourceVersion": revision.to_string(),
    }})
}

pub(crate) fn page(items: &[Value], revision: u64, token: Option<&str>) -> Answer {
    let metadata = json!({ "resourceVersion": revision.to_string(), "continue": token });
    Answer::Json(200, json!({ "metadata": metadata, "items": items }))
}

pub(crate) fn refused(code: u16, message: &str) -> Answer {
    Answer::Json(code, json!({ "kind": "Status", "code": code, "message": message }))
}

pub(crate) fn watch(lines: impl IntoIterator<Item = String>, end: End) -> Answer {
    Answer::Lines(lines.into_iter().collect(), end)
}

pub(crate) fn event(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({ "type": kind, "object": object }))
}

pub(crate) fn bookmark(revision: u64) -> String {
    let metadata = json!({ "resourceVersion": revision.to_string() });
    event("BOOKMARK", &json!({ "metadata": metadata }))
}

pub(crate) fn initial_end(revision: u64) -> String {
    let annotations = json!({ "k8s.io/initial-events-end": "true" });
    let metadata = json!({ "resourceVersion": revision.to_string(), "annotations": annotations });
    event("BOOKMARK", &json!({ "metadata": metadata }))
}

/// The answer to a streaming list: these objects, the end of the initial events, then `lines`.
pub(crate) fn streamed(items: &[Value], revision: u64, lines: &[String], end: End) -> Answer {
    let initial = items.iter().map(|item| event("ADDED", item));
    watch(initial.chain([initial_end(revision)]).chain(lines.iter().cloned()), end)
}
