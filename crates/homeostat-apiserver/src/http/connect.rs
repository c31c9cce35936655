//! Connects: the options of a stream, read from the query, shown to admission, and written back
//! where admission changed them.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::settle;
use crate::auth::User;
use crate::registry::options::WriteOptions;
use crate::registry::{Registry, Target};
use crate::status::Status;

/// How an option is spelled in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Flag,
    Text,
    Texts,
    Numbers,
}

/// The options of each kind, in their order.
const OPTIONS: &[(&str, &[(&str, Shape)])] = &[
    (
        "PodExecOptions",
        &[
            ("stdin", Shape::Flag),
            ("stdout", Shape::Flag),
            ("stderr", Shape::Flag),
            ("tty", Shape::Flag),
            ("container", Shape::Text),
            ("command", Shape::Texts),
        ],
    ),
    (
        "PodAttachOptions",
        &[
            ("stdin", Shape::Flag),
            ("stdout", Shape::Flag),
            ("stderr", Shape::Flag),
            ("tty", Shape::Flag),
            ("container", Shape::Text),
        ],
    ),
    ("PodPortForwardOptions", &[("ports", Shape::Numbers)]),
    ("PodProxyOptions", &[("path", Shape::Text)]),
    ("NodeProxyOptions", &[("path", Shape::Text)]),
    ("ServiceProxyOptions", &[("path", Shape::Text)]),
];

/// The options a stream is opened with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Options {
    value: Value,
    shapes: &'static [(&'static str, Shape)],
    is_changed: bool,
}

impl Options {
    /// Reads them; `path` is what follows a proxy in the URL.
    pub(super) fn read(target: &Target, part: &str, query: &str, path: &str) -> Option<Self> {
        let part = target.kind.subresource(part)?;
        let (_, shapes) = OPTIONS.iter().find(|(kind, _)| *kind == part.kind)?;
        let mut value = Map::new();
        value.insert("kind".to_owned(), part.kind.clone().into());
        value.insert("apiVersion".to_owned(), part.version.clone().into());
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        for (name, shape) in *shapes {
            let given = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| &**value);
            let read = match shape {
                _ if *name == "path" => Some(path).filter(|path| !path.is_empty()).map(Value::from),
                Shape::Text => given.into_iter().next().filter(|v| !v.is_empty()).map(Value::from),
                Shape::Flag => given
                    .into_iter()
                    .next()
                    .is_some_and(|value| !matches!(value, "0" | "false"))
                    .then_some(Value::Bool(true)),
                Shape::Texts => list(given.map(Value::from)),
                Shape::Numbers => {
                    list(given.filter_map(|text| text.parse::<i64>().ok().map(Value::from)))
                }
            };
            value.extend(read.map(|read| ((*name).to_owned(), read)));
        }
        Some(Self { value: Value::Object(value), shapes, is_changed: false })
    }

    /// What admission leaves of them.
    pub(super) async fn admitted(
        self,
        registry: &Arc<Registry>,
        user: &Arc<User>,
        target: &Target,
        part: &str,
    ) -> Result<Self, Status> {
        let options = WriteOptions { user: Some(Arc::clone(user)), ..WriteOptions::default() };
        let attempt = || registry.connect(target, part, self.value.clone(), &options);
        let (value, _) = settle::settle(registry, &options.inquiry, attempt).await?;
        Ok(Self { is_changed: value != self.value, value, ..self })
    }

    /// The query for the node: the one that was sent, unless admission made another of it.
    pub(super) fn query(&self, sent: &str) -> String {
        if !self.is_changed {
            return sent.to_owned();
        }
        let known = |name: &str| self.shapes.iter().any(|(known, _)| *known == name);
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in form_urlencoded::parse(sent.as_bytes()) {
            if !known(&name) {
                query.append_pair(&name, &value);
            }
        }
        for (name, shape) in self.shapes.iter().filter(|(name, _)| *name != "path") {
            match (shape, self.value.get(*name)) {
                (Shape::Texts | Shape::Numbers, Some(Value::Array(items))) => {
                    for item in items {
                        query.append_pair(name, &text(item));
                    }
                }
                (_, Some(value)) => drop(query.append_pair(name, &text(value))),
                (_, None) => {}
            }
        }
        query.finish()
    }
}

fn list(items: impl Iterator<Item = Value>) -> Option<Value> {
    let items: Vec<Value> = items.collect();
    (!items.is_empty()).then_some(Value::Array(items))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
