//! `PodSecurity`: the level a namespace asks for by its labels. Pods that break it are refused or
//! warned about, workloads whose Pods would break it are warned about.

mod checks;

use serde_json::Value;

use super::{Operation, Review};
use crate::registry::metadata;
use crate::status::Status;

use checks::{Level, violations};

pub(super) fn check(review: &Review<'_>) -> Result<(), Status> {
    if review.operation == Operation::Delete || review.namespace.is_empty() {
        return Ok(());
    }
    let Some(template) = review.kind.strategy.template else { return Ok(()) };
    if !matches!(review.subresource, "" | "ephemeralcontainers") {
        return Ok(());
    }
    let is_pod = template.is_empty();
    let Some(namespace) = review.writer.registry.peek("namespaces", "", review.namespace) else {
        return Ok(());
    };
    let policy = |mode: &str| Wanted::read(&namespace, mode);
    let (enforced, warned) = (policy("enforce"), policy("warn"));
    if enforced.level == Level::Privileged && warned.level == Level::Privileged {
        return Ok(());
    }
    let nothing = Value::Null;
    let pod = review.object.pointer(template).unwrap_or(&nothing);
    if review.old.is_some_and(|old| is_pod && old.get("spec") == pod.get("spec")) {
        return Ok(());
    }
    if is_pod && let Some(broken) = violations(enforced.level, pod) {
        let words = format!("violates PodSecurity {:?}: {broken}", enforced.words);
        return Err(review.forbid(&words));
    }
    if let Some(broken) = violations(warned.level, pod) {
        let words = format!("would violate PodSecurity {:?}: {broken}", warned.words);
        review.wish.inquiry().warn(words);
    }
    Ok(())
}

/// What a namespace asks for in one mode.
struct Wanted {
    level: Level,
    /// `restricted:latest`.
    words: String,
}

impl Wanted {
    fn read(namespace: &Value, mode: &str) -> Self {
        let labels = metadata::labels(namespace);
        let label = |name: String| labels.get(name.as_str()).copied();
        let level = label(format!("pod-security.kubernetes.io/{mode}")).unwrap_or("privileged");
        let version = label(format!("pod-security.kubernetes.io/{mode}-version"));
        Self {
            level: match level {
                "privileged" => Level::Privileged,
                "baseline" => Level::Baseline,
                _ => Level::Restricted,
            },
            words: format!("{level}:{}", version.unwrap_or("latest")),
        }
    }
}
