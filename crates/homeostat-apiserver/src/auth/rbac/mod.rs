//! Who may do what, by roles and bindings.
//!
//! The index follows the store commit by commit, under the pen: a rule holds for the first request
//! after the write that made it. Members of `system:masters` never get this far.

mod escalation;
mod index;
mod rule;

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use serde_json::Value;

pub(crate) use escalation::RoleWrite;
use index::Index;
pub(crate) use rule::{Rule, quoted};

use super::User;
use super::attributes::Attributes;
use crate::store::{Key, Range, Store};

const GROUP: &str = "rbac.authorization.k8s.io";
const ROLES: [&str; 2] =
    ["clusterroles.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io"];
const BINDINGS: [&str; 2] =
    ["clusterrolebindings.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"];

/// What the rules say to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// The rule that allows it, or what kept one from being found; often empty.
    pub(crate) reason: String,
}

/// The rules of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Rbac(RwLock<Index>);

impl Rbac {
    /// Learns what the store holds already.
    pub(crate) fn load(&self, store: &Store) {
        for resource in ROLES.iter().chain(&BINDINGS) {
            let page = store.list(resource, &Range::default());
            for stored in page.map(|page| page.items).unwrap_or_default() {
                self.written(resource, &stored.key, &stored.value());
            }
        }
    }

    /// Whether writes to that group change what somebody may do.
    pub(crate) fn concerns(group: &str) -> bool {
        group == GROUP
    }

    /// An object of any resource was committed.
    pub(crate) fn written(&self, resource: &str, key: &Key, object: &Value) {
        if ROLES.contains(&resource) {
            self.write().put_role(key, object);
        } else if BINDINGS.contains(&resource) {
            self.write().put_binding(key, object);
        }
    }

    /// An object of any resource is gone.
    pub(crate) fn removed(&self, resource: &str, key: &Key) {
        if ROLES.contains(&resource) {
            self.write().remove_role(key);
        } else if BINDINGS.contains(&resource) {
            self.write().remove_binding(key);
        }
    }

    /// Whether the user may.
    pub(crate) fn authorize(&self, user: &User, wanted: &Attributes) -> Decision {
        if user.is_master() {
            return Decision { allowed: true, reason: String::new() };
        }
        let index = self.read();
        let mut problems = Vec::new();
        for grant in index.grants(user, &wanted.namespace) {
            match &grant.rules {
                Ok(rules) if rules.iter().any(|rule| rule.allows(wanted)) => {
                    let reason = format!("RBAC: allowed by {}", grant.describe());
                    return Decision { allowed: true, reason };
                }
                Ok(_) => {}
                Err(problem) => problems.push(problem.clone()),
            }
        }
        let reason = match &aggregate(problems)[..] {
            "" => String::new(),
            problems => format!("RBAC: {problems}"),
        };
        Decision { allowed: false, reason }
    }

    /// Every rule that applies to the user there, and what kept others from being found.
    pub(crate) fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Rule>, String) {
        let index = self.read();
        let (mut rules, mut problems) = (Vec::new(), Vec::new());
        for grant in index.grants(user, namespace) {
            match grant.rules {
                Ok(granted) => rules.extend(granted.iter().cloned()),
                Err(problem) => problems.push(problem),
            }
        }
        (rules, aggregate(problems))
    }

    fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Index> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Several problems in one line, each once.
fn aggregate(mut problems: Vec<String>) -> String {
    let mut seen = std::collections::BTreeSet::new();
    problems.retain(|problem| seen.insert(problem.clone()));
    match &problems[..] {
        [] => String::new(),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
