//! One question of the API about a write, as its kind, and the answer to it. No IO.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::Object;

/// What the API asks about: a write that has not happened yet.
#[derive(Debug, Clone)]
pub struct Review<K> {
    /// The uid of the question.
    pub uid: String,
    /// What is to be done.
    pub operation: Operation,
    /// The object as it is to be; `None` for a deletion.
    pub object: Option<K>,
    /// The object as it is; `None` for a creation.
    pub old: Option<K>,
    /// Namespace and name. A name that the server is still to make up is empty.
    pub key: Key,
    /// Which part of the object is written, such as `status`; `None` for the whole.
    pub subresource: Option<String>,
    /// Who asks for it.
    pub user: String,
    /// The groups they are in.
    pub groups: Vec<String>,
    /// Nothing will be stored: whatever the answer, there must be no side effect.
    pub dry_run: bool,
}

/// What is to be done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is to be made.
    Create,
    /// It is to be changed.
    Update,
    /// It is to be deleted.
    Delete,
    /// A connection to it is to be opened.
    Connect,
}

/// What a handler says.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    verdict: Verdict,
    warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Verdict {
    Allow,
    Deny(String),
    Change(Value),
}

impl Answer {
    /// It may happen.
    #[must_use]
    pub fn allow() -> Self {
        Self { verdict: Verdict::Allow, warnings: Vec::new() }
    }

    /// It may not happen, and why, in words for whoever tried.
    pub fn deny(why: impl Into<String>) -> Self {
        Self { verdict: Verdict::Deny(why.into()), warnings: Vec::new() }
    }

    /// It may happen like this. Only fields that the handler changed are changed: what its type does
    /// not know stays as it is. For mutating handlers.
    ///
    /// # Errors
    /// Terminal when the object cannot be written as JSON.
    pub fn change<K: Object>(object: &K) -> Result<Self> {
        let object = serde_json::to_value(object).map_err(Error::terminal)?;
        Ok(Self { verdict: Verdict::Change(object), warnings: Vec::new() })
    }

    pub(super) fn is_change(&self) -> bool {
        matches!(self.verdict, Verdict::Change(_))
    }

    /// A word of warning besides, which kubectl shows.
    #[must_use]
    pub fn warn(mut self, text: impl Into<String>) -> Self {
        self.warnings.push(text.into());
        self
    }
}

/// The question as it comes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Question {
    #[serde(default)]
    api_version: Option<String>,
    request: Request,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    operation: Operation,
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    sub_resource: Option<String>,
    #[serde(default)]
    user_info: User,
    #[serde(default)]
    object: Option<Value>,
    #[serde(default)]
    old_object: Option<Value>,
    #[serde(default)]
    dry_run: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
}

impl Question {
    pub(super) fn parse(body: &[u8]) -> Result<Self> {
        serde_json::from_slice(body)
            .map_err(|source| Error::Decode { object: "the AdmissionReview".to_owned(), source })
    }

    /// Whether there is an object to be changed.
    pub(super) fn has_object(&self) -> bool {
        self.request.object.as_ref().is_some_and(|object| !object.is_null())
    }

    /// The question as its kind.
    pub(super) fn review<K: Object>(&self) -> Result<Review<K>> {
        let request = &self.request;
        let decode = |value: &Option<Value>| {
            let value = value.as_ref().filter(|value| !value.is_null());
            value.map(|value| K::deserialize(value)).transpose().map_err(|source| Error::Decode {
                object: format!("{} {}", K::kind(&()), request.name),
                source,
            })
        };
        Ok(Review {
            uid: request.uid.clone(),
            operation: request.operation,
            object: decode(&request.object)?,
            old: decode(&request.old_object)?,
            key: Key::new(request.namespace.as_deref(), &request.name),
            subresource: request.sub_resource.clone().filter(|part| !part.is_empty()),
            user: request.user_info.username.clone(),
            groups: request.user_info.groups.clone(),
            dry_run: request.dry_run.unwrap_or_default(),
        })
    }

    /// The answer as the API wants it. What differs between the object through its type and the
    /// answer is laid over the object as it came, and a JSON patch says that: fields the type does not
    /// know are never touched, and what it makes up is no part of the patch's way.
    pub(super) fn answer<K: Object>(&self, answer: Answer) -> Result<Value> {
        let mut response = json!({ "uid": self.request.uid, "allowed": true });
        match answer.verdict {
            Verdict::Allow => {}
            Verdict::Deny(why) => {
                response["allowed"] = false.into();
                response["status"] = json!({ "status": "Failure", "message": why, "reason": "Forbidden", "code": 403 });
            }
            Verdict::Change(after) => {
                let before = self.review::<K>()?.object;
                let before = serde_json::to_value(before).map_err(Error::terminal)?;
                let sent = self.request.object.clone().unwrap_or_default();
                let mut wanted = sent.clone();
                lay_over(&mut wanted, &before, after);
                let patch = json_patch::diff(&sent, &wanted);
                if !patch.is_empty() {
                    let text = serde_json::to_vec(&patch).map_err(Error::terminal)?;
                    response["patchType"] = "JSONPatch".into();
                    response["patch"] = STANDARD.encode(text).into();
                }
            }
        }
        if !answer.warnings.is_empty() {
            response["warnings"] = answer.warnings.into();
        }
        let version = self.api_version.as_deref().unwrap_or("admission.k8s.io/v1");
        Ok(json!({ "apiVersion": version, "kind": "AdmissionReview", "response": response }))
    }
}

/// Changes `sent` as `before` was changed into `after`, and nothing else.
fn lay_over(sent: &mut Value, before: &Value, after: Value) {
    if *before == after {
        return;
    }
    match (sent, before, after) {
        (Value::Object(sent), Value::Object(before), Value::Object(after)) => {
            for gone in before.keys().filter(|name| !after.contains_key(*name)) {
                sent.shift_remove(gone);
            }
            for (name, new) in after {
                match (sent.get_mut(&name), before.get(&name)) {
                    (Some(there), Some(old)) => lay_over(there, old, new),
                    (None, Some(old)) if *old == new => {}
                    _ => drop(sent.insert(name, new)),
                }
            }
        }
        (Value::Array(sent), Value::Array(before), Value::Array(after))
            if sent.len() == before.len() =>
        {
            let old = std::mem::take(sent);
            for (index, new) in after.iter().enumerate() {
                let was = before.get(index);
                // The same item, wherever it stands now.
                let same = if was == Some(new) {
                    Some(index)
                } else {
                    before.iter().position(|item| item == new)
                };
                let replaced = was.filter(|was| !after.contains(was));
                sent.push(match (same, replaced) {
                    (Some(same), _) => old[same].clone(),
                    // What stands in the place of one that went is that one, changed.
                    (None, Some(was)) => {
                        let mut item = old[index].clone();
                        lay_over(&mut item, was, new.clone());
                        item
                    }
                    (None, None) => new.clone(),
                });
            }
        }
        (sent, _, after) => *sent = after,
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Connect => "connect",
        })
    }
}
