//! Which flow a request belongs to: the first FlowSchema that speaks of it, and the level it leads to.
//!
//! Requests are told apart as kube-apiserver does, and answers say which schema it was; nobody waits
//! in a queue here.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::HeaderValue;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Registry;
use crate::auth::{Attributes, User};
use crate::store::{Key, Stored};

const SCHEMAS: &str = "flowschemas.flowcontrol.apiserver.k8s.io";
const LEVELS: &str = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io";
/// What is last, whatever it says of itself.
const CATCH_ALL: &str = "catch-all";

/// The uids of a FlowSchema and of its level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) schema: HeaderValue,
    pub(crate) level: HeaderValue,
}

/// The schemas in the order in which they are asked; `None` when they have to be read again.
#[derive(Debug, Default)]
pub(super) struct Flows(Mutex<Option<Arc<Vec<Schema>>>>);

#[derive(Debug)]
struct Schema {
    flow: Flow,
    is_last_resort: bool,
    /// The rules as they are written; read when a request comes so far. Those of admins end at the
    /// first schema of all.
    written: Box<RawValue>,
    rules: OnceLock<Vec<Value>>,
}

impl Schema {
    fn rules(&self) -> &[Value] {
        self.rules.get_or_init(|| serde_json::from_str(self.written.get()).unwrap_or_default())
    }
}

/// What tells schemas apart; nothing else of the stored object is read.
#[derive(Deserialize)]
struct Written {
    metadata: Named,
    spec: Spec,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    uid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    matching_precedence: i64,
    priority_level_configuration: Level,
    #[serde(default)]
    rules: Box<RawValue>,
}

#[derive(Deserialize)]
struct Level {
    name: String,
}

impl Registry {
    /// The schemas, or their levels, have changed: they are read again.
    pub(crate) fn forget_flows(&self) {
        *self.flows.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The flow of a request of that user; `wanted` is asked for only where it matters.
    pub(crate) fn flow(&self, user: &User, wanted: impl Fn() -> Attributes) -> Option<Flow> {
        let schemas = self.schemas();
        let mut attributes = None;
        let found = schemas.iter().find(|schema| {
            schema.rules().iter().any(|rule| {
                let subjects = list(rule, "subjects");
                subjects.iter().any(|subject| is_subject(subject, user))
                    && speaks_of(rule, attributes.get_or_insert_with(&wanted))
            })
        });
        let last = || schemas.iter().find(|schema| schema.is_last_resort);
        found.or_else(last).map(|schema| schema.flow.clone())
    }

    fn schemas(&self) -> Arc<Vec<Schema>> {
        let mut known = self.flows.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_with(|| Arc::new(self.read_schemas())).clone()
    }

    fn read_schemas(&self) -> Vec<Schema> {
        let snapshot = self.store.newest();
        let read = |stored: &Arc<Stored>| serde_json::from_slice(&stored.body).ok();
        let mut all: Vec<Written> = snapshot.objects(SCHEMAS).filter_map(read).collect();
        all.sort_by(|one, two| {
            let place = |it: &Written| it.spec.matching_precedence;
            place(one).cmp(&place(two)).then_with(|| one.metadata.name.cmp(&two.metadata.name))
        });
        let asked = |Written { metadata, spec }: Written| {
            // One that leads nowhere is not asked.
            let level = Key::new("", spec.priority_level_configuration.name);
            let level = snapshot.get(LEVELS, &level)?;
            let uid = |uid: &str| HeaderValue::from_str(uid).ok();
            Some(Schema {
                flow: Flow { schema: uid(&metadata.uid)?, level: uid(&level.uid())? },
                is_last_resort: metadata.name == CATCH_ALL,
                written: spec.rules,
                rules: OnceLock::new(),
            })
        };
        all.into_iter().filter_map(asked).collect()
    }
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn is_subject(subject: &Value, user: &User) -> bool {
    let text = |part: &str, field: &str| {
        let value = subject.get(part).and_then(|part| part.get(field));
        value.and_then(Value::as_str).unwrap_or("")
    };
    match subject.get("kind").and_then(Value::as_str).unwrap_or("") {
        "User" => {
            let name = text("user", "name");
            name == "*" || name == user.name
        }
        "Group" => {
            let name = text("group", "name");
            name == "*" || user.groups.iter().any(|group| group == name)
        }
        "ServiceAccount" => {
            let of = |field| text("serviceAccount", field);
            let (space, name) = (of("namespace"), of("name"));
            let account = user.name.strip_prefix("system:serviceaccount:");
            account
                .and_then(|account| account.split_once(':'))
                .is_some_and(|(own, account)| own == space && (name == "*" || name == account))
        }
        _ => false,
    }
}

/// Whether one of the rules is about what a request wants.
fn speaks_of(rule: &Value, wanted: &Attributes) -> bool {
    let has = |rule: &Value, field: &str, word: &str| {
        let words = list(rule, field);
        matches!(words, [only] if only == "*") || words.iter().any(|known| known == word)
    };
    if !wanted.path.is_empty() {
        return list(rule, "nonResourceRules").iter().any(|rule| {
            has(rule, "verbs", &wanted.verb)
                && list(rule, "nonResourceURLs").iter().any(|path| leads_to(path, &wanted.path))
        });
    }
    list(rule, "resourceRules").iter().any(|rule| {
        has(rule, "verbs", &wanted.verb)
            && has(rule, "resources", &wanted.whole_resource())
            && has(rule, "apiGroups", &wanted.group)
            && if wanted.namespace.is_empty() {
                rule.get("clusterScope") == Some(&Value::Bool(true))
            } else {
                has(rule, "namespaces", &wanted.namespace)
            }
    })
}

fn leads_to(rule: &Value, path: &str) -> bool {
    let rule = rule.as_str().unwrap_or_default();
    if rule == "*" || rule == path {
        return true;
    }
    let prefix = rule.strip_suffix('*').unwrap_or(rule);
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
}
