//! The objects that every cluster begins with, as texts that are finished but for what is new at every
//! start: uids, times, revisions, and the range of Services. A server that begins with nothing keeps
//! them as they are; it never completes, checks or encodes one of them.
//!
//! `data/bootstrap.txt` holds them. `computed` says what they have to be.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::api_services;
use crate::kinds::Kind;
use crate::server::AddressRange;
use crate::store::{Finished, Key, Pairs};

/// A line per object, in the order they are made, with tabs between what [`Text`] holds.
const LINES: &str = include_str!("../../data/bootstrap.txt");

/// All of them.
pub(super) static TEXTS: LazyLock<Vec<Text>> =
    LazyLock::new(|| LINES.lines().filter_map(Text::read).collect());

/// What begins a place for something that is new.
const PLACE: char = '$';

/// An object with places for what is new.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) resource: &'static str,
    namespace: &'static str,
    name: &'static str,
    api_version: &'static str,
    /// `name=value`, with commas between them.
    labels: &'static str,
    /// The same of what field selectors can ask for.
    fields: &'static str,
    /// As it is stored.
    body: &'static str,
}

/// What is new at a start.
pub(super) struct News<'a> {
    pub(super) now: &'a str,
    pub(super) range: AddressRange,
}

impl Text {
    fn read(line: &'static str) -> Option<Self> {
        let mut parts = line.splitn(7, '\t');
        let mut next = || parts.next();
        Some(Self {
            resource: next()?,
            namespace: next()?,
            name: next()?,
            api_version: next()?,
            labels: next()?,
            fields: next()?,
            body: next()?,
        })
    }

    /// The object of this start, with that uid.
    pub(super) fn finish(&self, uid: &str, news: &News<'_>) -> Finished {
        let filled = |text: &str| news.fill(text, uid);
        let (before, after) = self.body.split_once("$revision").unwrap_or((self.body, ""));
        Finished {
            resource: self.resource,
            key: Key::new(self.namespace, filled(self.name)),
            api_version: self.api_version,
            labels: pairs(self.labels),
            fields: pairs(&filled(self.fields)),
            text: [filled(before), filled(after)],
        }
    }

    /// What the object shall say, whoever owns it and whenever it was made.
    pub(super) fn value(&self) -> Value {
        // The texts are generated and checked: they are always readable.
        let mut value: Value = serde_json::from_str(self.body).unwrap_or_default();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for new in ["uid", "creationTimestamp", "resourceVersion", "managedFields"] {
                metadata.shift_remove(new);
            }
        }
        value
    }

    pub(super) fn kind(&self) -> Option<&'static Arc<Kind>> {
        crate::kinds::builtin().iter().find(|kind| kind.is(self.resource))
    }

    pub(super) fn is_role_or_binding(&self) -> bool {
        self.resource.ends_with(".rbac.authorization.k8s.io")
    }

    pub(super) fn is_of_flow_control(&self) -> bool {
        self.resource.ends_with(".flowcontrol.apiserver.k8s.io")
    }

    pub(super) fn is_api_service(&self) -> bool {
        self.resource == api_services::RESOURCE
    }
}

impl News<'_> {
    /// The text with everything in its place.
    fn fill(&self, text: &str, uid: &str) -> String {
        let mut pieces = text.split(PLACE);
        let mut filled = String::with_capacity(text.len() + 64);
        filled.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let rest = if let Some(rest) = piece.strip_prefix("uid") {
                filled.push_str(uid);
                rest
            } else if let Some(rest) = piece.strip_prefix("now") {
                filled.push_str(self.now);
                rest
            } else if let Some(rest) = piece.strip_prefix("today") {
                filled.push_str(self.now.split('T').next().unwrap_or_default());
                rest
            } else if let Some(rest) = piece.strip_prefix("address") {
                filled.push_str(&self.range.first().to_string());
                rest
            } else if let Some(rest) = piece.strip_prefix("range") {
                filled.push_str(&self.range.to_string());
                rest
            } else {
                piece
            };
            filled.push_str(rest);
        }
        filled
    }
}

fn pairs(text: &str) -> Pairs {
    text.split(',').filter_map(|pair| pair.split_once('=')).collect()
}
