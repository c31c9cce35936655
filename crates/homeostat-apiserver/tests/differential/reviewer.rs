//! The admission webhooks of one side: they answer as the script says, and keep what they were asked.
//!
//! A sequence has the paths below its namespace to itself. Whoever the script gives no answer allows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::webhook_server::{self, Reply, Served};

/// The headers of a request that have a meaning.
const HEADERS: [&str; 3] = ["accept", "content-type", "user-agent"];

/// Who runs the tests, on one side and on the other.
const ADMINISTRATORS: [&str; 2] = ["kubernetes-admin", "admin"];

/// What the script says that a webhook answers: `@answer /path {"allowed": true}` is the response
/// of a review, `@reply /path 500 words` a whole reply.
#[derive(Debug, Clone)]
pub(crate) enum Manner {
    /// The `response`; a patch is written as such, and the uid only where it is wrong.
    Response(String),
    /// A code and a body, with `<uid>` for that of the request, which is JSON, or words after
    /// `text: `; or `silence`, or `hang-up`.
    Raw(String),
}

impl Manner {
    /// The same, with its variables filled in.
    pub(crate) fn map(&self, filled: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Response(text) => Self::Response(filled(text)),
            Self::Raw(text) => Self::Raw(filled(text)),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    manners: BTreeMap<String, Manner>,
    asked: BTreeMap<String, Vec<Value>>,
}

/// All webhooks of a side.
pub(crate) struct Reviewer {
    pub(crate) served: Served,
    state: Arc<Mutex<State>>,
}

impl Reviewer {
    /// Serves them for as long as the process lives.
    pub(crate) async fn serve() -> Arc<Self> {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        let served = webhook_server::serve(move |head, body| {
            let review = serde_json::from_slice(body).unwrap_or_default();
            reply(&mut shared.lock().unwrap(), head, review)
        });
        Arc::new(Self { served: served.await, state })
    }

    /// From now on the webhook at this path answers so.
    pub(crate) fn behave(&self, namespace: &str, path: &str, manner: Manner) {
        self.state.lock().unwrap().manners.insert(format!("/{namespace}{path}"), manner);
    }

    /// What the webhooks of a sequence were asked since the last time. Those below `/judge` are
    /// asked at once, so they are put in order.
    pub(crate) fn asked(&self, namespace: &str) -> Vec<Value> {
        let mut asked = self.state.lock().unwrap().asked.remove(namespace).unwrap_or_default();
        let path = |entry: &Value| entry["path"].as_str().unwrap_or("").to_owned();
        for together in asked.chunk_by_mut(|one, next| {
            [one, next].iter().all(|entry| path(entry).starts_with("/judge"))
        }) {
            together.sort_by_key(path);
        }
        asked
    }
}

/// The review with roles for what no two servers have in common: its uid, and who runs the tests.
fn comparable(mut review: Value) -> Value {
    let request = &mut review["request"];
    if request["uid"].as_str().is_some_and(|uid| uid.len() == 36) {
        request["uid"] = "<of the request>".into();
    }
    if let Some(user) = request["userInfo"].as_object_mut()
        && user.get("username").is_some_and(|name| ADMINISTRATORS.iter().any(|one| name == one))
    {
        user.insert("username".to_owned(), "<administrator>".into());
        user.remove("uid");
    }
    review
}

fn reply(state: &mut State, head: &http::request::Parts, review: Value) -> Reply {
    let whole = head.uri.path_and_query().map_or("", |path| path.as_str());
    let (namespace, path) = whole[1..].split_once('/').unwrap_or((&whole[1..], ""));
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let headers: BTreeMap<_, _> = HEADERS.iter().map(|name| (*name, header(name))).collect();
    let (uid, version) = (review["request"]["uid"].clone(), review["apiVersion"].clone());
    state.asked.entry(namespace.to_owned()).or_default().push(json!({
        "path": format!("/{path}"), "headers": headers, "review": comparable(review),
    }));
    let manner = state.manners.get(head.uri.path()).cloned();
    match manner.unwrap_or_else(|| Manner::Response(r#"{"allowed": true}"#.to_owned())) {
        Manner::Response(text) => {
            let mut response: Value = serde_json::from_str(&text).unwrap();
            if let Some(operations) = response.get_mut("patch").filter(|patch| !patch.is_string()) {
                *operations = BASE64_STANDARD.encode(operations.to_string()).into();
                response["patchType"] = "JSONPatch".into();
            }
            if response.get("uid").is_none() {
                response["uid"] = uid;
            }
            let reply =
                json!({"kind": "AdmissionReview", "apiVersion": version, "response": response});
            Reply::Text(200, reply.to_string())
        }
        Manner::Raw(text) => match text.split_once(' ').unwrap_or((&text, "")) {
            ("silence", _) => Reply::Silence,
            ("hang-up", _) => Reply::HangUp,
            (code, body) => {
                let body = body.replace("<uid>", uid.as_str().unwrap_or(""));
                let code = code.parse().unwrap();
                match body.strip_prefix("text: ") {
                    Some(words) => Reply::Words(code, words.to_owned()),
                    None => Reply::Text(code, body),
                }
            }
        },
    }
}
