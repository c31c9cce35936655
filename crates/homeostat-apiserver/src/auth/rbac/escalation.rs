//! Nobody gives away more than they have: writes of roles and bindings by those who are not admins.

use serde_json::{Value, json};

use super::rule::{Rule, describe, missing, quoted};
use super::{Attributes, GROUP, Rbac};
use crate::auth::User;
use crate::kinds::Kind;
use crate::registry::metadata;
use crate::status::Status;

/// A write of a role or binding.
pub(crate) struct RoleWrite<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) namespace: &'a str,
    /// The name in the URL; a create has none.
    pub(crate) name: &'a str,
    pub(crate) old: Option<&'a Value>,
    pub(crate) new: &'a Value,
}

impl Rbac {
    /// Refuses a write that grants what the writer does not have.
    pub(crate) fn check_grant(&self, user: &User, write: &RoleWrite<'_>) -> Result<(), Status> {
        if write.kind.group != GROUP || user.is_master() || write.only_collectable() {
            return Ok(());
        }
        match write.kind.plural.as_str() {
            "roles" | "clusterroles" => self.check_role(user, write),
            "rolebindings" | "clusterrolebindings" => self.check_binding(user, write),
            _ => Ok(()),
        }
    }

    fn check_role(&self, user: &User, write: &RoleWrite<'_>) -> Result<(), Status> {
        let escalate = Attributes {
            verb: "escalate".to_owned(),
            group: GROUP.to_owned(),
            resource: write.kind.plural.clone(),
            namespace: write.namespace.to_owned(),
            name: write.name.to_owned(),
            ..Attributes::default()
        };
        if self.authorize(user, &escalate).allowed {
            return Ok(());
        }
        let rules = write.new.get("rules").cloned().unwrap_or_default();
        let rules: Vec<Rule> = serde_json::from_value(rules).unwrap_or_default();
        self.confirm(user, write, &rules)?;
        let aggregates = |role: &Value| {
            let selectors = role.pointer("/aggregationRule/clusterRoleSelectors");
            selectors.and_then(Value::as_array).is_some_and(|selectors| !selectors.is_empty())
        };
        let concerned = aggregates(write.new) || write.old.is_some_and(aggregates);
        if concerned && self.confirm(user, write, &everything()).is_err() {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(Status::forbidden(write.kind, metadata::name(write.new), why));
        }
        Ok(())
    }

    fn check_binding(&self, user: &User, write: &RoleWrite<'_>) -> Result<(), Status> {
        let role = &write.new["roleRef"];
        let text = |field: &str| role[field].as_str().unwrap_or_default();
        let (kind, name) = (text("kind"), text("name"));
        let resource = match kind {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            _ => "",
        };
        let bind = Attributes {
            verb: "bind".to_owned(),
            group: text("apiGroup").to_owned(),
            resource: resource.to_owned(),
            namespace: write.namespace.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        if !resource.is_empty() && self.authorize(user, &bind).allowed {
            return Ok(());
        }
        let rules = self.index().rules(kind, name, write.namespace).map_err(|problem| {
            if resource.is_empty() {
                return Status::internal(problem);
            }
            let mut status = Status::new(404, "NotFound", problem);
            let kind = resource.trim_end_matches('s');
            status.details = Some(Box::new(json!({"name": name, "group": GROUP, "kind": kind})));
            status
        })?;
        self.confirm(user, write, &rules)
    }

    /// The writer must have all that the rules allow.
    fn confirm(&self, user: &User, write: &RoleWrite<'_>, rules: &[Rule]) -> Result<(), Status> {
        let (held, problems) = self.rules_for(user, write.namespace);
        let missing = missing(&held, rules);
        if missing.is_empty() {
            return Ok(());
        }
        let mut why = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            user.name,
            quoted(&user.groups),
            describe(&missing)
        );
        if !problems.is_empty() {
            why.push_str(&format!("; resolution errors: [{problems}]"));
        }
        Err(Status::forbidden(write.kind, metadata::name(write.new), &why))
    }
}

impl RoleWrite<'_> {
    /// Whether nothing changes but what garbage collection goes by.
    fn only_collectable(&self) -> bool {
        let Some(old) = self.old else { return false };
        let rest = |object: &Value| {
            let mut rest = object.clone();
            for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
                metadata::set(&mut rest, field, Value::Null);
            }
            rest
        };
        rest(old) == rest(self.new)
    }
}

/// All verbs on all resources and all paths.
fn everything() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    let resources = Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() };
    [resources, Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() }]
}
