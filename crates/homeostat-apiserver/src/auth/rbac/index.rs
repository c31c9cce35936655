//! Roles and bindings, arranged by whom they are for: a decision is a look-up per name and group.
//!
//! Pure data: it is told what was written and what is gone, and never reads the store. What is only
//! noted is in here as soon as somebody asks, not before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::Value;

use super::Learned;
use super::rule::Rule;
use crate::auth::User;
use crate::auth::user::service_account_name;
use crate::store::{Key, Stored};

/// Somebody that bindings name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    User(String),
    Group(String),
}

/// A (Cluster)RoleBinding.
#[derive(Debug)]
pub(crate) struct Binding {
    /// The kind and name of the role.
    role: (String, String),
    /// Each subject, with how it is described to people.
    subjects: Vec<(Subject, String)>,
}

/// The rules of a (Cluster)Role.
pub(super) fn rules(role: &Value) -> Arc<[Rule]> {
    let rules = role.get("rules").and_then(Value::as_array).into_iter().flatten();
    rules.filter_map(|rule| Rule::deserialize(rule).ok()).collect()
}

impl Binding {
    /// What a (Cluster)RoleBinding in that namespace says.
    pub(super) fn read(namespace: &str, binding: &Value) -> Self {
        let text =
            |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let subjects = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
        let subjects: Vec<_> = subjects
            .filter_map(|subject| {
                let (kind, name) = (text(subject, "kind"), text(subject, "name"));
                match kind.as_str() {
                    "User" => Some((Subject::User(name.clone()), format!("{kind} {name:?}"))),
                    "Group" => Some((Subject::Group(name.clone()), format!("{kind} {name:?}"))),
                    "ServiceAccount" => {
                        let given = text(subject, "namespace");
                        let namespace = if given.is_empty() { namespace.to_owned() } else { given };
                        let words = format!("{kind} {:?}", format!("{name}/{namespace}"));
                        let user = service_account_name(&namespace, &name);
                        (!namespace.is_empty()).then_some((Subject::User(user), words))
                    }
                    _ => None,
                }
            })
            .collect();
        let role = &binding["roleRef"];
        let role = (text(role, "kind"), text(role, "name"));
        Self { role, subjects }
    }
}

/// A rule's role as it reaches a user.
pub(super) struct Grant<'a> {
    key: &'a Key,
    binding: &'a Binding,
    subject: &'a str,
    /// The rules, or why there are none.
    pub(super) rules: Result<Arc<[Rule]>, String>,
}

impl Grant<'_> {
    /// How the user comes to these rules.
    pub(super) fn describe(&self) -> String {
        let Key { namespace, name } = self.key;
        let binding = if namespace.is_empty() {
            format!("ClusterRoleBinding {name:?}")
        } else {
            format!("RoleBinding {:?}", format!("{name}/{namespace}"))
        };
        let (kind, role) = &self.binding.role;
        format!("{binding} of {kind} {role:?} to {}", self.subject)
    }
}

/// All roles and bindings; those of the cluster have no namespace.
#[derive(Debug, Default)]
pub(super) struct Index {
    roles: BTreeMap<Key, Arc<[Rule]>>,
    bindings: BTreeMap<Key, Binding>,
    by_subject: BTreeMap<Subject, BTreeSet<Key>>,
    /// What was noted and not read yet, with its resource.
    unread: Vec<(&'static str, Arc<Stored>)>,
}

impl Index {
    /// Notes an object to be read before anything else happens.
    pub(super) fn note(&mut self, resource: &'static str, stored: Arc<Stored>) {
        self.unread.push((resource, stored));
    }

    pub(super) fn is_up_to_date(&self) -> bool {
        self.unread.is_empty()
    }

    /// What was noted, for whoever reads it now.
    pub(super) fn take_unread(&mut self) -> Vec<(&'static str, Arc<Stored>)> {
        std::mem::take(&mut self.unread)
    }

    /// Takes in what a role or a binding says.
    pub(super) fn put(&mut self, key: &Key, learned: Learned) {
        match learned {
            Learned::Role(rules) => {
                self.roles.insert(key.clone(), rules);
            }
            Learned::Binding(binding) => self.put_binding(key, binding),
        }
    }

    pub(super) fn remove_role(&mut self, key: &Key) {
        self.roles.remove(key);
    }

    fn put_binding(&mut self, key: &Key, binding: Binding) {
        self.remove_binding(key);
        for (subject, _) in &binding.subjects {
            self.by_subject.entry(subject.clone()).or_default().insert(key.clone());
        }
        self.bindings.insert(key.clone(), binding);
    }

    pub(super) fn remove_binding(&mut self, key: &Key) {
        let Some(binding) = self.bindings.remove(key) else { return };
        for (subject, _) in binding.subjects {
            if let Some(keys) = self.by_subject.get_mut(&subject) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_subject.remove(&subject);
                }
            }
        }
    }

    /// What the bindings of the cluster give a user, then what those of the namespace do.
    pub(super) fn grants<'a>(
        &'a self,
        user: &User,
        namespace: &str,
    ) -> impl Iterator<Item = Grant<'a>> {
        let name = std::iter::once(Subject::User(user.name.clone()));
        let groups = user.groups.iter().cloned().map(Subject::Group);
        let subjects: Vec<Subject> = name.chain(groups).collect();
        let scopes = if namespace.is_empty() { vec![""] } else { vec!["", namespace] };
        let mut found: Vec<&Key> = Vec::new();
        for scope in scopes {
            let first = Key::new(scope, "");
            let keys: BTreeSet<&Key> = subjects
                .iter()
                .filter_map(|subject| self.by_subject.get(subject))
                .flat_map(|keys| {
                    keys.range(first.clone()..).take_while(|key| key.namespace == scope)
                })
                .collect();
            found.extend(keys);
        }
        found.into_iter().filter_map(move |key| {
            let binding = self.bindings.get(key)?;
            let mut named = binding.subjects.iter();
            let (_, subject) = named.find(|(subject, _)| subjects.contains(subject))?;
            let rules = self.rules(&binding.role.0, &binding.role.1, &key.namespace);
            Some(Grant { key, binding, subject, rules })
        })
    }

    /// The rules of a role, by the reference of a binding in that namespace.
    pub(super) fn rules(
        &self,
        kind: &str,
        name: &str,
        namespace: &str,
    ) -> Result<Arc<[Rule]>, String> {
        let (scope, resource) = match kind {
            "ClusterRole" => ("", "clusterrole"),
            "Role" => (namespace, "role"),
            other => return Err(format!("unsupported role reference kind: {other:?}")),
        };
        let found = self.roles.get(&Key::new(scope, name)).cloned();
        found.ok_or_else(|| format!("{resource}.rbac.authorization.k8s.io {name:?} not found"))
    }
}
