//! DaemonSets: an annotation counts the versions of the template, as it did before `generation`. Clients
//! may write it and own it then, if it is a number, but what it says is up to the server.

use std::num::IntErrorKind;

use serde_json::Value;

use super::{Hooks, NONE};
use crate::registry::metadata;

/// The annotation.
pub(crate) const TEMPLATE_COUNT: &str = "deprecated.daemonset.template.generation";

pub(super) const HOOKS: Hooks = Hooks {
    read: |object| match text(object).map(str::parse::<i64>) {
        None | Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(unreadable(object, error.kind())),
    },
    complete: |_, object| set(object, count(object)),
    create: |_, _, object| {
        set(object, count(object).max(1));
        Ok(())
    },
    update: |_, _, live, object| {
        let same = live.pointer("/spec/template") == object.pointer("/spec/template");
        set(object, count(live) + i64::from(!same));
        Ok(())
    },
    part: |_, _, live, object| set(object, count(live)),
    ..NONE
};

/// What the annotation says.
fn text(object: &Value) -> Option<&str> {
    object.pointer("/metadata/annotations")?.get(TEMPLATE_COUNT)?.as_str()
}

/// How many versions the annotation counts.
fn count(object: &Value) -> i64 {
    text(object).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn unreadable(object: &Value, why: &IntErrorKind) -> String {
    let why = match why {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.ParseInt: parsing {:?}: {why}", text(object).unwrap_or_default())
}

fn set(object: &mut Value, count: i64) {
    metadata::set_annotation(object, TEMPLATE_COUNT, &count.to_string());
}
