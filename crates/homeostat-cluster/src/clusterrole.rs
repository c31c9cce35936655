//! Aggregated ClusterRoles: the rules of those that a role's selectors match are its own.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Key, Kind, Outcome, Result};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use serde_json::json;

use crate::{selector, write};

const MANAGER: &str = "clusterrole-aggregation-controller";

/// The roles that gather.
type Gathering = Arc<Mutex<BTreeSet<Key>>>;

/// The controller.
pub(crate) fn controller() -> Controller<ClusterRole> {
    let gathering = Gathering::default();
    let all = Arc::clone(&gathering);
    Controller::new(move |role, ctx| reconcile(role, ctx, Arc::clone(&gathering)))
        .named(MANAGER)
        .watches::<ClusterRole>(move |_| {
        all.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    })
}

async fn reconcile(
    role: Arc<ClusterRole>,
    ctx: Context<ClusterRole>,
    gathering: Gathering,
) -> Result<Outcome> {
    let gathers = role.aggregation_rule.is_some() && role.metadata.deletion_timestamp.is_none();
    {
        let mut gathering = gathering.lock().unwrap_or_else(PoisonError::into_inner);
        // Noted before looking: a role that appears in between wakes this one again.
        if gathers {
            gathering.insert(ctx.key().clone())
        } else {
            gathering.remove(ctx.key())
        };
    }
    if !gathers {
        return Ok(Outcome::Done);
    }
    let mut roles = ctx.list_in::<ClusterRole>(None, "").await?;
    roles.sort_by_key(|role| role.name_any());
    let rules = gathered(&role, &roles);
    if rules == role.rules.clone().unwrap_or_default() {
        return Ok(Outcome::Done);
    }
    let body = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": role.name_any(), "uid": role.uid()},
        "rules": rules,
    });
    let kind = Kind::of::<ClusterRole>();
    write::apply_by_uid(ctx.client(), &kind, ctx.key(), None, MANAGER, &body).await?;
    Ok(Outcome::Done)
}

/// The rules of all roles that the role selects, selector by selector, each rule once.
fn gathered(role: &ClusterRole, roles: &[Arc<ClusterRole>]) -> Vec<PolicyRule> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    let aggregation = role.aggregation_rule.as_ref();
    let selectors = aggregation.and_then(|rule| rule.cluster_role_selectors.as_ref());
    for wanted in selectors.into_iter().flatten() {
        let others = roles.iter().filter(|other| other.metadata.name != role.metadata.name);
        let selected =
            others.filter(|other| selector::matches(wanted, other.metadata.labels.as_ref()));
        for rule in selected.flat_map(|other| other.rules.iter().flatten()) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    rules
}
