//! Replaces what cannot be equal on two servers by the role it plays.
//!
//! Uids and revisions become numbers in order of appearance, so that "the same as before" and "a
//! new one" stay visible: a write that changes nothing must show the revision of the step before.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use regex::{Captures, Regex};
use serde_json::{Map, Value};

/// What one side has shown so far.
#[derive(Debug)]
pub(crate) struct Normal {
    uids: Vec<String>,
    /// By the uid of the object.
    revisions: BTreeMap<String, Vec<String>>,
    /// Generated names, with what they are shown as.
    generated: Vec<(String, String)>,
    uid: Regex,
    time: Regex,
    revision_in_words: Regex,
    address: Regex,
    age: Regex,
    token: Regex,
    token_volume: Regex,
    /// The name that is generated from the base of random requests: one that was refused is in no object
    /// that would tell it.
    refused_name: Regex,
    started: Timestamp,
}

impl Default for Normal {
    fn default() -> Self {
        let regex = |text: &str| Regex::new(text).unwrap();
        Self {
            uids: Vec::new(),
            revisions: BTreeMap::new(),
            generated: Vec::new(),
            uid: regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
            time: regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
            revision_in_words: regex(
                r#"((?:in record \(|in the precondition \(|resource version: |ResourceVersion in [a-z ]+: |current: |[\[ ]resourceVersion:|resourceVersion\\":\\")\(?)\d+( \(\d+\))?"#,
            ),
            address: regex(r"10\.96\.\d+\.\d+"),
            age: regex(r"^\d+m?s$"),
            token_volume: regex(r"kube-api-access-[a-z0-9]{5}"),
            refused_name: regex(r"\bg-[bcdfghjklmnpqrstvwxz2456789]{5}\b"),
            token: regex(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"),
            started: homeostat_env::Env::system().now(),
        }
    }
}

impl Normal {
    /// The value with roles in place of what differs.
    pub(crate) fn value(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => self.text_noting(&text).into(),
            Value::Array(items) => {
                items.into_iter().filter(shown).map(|item| self.value(item)).collect()
            }
            Value::Object(mut fields) => {
                self.note_generated_name(&Value::Object(fields.clone()));
                if let Some(metadata) = fields.get("object").and_then(|row| row.get("metadata")) {
                    // The cells of a row come before its object.
                    self.note_generated_name(metadata);
                }
                let list = ["items", "rows"].iter().any(|field| fields.contains_key(*field))
                    || fields.get("type").is_some_and(|word| word == "BOOKMARK");
                if list {
                    hide(&mut fields);
                    if let Some(Value::Object(object)) = fields.get_mut("object") {
                        hide(object);
                        // kube-apiserver sends a blank object of the kind along.
                        object.retain(|name, _| {
                            matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "rows")
                        });
                    }
                }
                if let Some(Value::Array(managers)) = fields.get_mut("managedFields") {
                    // Their order depends on whether a second passed between two steps.
                    managers.sort_by_key(|manager| {
                        ["operation", "manager", "subresource", "apiVersion"]
                            .map(|field| manager[field].to_string())
                    });
                }
                sort_causes(&mut fields);
                sort_errors(&mut fields);
                let owner = fields.get("uid").and_then(Value::as_str).unwrap_or("").to_owned();
                // In one order on both sides: roles are numbered as they are met.
                fields.sort_keys();
                fields.into_iter().map(|(name, value)| self.field(&owner, &name, value)).collect()
            }
            other => other,
        }
    }

    /// `owner` is the uid next to the field, which makes the revisions of one object a series.
    fn field(&mut self, owner: &str, name: &str, value: Value) -> (String, Value) {
        let value = match (name, value) {
            ("resourceVersion", Value::String(text)) if text.parse::<u64>().is_ok() => {
                let series = self.revisions.entry(owner.to_owned()).or_default();
                format!("<revision {}>", position(series, &text)).into()
            }
            ("nodePort" | "healthCheckNodePort", Value::Number(port))
                if port.as_u64() >= Some(30000) =>
            {
                "<port>".into()
            }
            ("cells", Value::Array(cells)) => cells
                .into_iter()
                .map(|cell| match cell {
                    Value::String(text) if self.age.is_match(&text) => "<age>".into(),
                    other => self.value(other),
                })
                .collect(),
            (_, value) => self.value(value),
        };
        // Who owns an entry of a list is said by its key.
        let name = self.token_volume.replace_all(name, "kube-api-access-<5 letters>").into_owned();
        (name, value)
    }

    /// Whether the text is a uid and nothing else.
    pub(crate) fn is_uid(&self, text: &str) -> bool {
        self.uid.find(text).is_some_and(|found| found.len() == text.len())
    }

    /// Shows the text as its role from now on.
    pub(crate) fn know(&mut self, text: &str, role: &str) {
        self.generated.push((text.to_owned(), role.to_owned()));
    }

    fn note_generated_name(&mut self, object: &Value) {
        let field = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        if let (Some(prefix), Some(name)) = (field("/generateName"), field("/name"))
            && name.starts_with(prefix)
            && !self.generated.iter().any(|(known, _)| known == name)
        {
            let suffix = name.len() - prefix.len();
            let role = format!("{prefix}<{suffix} letters, {}>", self.generated.len());
            self.generated.push((name.to_owned(), role));
        }
    }

    fn text_noting(&mut self, text: &str) -> String {
        for found in self.uid.find_iter(text) {
            position(&mut self.uids, found.as_str());
        }
        self.text(text)
    }

    /// Words with roles in place of what differs.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, role) in &self.generated {
            text = text.replace(name, role);
        }
        let text = self.uid.replace_all(&text, |found: &Captures<'_>| {
            let known = self.uids.iter().position(|uid| *uid == found[0]);
            known.map_or_else(|| found[0].to_owned(), |position| format!("<uid {position}>"))
        });
        let text = self.time.replace_all(&text, |found: &Captures<'_>| {
            let recent = found[0].parse::<Timestamp>().is_ok_and(|time| {
                let apart = time.duration_since(self.started).abs();
                apart < SignedDuration::from_hours(24)
            });
            let digits = found.get(1).map_or(0, |fraction| fraction.len());
            if recent { format!("<time .{digits}>") } else { found[0].to_owned() }
        });
        let text = self.revision_in_words.replace_all(&text, |found: &Captures<'_>| {
            let second = if found.get(2).is_some() { " (<revision>)" } else { "" };
            format!("{}<revision>{second}", &found[1])
        });
        let text = self.token.replace_all(&text, "<token>");
        let text = self.token_volume.replace_all(&text, "kube-api-access-<5 letters>");
        let text = self.refused_name.replace_all(&text, "g-<5 letters>");
        self.address.replace_all(&text, "<address>").into_owned()
    }
}

