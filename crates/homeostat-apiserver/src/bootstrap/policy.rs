//! The roles and bindings that every cluster has, brought up to date at each start: what somebody
//! took from one comes back, what somebody added stays. An annotation keeps one as it is.

use serde_json::{Value, json};

use super::finished::Text;
use crate::auth::missing_rules;
use crate::registry::options::{DeleteOptions, WriteOptions};
use crate::registry::{Registry, Target, metadata};
use crate::status::Status;
use crate::store::Key;

const AUTOMATIC: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// Brings one that is there already up to date.
pub(super) fn reconcile(registry: &Registry, text: &Text) {
    let Some(kind) = text.kind().cloned() else { return };
    let wanted = &text.value();
    let Key { namespace, name } = Key::new(metadata::namespace(wanted), metadata::name(wanted));
    let target = Target { kind, namespace, name };
    let Ok(stored) = registry.get(&target) else { return };
    let current = stored.value();
    if annotation(&current) == Some("false") {
        return;
    }
    let done = if current.get("roleRef") == wanted.get("roleRef") {
        let Some(revised) = revised(&current, wanted) else { return };
        registry.update(&target, false, revised.into(), &options()).map(drop)
    } else {
        // What a binding binds to cannot be changed.
        made_anew(registry, &target, wanted)
    };
    if let Err(status) = done {
        tracing::error!(%status, name = target.name, "a role or binding could not be brought up to date");
    }
}

fn made_anew(registry: &Registry, target: &Target, wanted: &Value) -> Result<(), Status> {
    registry.delete(target, &DeleteOptions::default())?;
    let place = Target { name: String::new(), ..target.clone() };
    registry.create(&place, wanted.clone().into(), &options()).map(drop)
}

fn options() -> WriteOptions {
    WriteOptions { manager: "kube-apiserver".to_owned(), ..WriteOptions::default() }
}

fn annotation(object: &Value) -> Option<&str> {
    object.pointer("/metadata/annotations")?.get(AUTOMATIC)?.as_str()
}

/// The object with what it lacks, if it lacks something.
fn revised(current: &Value, wanted: &Value) -> Option<Value> {
    let mut revised = current.clone();
    for field in ["labels", "annotations"] {
        let given = wanted["metadata"].get(field).and_then(Value::as_object);
        for (name, value) in given.into_iter().flatten() {
            let there = &mut revised["metadata"][field];
            if there.get(name).is_none() {
                there[name] = value.clone();
            }
        }
    }
    if wanted.get("aggregationRule").is_some() {
        // Their rules are gathered from other roles.
        let selectors = "clusterRoleSelectors";
        let (there, given) =
            (&mut revised["aggregationRule"][selectors], &wanted["aggregationRule"][selectors]);
        add_missing(there, given);
    } else if wanted.get("rules").is_some() {
        for rule in missing_rules(current, wanted) {
            push(&mut revised["rules"], json!(rule));
        }
    }
    if let Some(subjects) = wanted.get("subjects") {
        add_missing(&mut revised["subjects"], subjects);
    }
    (revised != *current).then_some(revised)
}

fn add_missing(there: &mut Value, given: &Value) {
    for item in given.as_array().into_iter().flatten() {
        if there.as_array().is_none_or(|there| !there.contains(item)) {
            push(there, item.clone());
        }
    }
}

/// Adds to a list, which there may not be yet.
fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = Value::Array(vec![item]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(rules: &Value) -> Value {
        json!({"metadata": {"name": "r", "labels": {"a": "1"}}, "rules": rules})
    }

    #[test]
    fn what_was_taken_from_a_role_comes_back_and_what_was_added_stays() {
        let wanted =
            role(&json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]));
        assert_eq!(revised(&wanted, &wanted), None);
        let own = json!({"verbs": ["*"], "apiGroups": ["example.com"], "resources": ["*"]});
        let left = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
        let back = json!({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]});
        let mut current = role(&json!([own, left]));
        current["metadata"]["labels"] = json!({"b": "2"});
        let revised = revised(&current, &wanted).unwrap();
        assert_eq!(revised["rules"], json!([own, left, back]));
        assert_eq!(revised["metadata"]["labels"], json!({"a": "1", "b": "2"}));
    }

    #[test]
    fn a_role_that_others_are_gathered_in_keeps_its_rules() {
        let selector = json!({"matchLabels": {"to": "view"}});
        let wanted = json!({"aggregationRule": {"clusterRoleSelectors": [selector]}});
        let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        let current = json!({"aggregationRule": {"clusterRoleSelectors": []}, "rules": rules});
        let revised = revised(&current, &wanted).unwrap();
        assert_eq!(revised["rules"], rules);
        assert_eq!(revised["aggregationRule"], wanted["aggregationRule"]);
    }

    #[test]
    fn subjects_that_are_gone_come_back() {
        let subject = |name: &str| json!({"kind": "Group", "name": name});
        let wanted = json!({"roleRef": {"name": "r"}, "subjects": [subject("a"), subject("b")]});
        let current = json!({"roleRef": {"name": "r"}, "subjects": [subject("c"), subject("b")]});
        let revised = revised(&current, &wanted).unwrap();
        assert_eq!(revised["subjects"], json!([subject("c"), subject("b"), subject("a")]));
        assert_eq!(
            super::revised(&json!({"roleRef": {"name": "r"}}), &wanted).unwrap()["subjects"],
            wanted["subjects"]
        );
    }
}
