//! Who may do what, by roles and bindings.
//!
//! The index follows the store commit by commit, under the pen: a rule holds for the first request
//! after the write that made it. Members of `system:masters` never get this far.

mod escalation;
mod index;
mod rule;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;

pub(crate) use escalation::RoleWrite;
use index::{Binding, Index};
pub(crate) use rule::{Rule, quoted};

use super::User;
use super::attributes::Attributes;
use crate::store::{Key, Store, Stored};

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

/// What a role or a binding says.
#[derive(Debug)]
pub(crate) enum Learned {
    Role(Arc<[Rule]>),
    Binding(Binding),
}

/// The rules of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Rbac(RwLock<Index>);

impl Rbac {
    /// Learns what the store holds already.
    pub(crate) fn load(&self, store: &Store) {
        let snapshot = store.newest();
        for resource in ROLES.iter().chain(&BINDINGS) {
            snapshot.objects(resource).for_each(|stored| self.note(resource, stored));
        }
    }

    /// An object of any resource is there that will be read when somebody asks what it says: a server
    /// begins with more than a hundred of them, and often nobody asks but admins.
    pub(crate) fn note(&self, resource: &str, stored: &Arc<Stored>) {
        let known = ROLES.iter().chain(&BINDINGS).find(|known| **known == resource);
        if let Some(resource) = known {
            self.0.write().unwrap_or_else(PoisonError::into_inner).note(resource, stored.clone());
        }
    }

    /// What an object of any resource says about who may do what; nothing for most.
    pub(crate) fn read(resource: &str, key: &Key, object: &Value) -> Option<Learned> {
        if ROLES.contains(&resource) {
            Some(Learned::Role(index::rules(object)))
        } else if BINDINGS.contains(&resource) {
            Some(Learned::Binding(Binding::read(&key.namespace, object)))
        } else {
            None
        }
    }

    /// An object that says this was committed.
    pub(crate) fn learn(&self, key: &Key, learned: Learned) {
        self.index_mut().put(key, learned);
    }

    /// An object of any resource is gone.
    pub(crate) fn removed(&self, resource: &str, key: &Key) {
        if ROLES.contains(&resource) {
            self.index_mut().remove_role(key);
        } else if BINDINGS.contains(&resource) {
            self.index_mut().remove_binding(key);
        }
    }

    /// Whether the user may.
    pub(crate) fn authorize(&self, user: &User, wanted: &Attributes) -> Decision {
        if user.is_master() {
            return Decision { allowed: true, reason: String::new() };
        }
        let index = self.index();
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
        let index = self.index();
        let (mut rules, mut problems) = (Vec::new(), Vec::new());
        for grant in index.grants(user, namespace) {
            match grant.rules {
                Ok(granted) => rules.extend(granted.iter().cloned()),
                Err(problem) => problems.push(problem),
            }
        }
        (rules, aggregate(problems))
    }

    fn index(&self) -> RwLockReadGuard<'_, Index> {
        let index = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if index.is_up_to_date() {
            return index;
        }
        drop(index);
        drop(self.index_mut());
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        let mut index = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (resource, stored) in index.take_unread() {
            let learned = Self::read(resource, &stored.key, &stored.value());
            if let Some(learned) = learned {
                index.put(&stored.key, learned);
            }
        }
        index
    }
}

/// What one role allows and another does not, thing by thing.
pub(crate) fn missing_rules(held: &Value, wanted: &Value) -> Vec<Rule> {
    rule::missing(&index::rules(held), &index::rules(wanted))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::transient;

    #[test]
    fn what_is_noted_holds_when_somebody_asks_and_gives_way_to_what_is_written_later() {
        let rbac = Rbac::default();
        let note = |resource: &str, name: &str, object: &Value| {
            rbac.note(resource, &Arc::new(transient(&Key::new("", name), object)));
        };
        let role = |verb: &str| json!({"rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}]});
        note(ROLES[0], "reader", &role("get"));
        let binding = json!({
            "roleRef": {"kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "User", "name": "ann"}],
        });
        note(BINDINGS[0], "readers", &binding);
        note("pods", "no-role", &json!({}));
        let may = |verb: &str| {
            let (verb, resource) = (verb.to_owned(), "pods".to_owned());
            let wanted = Attributes { verb, resource, ..Attributes::default() };
            rbac.authorize(&User::new("ann", [] as [&str; 0]), &wanted).allowed
        };
        assert!(may("get") && !may("list"));
        note(ROLES[0], "reader", &role("get"));
        let key = Key::new("", "reader");
        let written = Rbac::read(ROLES[0], &key, &role("list"));
        rbac.learn(&key, written.unwrap());
        assert!(may("list") && !may("get"));
        note(ROLES[0], "reader", &role("get"));
        rbac.removed(ROLES[0], &key);
        assert!(!may("list") && !may("get"));
    }
}
