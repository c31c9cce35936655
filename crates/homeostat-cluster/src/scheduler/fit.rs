//! Whether a node is for a Pod at all: `unschedulable`, taints, node selector and required node
//! affinity. Pure; how much room there is, is another question.

use homeostat::kube::ResourceExt;
use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

/// Whether a Pod may run on a node, or why not, in kube-scheduler's words.
pub(crate) fn fit(pod: &PodSpec, node: &Node) -> Result<(), &'static str> {
    let tolerations = pod.tolerations.as_deref().unwrap_or_default();
    let spec = node.spec.clone().unwrap_or_default();
    if spec.unschedulable == Some(true) {
        let cordon = Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            effect: "NoSchedule".into(),
            ..Taint::default()
        };
        if !tolerations.iter().any(|t| tolerates(t, &cordon)) {
            return Err("node(s) were unschedulable");
        }
    }
    for taint in spec.taints.iter().flatten().filter(|t| t.effect != "PreferNoSchedule") {
        if !tolerations.iter().any(|t| tolerates(t, taint)) {
            return Err("node(s) had untolerated taint(s)");
        }
    }
    let selected = pod.node_selector.iter().flatten().all(|(k, v)| node.labels().get(k) == Some(v));
    let required = pod
        .affinity
        .as_ref()
        .and_then(|a| a.node_affinity.as_ref())
        .and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
    let wanted = required.is_none_or(|r| r.node_selector_terms.iter().any(|t| term(t, node)));
    if selected && wanted {
        Ok(())
    } else {
        Err("node(s) didn't match Pod's node affinity/selector")
    }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().is_none_or(|e| e.is_empty() || e == taint.effect);
    let exists = toleration.operator.as_deref() == Some("Exists");
    let key = toleration.key.as_deref().unwrap_or_default();
    let matches = if key.is_empty() {
        exists
    } else {
        key == taint.key
            && (exists
                || toleration.value.as_deref().unwrap_or_default()
                    == taint.value.as_deref().unwrap_or_default())
    };
    effect && matches
}

fn term(term: &NodeSelectorTerm, node: &Node) -> bool {
    let name = node.name_any();
    let label = |key: &str| node.labels().get(key).map(String::as_str);
    let field = |key: &str| (key == "metadata.name").then_some(name.as_str());
    let labels = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    !(labels.is_empty() && fields.is_empty())
        && labels.iter().all(|r| requirement(r, label(&r.key)))
        && fields.iter().all(|r| requirement(r, field(&r.key)))
}

fn requirement(requirement: &NodeSelectorRequirement, found: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = || found.is_some_and(|found| values.iter().any(|value| value == found));
    let compare = |test: fn(i64, i64) -> bool| {
        let number = |text: &str| text.parse::<i64>().ok();
        match (found.and_then(number), values.first().and_then(|v| number(v))) {
            (Some(found), Some(bound)) => test(found, bound),
            _ => false,
        }
    };
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => compare(|found, bound| found > bound),
        "Lt" => compare(|found, bound| found < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(value: Value) -> Node {
        serde_json::from_value(value).unwrap()
    }

    fn pod(mut value: Value) -> PodSpec {
        value["containers"] = json!([]);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_cordoned_or_tainted_node_takes_only_who_tolerates_it() {
        let cordoned = node(json!({"metadata": {"name": "n"}, "spec": {"unschedulable": true}}));
        assert!(fit(&pod(json!({})), &cordoned).is_err());
        assert!(fit(&pod(json!({"tolerations": [{"operator": "Exists"}]})), &cordoned).is_ok());
        let tainted = node(json!({"metadata": {"name": "n"},
            "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}}));
        assert!(fit(&pod(json!({})), &tainted).is_err());
        let tolerant = pod(json!({"tolerations": [{"key": "gpu", "value": "yes"}]}));
        assert!(fit(&tolerant, &tainted).is_ok());
    }

    #[test]
    fn selector_and_affinity_must_both_hold() {
        let node = node(json!({"metadata": {"name": "n", "labels": {"disk": "ssd"}}}));
        assert!(fit(&pod(json!({"nodeSelector": {"disk": "ssd"}})), &node).is_ok());
        assert!(fit(&pod(json!({"nodeSelector": {"disk": "hdd"}})), &node).is_err());
        let by_name = |name: &str| {
            pod(json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]}}}}))
        };
        assert!(fit(&by_name("n"), &node).is_ok());
        assert!(fit(&by_name("m"), &node).is_err());
    }
}
