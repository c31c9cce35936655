//! Replays what kube-apiserver 1.36.4 said to the rules of definitions: `recorded/rules.json` holds
//! the properties of a schema, rules on it and the causes of the refusal, if there was one. Checked
//! here without a server: syntax, types, costs and their words.

use homeostat_apiserver::custom;
use serde_json::{Value, json};

fn definition(properties: &Value, rule: &Value) -> Value {
    let mut definition = json!({
        "metadata": {"name": "qs.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "qs", "kind": "Q"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "properties": properties, "x-kubernetes-validations": [rule],
                }}},
            }}],
        },
    });
    custom::defaults(&mut definition);
    definition
}

#[test]
fn rules_are_refused_as_kube_apiserver_does() {
    let recorded: Value = serde_json::from_str(include_str!("recorded/rules.json")).unwrap();
    let cases = recorded["cases"].as_array().unwrap();
    let mut mistakes = Vec::new();
    for case in cases {
        let errors = custom::check(&definition(&recorded["properties"], &case["rule"]), None);
        let ours: Vec<Value> = errors
            .iter()
            .map(|error| {
                let field = error.path.rsplit("x-kubernetes-validations[0].").next().unwrap();
                json!([field, error.message()])
            })
            .collect();
        if case["errors"] != json!(ours) {
            mistakes.push(format!(
                "{}\n  theirs {}\n  ours   {}",
                case["rule"],
                case["errors"],
                json!(ours)
            ));
        }
    }
    assert!(
        mistakes.is_empty(),
        "{} of {} differ\n{}",
        mistakes.len(),
        cases.len(),
        mistakes.join("\n")
    );
}
