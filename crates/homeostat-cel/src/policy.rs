//! Whether the expressions of a policy fit the types they will meet. What does not fit is only a
//! warning: the policy runs all the same, and may never meet such an object.

use std::collections::BTreeMap;

use serde_json::Value;

use super::admission::{composed, variables};
use super::program::Program;
use super::types::Type;

/// What is wrong with one expression of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where it is: `spec.validations[0].expression`.
    pub field: String,
    /// What is wrong, type by type.
    pub words: String,
}

/// Checks the validations and messages of a `ValidatingAdmissionPolicy` against every type its
/// objects can be of, each with its name (`apps/v1, Kind=Deployment`), and the type of its
/// parameters; without one, nothing is known of them.
#[must_use]
pub fn warnings(policy: &Value, met: &[(String, Type)], params: Option<&Type>) -> Vec<Warning> {
    let scopes: Vec<_> =
        met.iter().map(|(name, object)| (name, scope(policy, object, params))).collect();
    let mut found = Vec::new();
    let validations = policy.pointer("/spec/validations").and_then(Value::as_array);
    for (at, validation) in validations.into_iter().flatten().enumerate() {
        for field in ["expression", "messageExpression"] {
            let text = validation.get(field).and_then(Value::as_str).unwrap_or_default();
            if text.is_empty() {
                continue;
            }
            let wrong = scopes.iter().filter_map(|(name, scope)| {
                let why = Program::compile(text, scope).err()?;
                Some(format!("{name}: {why}\n"))
            });
            let words = wrong.collect::<Vec<_>>().join("\n");
            if !words.is_empty() {
                found.push(Warning { field: format!("spec.validations[{at}].{field}"), words });
            }
        }
    }
    found
}

/// What expressions may speak of when objects are of this type.
fn scope(policy: &Value, object: &Type, params: Option<&Type>) -> Vec<(&'static str, Type)> {
    let has_params = policy.pointer("/spec/paramKind").is_some_and(|kind| !kind.is_null());
    let mut scope = variables(has_params, true);
    scope.retain(|(name, _)| *name != "authorizer.requestResource");
    for (name, ty) in &mut scope {
        match *name {
            "object" | "oldObject" => *ty = object.clone(),
            "params" => *ty = params.cloned().unwrap_or(Type::Dyn),
            _ => {}
        }
    }
    let mut known: BTreeMap<String, Type> = BTreeMap::new();
    let declared = policy.pointer("/spec/variables").and_then(Value::as_array);
    for variable in declared.into_iter().flatten() {
        let text = |field: &str| variable.get(field).and_then(Value::as_str).unwrap_or_default();
        let so_far = [scope.clone(), vec![composed(&known)]].concat();
        let program = Program::compile(text("expression"), &so_far);
        let ty = program.map_or(Type::Dyn, |program| program.ty().clone());
        known.insert(text("name").to_owned(), ty);
    }
    scope.push(composed(&known));
    scope
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Decl;

    #[test]
    fn what_does_not_fit_a_type_is_told_by_its_name() {
        let schema = |field: &str| {
            let fields = json!({"type": "object", "properties": {(field): {"type": "integer"}}});
            Decl::of(&fields, false, "T").unwrap().ty
        };
        let met =
            [("a/v1, Kind=A".to_owned(), schema("n")), ("/v1, Kind=B".to_owned(), schema("m"))];
        let policy = json!({"spec": {
            "variables": [{"name": "v", "expression": "object.n"}],
            "validations": [
                {"expression": "object.n > 1", "messageExpression": "'n is ' + object.n"},
                {"expression": "variables.v > 1"},
            ],
        }});
        let found = warnings(&policy, &met, None);
        let fields: Vec<&str> = found.iter().map(|warning| warning.field.as_str()).collect();
        assert_eq!(
            fields,
            ["spec.validations[0].expression", "spec.validations[0].messageExpression"]
        );
        assert_eq!(
            found[0].words,
            "/v1, Kind=B: ERROR: <input>:1:7: undefined field 'n'\n | object.n > 1\n | ......^\n"
        );
        assert!(found[1].words.starts_with("a/v1, Kind=A: ERROR: <input>:1:9: found no matching"));
    }
}
