//! What differs between two versions of an object, field by field: pure, bounded, and silent about
//! the contents of Secrets.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::kind::Kind;

/// So many fields are told of one object; the rest is left out.
const MOST_FIELDS: usize = 32;
/// A value is told up to this many characters.
const MOST_CHARACTERS: usize = 80;
/// Where notes about an object are.
const ANNOTATIONS: &str = "metadata.annotations";
/// Metadata that the server moves with every write.
const SERVERS: [&str; 4] = ["resourceVersion", "managedFields", "generation", "uid"];

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// Where it is: `spec.containers[0].image`, `metadata.labels['app.kubernetes.io/name']`.
    pub path: String,
    /// The value before, shortened; empty when there was none, `(hidden)` in a Secret.
    pub from: String,
    /// The value after, in the same way.
    pub to: String,
    /// The digests of both values, whole: equal values have equal ones.
    pub(crate) digests: (u64, u64),
}

/// `path: from → to`.
impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &str| if value.is_empty() { "(none)" } else { value }.to_owned();
        write!(f, "{}: {} → {}", self.path, shown(&self.from), shown(&self.to))
    }
}

/// The fields that differ between two versions as JSON text, those that the server keeps aside;
/// nothing when one of them cannot be read.
pub(crate) fn between(kind: &Kind, before: &[u8], after: &[u8]) -> Vec<FieldChange> {
    let parse = |text| serde_json::from_slice::<Value>(text);
    let (Ok(before), Ok(after)) = (parse(before), parse(after)) else { return Vec::new() };
    let secret = kind.group().is_empty() && kind.kind() == "Secret";
    let mut walk = Walk { path: String::new(), secret, found: Vec::new() };
    walk.compare(Some(&before), Some(&after));
    walk.found
}

struct Walk {
    path: String,
    secret: bool,
    found: Vec<FieldChange>,
}

impl Walk {
    fn compare(&mut self, before: Option<&Value>, after: Option<&Value>) {
        if before == after || self.found.len() >= MOST_FIELDS {
            return;
        }
        match (before, after) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                let gone = old.keys().filter(|field| !new.contains_key(*field));
                for field in new.keys().chain(gone) {
                    if self.path == "metadata" && SERVERS.contains(&field.as_str()) {
                        continue;
                    }
                    let step = step(&self.path, field);
                    self.within(&step, old.get(field), new.get(field));
                }
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) => {
                for index in 0..old.len().max(new.len()) {
                    self.within(&format!("[{index}]"), old.get(index), new.get(index));
                }
            }
            _ => {
                let change = FieldChange {
                    path: self.path.clone(),
                    from: self.show(before),
                    to: self.show(after),
                    digests: (digest(before), digest(after)),
                };
                self.found.push(change);
            }
        }
    }

    fn within(&mut self, step: &str, before: Option<&Value>, after: Option<&Value>) {
        let length = self.path.len();
        self.path.push_str(step);
        self.compare(before, after);
        self.path.truncate(length);
    }

    fn show(&self, value: Option<&Value>) -> String {
        let Some(value) = value else { return String::new() };
        // The labels of a Secret are no secret; its annotations may hold all of it, as kubectl's
        // last applied configuration does.
        let open = self.path.starts_with("metadata.") && !self.path.starts_with(ANNOTATIONS);
        if self.secret && !open {
            return "(hidden)".to_owned();
        }
        let text = value.to_string();
        match text.char_indices().nth(MOST_CHARACTERS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

fn step(path: &str, field: &str) -> String {
    let plain = field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match (plain, path.is_empty()) {
        (true, true) => field.to_owned(),
        (true, false) => format!(".{field}"),
        (false, _) => format!("['{field}']"),
    }
}

fn digest(value: Option<&Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.map(ToString::to_string).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(kind: &str, before: &Value, after: &Value) -> Vec<String> {
        let kind = Kind::new("", "v1", kind, "things", true);
        let (before, after) = (before.to_string(), after.to_string());
        let all = between(&kind, before.as_bytes(), after.as_bytes());
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn fields_are_named_by_their_path_and_what_the_server_keeps_is_left_out() {
        let before = json!({
            "metadata": { "resourceVersion": "1", "labels": { "a.b/c": "x" } },
            "spec": { "list": [1, 2], "gone": true },
        });
        let after = json!({
            "metadata": { "resourceVersion": "2", "labels": { "a.b/c": "y" } },
            "spec": { "list": [1, 3, 4] },
        });
        assert_eq!(
            told("Pod", &before, &after),
            [
                "metadata.labels['a.b/c']: \"x\" → \"y\"",
                "spec.list[1]: 2 → 3",
                "spec.list[2]: (none) → 4",
                "spec.gone: true → (none)",
            ]
        );
    }

    #[test]
    fn what_is_in_a_secret_is_never_told() {
        let (before, after) =
            (json!({ "data": { "k": "YQ==" } }), json!({ "data": { "k": "Yg==" } }));
        assert_eq!(told("Secret", &before, &after), ["data.k: (hidden) → (hidden)"]);
        assert_eq!(told("Secret", &json!({}), &after), ["data: (none) → (hidden)"]);
        let applied = |text: &str| {
            let note = json!({ "kubectl.kubernetes.io/last-applied-configuration": text });
            json!({ "metadata": { "labels": { "v": text }, "annotations": note } })
        };
        assert_eq!(
            told("Secret", &applied("YQ=="), &applied("Yg==")),
            [
                "metadata.labels.v: \"YQ==\" → \"Yg==\"",
                "metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']: \
                 (hidden) → (hidden)",
            ]
        );
    }

    #[test]
    fn a_large_change_is_told_in_part() {
        let many: Value = (0..100).map(|n| (format!("f{n}"), json!("x".repeat(500)))).collect();
        let all = told("Pod", &json!({ "data": {} }), &json!({ "data": many }));
        assert!(all.len() == MOST_FIELDS && all.iter().all(|line| line.chars().count() < 120));
    }
}