/// Bookmarks come when the server likes, except the one that ends the initial events.
fn shown(item: &Value) -> bool {
    // Groups of custom resources that other tests have defined come and go.
    let name = item["name"].as_str().filter(|_| item.get("preferredVersion").is_some());
    if name.is_some_and(|name| name.contains('.') && !name.ends_with(".k8s.io")) {
        return false;
    }
    item["type"] != "BOOKMARK"
        || item.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_some()
}

/// Which fields are refused and why must be equal; in which order they are found, and whether the
/// same one is found twice, need not. The message of several is made of them.
fn sort_causes(status: &mut Map<String, Value>) {
    let causes = status.get_mut("details").and_then(|details| details.get_mut("causes"));
    let Some(Value::Array(causes)) = causes else { return };
    if causes.len() > 1 {
        causes.sort_by_key(|cause| {
            ["field", "message", "reason"].map(|name| cause[name].to_string())
        });
        causes.dedup();
        let many = causes.len() > 1;
        if let (true, Some(message)) = (many, status.get("message").and_then(Value::as_str))
            && let Some((head, _)) = message.split_once('[')
        {
            let head = format!("{head}[<causes>]");
            status.insert("message".to_owned(), head.into());
        }
    }
}

/// The same of what an apply finds in its patch, which is told in lines: fields are looked at in a random
/// order there.
fn sort_errors(status: &mut Map<String, Value>) {
    let Some(Value::String(message)) = status.get_mut("message") else { return };
    if let Some((head, errors)) = message.split_once(": errors:\n  ") {
        let mut errors: Vec<&str> = errors.split("\n  ").collect();
        errors.sort_unstable();
        *message = format!("{head}: errors:\n  {}", errors.join("\n  "));
    }
}

/// The revision of a list is that of the whole server, where others write as well.
fn hide(object: &mut Map<String, Value>) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    for name in ["resourceVersion", "continue"] {
        if metadata.get(name).is_some_and(Value::is_string) {
            metadata.insert(name.to_owned(), format!("<{name}>").into());
        }
    }
}

fn position(known: &mut Vec<String>, value: &str) -> usize {
    known.iter().position(|other| other == value).unwrap_or_else(|| {
        known.push(value.to_owned());
        known.len() - 1
    })
}
