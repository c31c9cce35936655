//! The levels of priority that every cluster has, and which requests belong to them.
//!
//! Clients read them and tools show them. This server answers requests in the order they come: it
//! never queues or refuses one by its level.

use serde_json::{Value, json};

use super::NAMESPACE_OF_THE_SYSTEM;

#[cfg(test)]
const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";

/// Who made them.
pub(super) const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
/// Who found the level of a schema.
pub(super) const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";

/// The one level that is not limited, and the schema that leads to it.
pub(super) const EXEMPT: &str = "exempt";

/// A level that is limited: its share, how much of it may be lent, and its queues with how many of
/// them a flow may use, if requests wait there at all.
struct Level(&'static str, u32, u32, Option<(u32, u32)>);

const LEVELS: &[Level] = &[
    Level("catch-all", 5, 0, None),
    Level("system", 30, 33, Some((64, 6))),
    Level("node-high", 40, 25, Some((64, 6))),
    Level("leader-election", 10, 0, Some((16, 4))),
    Level("workload-high", 40, 50, Some((128, 6))),
    Level("workload-low", 100, 90, Some((128, 6))),
    Level("global-default", 20, 50, Some((128, 6))),
];

/// Whose requests a schema is about.
enum Who {
    Groups(&'static [&'static str]),
    Users(&'static [&'static str]),
    /// The service accounts of the system, all of them.
    Accounts,
    /// What elects leaders.
    Electors,
}

/// Which of their requests.
enum What {
    Everything,
    Probes,
    Elections,
    /// What nodes tell of their health.
    Health,
}

/// Name, level, precedence and what makes the flows of a schema.
struct Schema(&'static str, &'static str, u32, Option<&'static str>, Who, What);

const BY_USER: Option<&str> = Some("ByUser");
const BY_NAMESPACE: Option<&str> = Some("ByNamespace");
const NODES: Who = Who::Groups(&["system:nodes"]);
const ACCOUNTS: Who = Who::Groups(&["system:serviceaccounts"]);
const MANAGER: &str = "system:kube-controller-manager";
const SCHEDULER: &str = "system:kube-scheduler";
const EVERYBODY: Who = Who::Groups(&["system:unauthenticated", "system:authenticated"]);

const SCHEMAS: &[Schema] = {
    use What::{Elections, Everything, Health, Probes};
    &[
        Schema(EXEMPT, EXEMPT, 1, None, Who::Groups(&["system:masters"]), Everything),
        Schema("probes", EXEMPT, 2, None, EVERYBODY, Probes),
        Schema("system-leader-election", "leader-election", 100, BY_USER, Who::Electors, Elections),
        Schema("system-node-high", "node-high", 400, BY_USER, NODES, Health),
        Schema("system-nodes", "system", 500, BY_USER, NODES, Everything),
        Schema(
            "kube-controller-manager",
            "workload-high",
            800,
            BY_NAMESPACE,
            Who::Users(&[MANAGER]),
            Everything,
        ),
        Schema(
            "kube-scheduler",
            "workload-high",
            800,
            BY_NAMESPACE,
            Who::Users(&[SCHEDULER]),
            Everything,
        ),
        Schema(
            "kube-system-service-accounts",
            "workload-high",
            900,
            BY_NAMESPACE,
            Who::Accounts,
            Everything,
        ),
        Schema("service-accounts", "workload-low", 9000, BY_USER, ACCOUNTS, Everything),
        Schema("global-default", "global-default", 9900, BY_USER, EVERYBODY, Everything),
        Schema("catch-all", "catch-all", 10000, BY_USER, EVERYBODY, Everything),
    ]
};

/// Whether it is one of them.
pub(super) fn is_one(resource: &str, name: &str) -> bool {
    match resource {
        "flowschemas.flowcontrol.apiserver.k8s.io" => SCHEMAS.iter().any(|schema| schema.0 == name),
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io" => {
            name == EXEMPT || LEVELS.iter().any(|level| level.0 == name)
        }
        _ => false,
    }
}

/// What an object of the name must say, if that is not for users to choose.
pub(crate) fn fixed(kind: &str, name: &str) -> Option<Value> {
    match (kind, name) {
        ("FlowSchema", EXEMPT | "catch-all") => {
            SCHEMAS.iter().find(|schema| schema.0 == name).map(flow)
        }
        ("PriorityLevelConfiguration", EXEMPT) => Some(exempt()),
        ("PriorityLevelConfiguration", "catch-all") => {
            LEVELS.iter().find(|level| level.0 == name).map(limited)
        }
        _ => None,
    }
}

fn exempt() -> Value {
    json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}})
}

