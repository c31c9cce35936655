//! What the status of a policy says of its expressions.

use homeostat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use homeostat_testing::{object, on_world};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};

fn policy(name: &str, validations: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"],
            "resources": ["deployments", "deployments/scale", "replicasets"]}]},
        "variables": [{"name": "size", "expression": "object.spec.replicas"}],
        "validations": validations}})
}

#[test]
fn a_policy_says_which_expressions_do_not_fit_its_types() {
    on_world(async |world| {
        let validations = json!([
            {"expression": "object.spec.replicas > 1 && variables.size < 9"},
            {"expression": "object.spec.strategy.type == 'Recreate'",
             "messageExpression": "string(variables.size) + string(object.spec.paused)"},
            {"expression": "object.metadata.labels.all(k, v, k != v)"},
            {"expression": "object.spec.template.spec.containers.all(c, c.ports.all(p, p.containerPort > 1))"},
        ]);
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(world.client.clone());
        let name = format!("typed-{}", world.namespace);
        let written = object(policy(&name, &validations));
        policies.create(&PostParams::default(), &written).await.unwrap();
        world.nothing_more().await;
        let checked = policies.get(&name).await.unwrap();
        let status = checked.status.unwrap();
        assert_eq!(status.observed_generation, checked.metadata.generation);
        let checking = status.type_checking.unwrap();
        let warnings = checking.expression_warnings.unwrap();
        let fields: Vec<&str> = warnings.iter().map(|warning| warning.field_ref.as_str()).collect();
        assert_eq!(
            fields,
            ["spec.validations[1].expression", "spec.validations[1].messageExpression"]
        );
        assert_eq!(
            warnings[0].warning,
            "apps/v1, Kind=ReplicaSet: ERROR: <input>:1:12: undefined field 'strategy'\n | \
             object.spec.strategy.type == 'Recreate'\n | ...........^\n"
        );
        assert!(warnings[1].warning.contains("ReplicaSet: ERROR: <input>:1:44: undefined field"));
        let right = json!([{"expression": "object.spec.replicas > 1"}]);
        let patch = Patch::Merge(json!({"spec": {"validations": right}}));
        policies.patch(&name, &PatchParams::default(), &patch).await.unwrap();
        world.nothing_more().await;
        let checked = policies.get(&name).await.unwrap();
        let status = checked.status.unwrap();
        assert_eq!(status.observed_generation, checked.metadata.generation);
        assert_eq!(status.type_checking.and_then(|checking| checking.expression_warnings), None);
        policies.delete(&name, &DeleteParams::default()).await.unwrap();
    });
}