/// All of them, without what is new at every start; the finished texts are made from it.
#[cfg(test)]
pub(super) fn objects() -> Vec<Value> {
    let levels = LEVELS.iter().map(|level| (level.0, limited(level)));
    let levels = levels.chain([(EXEMPT, exempt())]).map(|(name, spec)| {
        let kind = "PriorityLevelConfiguration";
        object(kind, name, &spec)
    });
    levels
        .chain(SCHEMAS.iter().map(|schema| object("FlowSchema", schema.0, &flow(schema))))
        .collect()
}

#[cfg(test)]
fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {
            "name": name,
            "generation": 1,
            "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"},
        },
        "spec": spec,
    })
}

fn limited(Level(_, share, lent, queues): &Level) -> Value {
    let response = match queues {
        None => json!({"type": "Reject"}),
        Some((queues, hand)) => json!({
            "type": "Queue",
            "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": 50},
        }),
    };
    json!({
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": share,
            "limitResponse": response,
            "lendablePercent": lent,
        },
    })
}

fn flow(Schema(_, level, precedence, by, who, what): &Schema) -> Value {
    let mut rule = json!({"subjects": subjects(who)});
    let (resources, paths) = rules(what);
    for (field, given) in [("resourceRules", resources), ("nonResourceRules", paths)] {
        if !given.is_null() {
            rule[field] = given;
        }
    }
    let mut spec = json!({
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
    });
    if let Some(by) = by {
        spec["distinguisherMethod"] = json!({"type": by});
    }
    spec["rules"] = json!([rule]);
    spec
}

fn subjects(who: &Who) -> Value {
    let users = |names: &[&str]| -> Vec<Value> {
        names.iter().map(|name| json!({"kind": "User", "user": {"name": name}})).collect()
    };
    let accounts = json!({
        "kind": "ServiceAccount",
        "serviceAccount": {"namespace": NAMESPACE_OF_THE_SYSTEM, "name": "*"},
    });
    match who {
        Who::Groups(names) => {
            names.iter().map(|name| json!({"kind": "Group", "group": {"name": name}})).collect()
        }
        Who::Users(names) => users(names).into(),
        Who::Accounts => json!([accounts]),
        Who::Electors => {
            let mut electors = users(&[MANAGER, SCHEDULER]);
            electors.push(accounts);
            electors.into()
        }
    }
}

/// What requests for resources there are, and what others.
fn rules(what: &What) -> (Value, Value) {
    let leases = |verbs: &[&str]| {
        json!({
            "verbs": verbs,
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "namespaces": ["*"],
        })
    };
    let whole = |group: &str, resources: &[&str]| {
        json!({
            "verbs": ["*"],
            "apiGroups": [group],
            "resources": resources,
            "clusterScope": true,
            "namespaces": ["*"],
        })
    };
    match what {
        What::Everything => {
            let paths = json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]);
            (json!([whole("*", &["*"])]), paths)
        }
        What::Probes => {
            let paths = ["/healthz", "/readyz", "/livez"];
            (Value::Null, json!([{"verbs": ["get"], "nonResourceURLs": paths}]))
        }
        What::Elections => (json!([leases(&["get", "create", "update"])]), Value::Null),
        What::Health => {
            (json!([whole("", &["nodes", "nodes/status"]), leases(&["*"])]), Value::Null)
        }
    }
}

/// What is said about the level that a schema leads to.
pub(super) fn dangling(level: &str, exists: bool) -> Value {
    let (status, reason, rest) = match exists {
        true => ("False", "Found", "and it exists"),
        false => ("True", "NotFound", "but there is no such object"),
    };
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {level:?} {rest}"
    );
    json!({"type": "Dangling", "status": status, "reason": reason, "message": message})
}

/// The level that a schema leads to.
pub(super) fn level_of(schema: &Value) -> Option<&str> {
    schema.pointer("/spec/priorityLevelConfiguration/name").and_then(Value::as_str)
}

/// Says in the status of a schema that its level is there, and who said so.
#[cfg(test)]
pub(super) fn mark_found(object: &mut Value) {
    let Some(condition) = level_of(object).map(|level| dangling(level, true)) else { return };
    object["status"] = json!({"conditions": [condition]});
    let fields = json!({
        ".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:reason": {}, "f:status": {}, "f:type": {},
    });
    let entry = json!({
        "manager": CONSUMER,
        "operation": "Apply",
        "apiVersion": API_VERSION,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Dangling\"}": fields}}},
        "subresource": "status",
    });
    if let Some(entries) =
        object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut)
    {
        entries.insert(0, entry);
    }
}
