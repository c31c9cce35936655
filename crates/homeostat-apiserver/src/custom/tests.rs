//! What a definition promises its users.

use serde_json::{Value, json};

use super::{NamesInUse, check, conditions, defaults, rows};
use crate::kinds::Kind;
use crate::{decode, validate};

fn at(schema: &Value) -> Value {
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ats.cnat.example.com"},
        "spec": {
            "group": "cnat.example.com",
            "scope": "Namespaced",
            "names": {"plural": "ats", "kind": "At"},
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
            }],
        },
    });
    defaults(&mut crd);
    crd
}

fn spec(fields: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": fields}})
}

fn kind(fields: &Value) -> Kind {
    let definition = at(&spec(fields));
    assert_eq!(check(&definition, None), []);
    rows(&definition).remove(0)
}

fn refusals(fields: &Value) -> Vec<String> {
    check(&at(&spec(fields)), None).iter().map(ToString::to_string).collect()
}

fn object(spec: &Value) -> Value {
    json!({
        "apiVersion": "cnat.example.com/v1alpha1",
        "kind": "At",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": spec,
    })
}

fn errors(kind: &Kind, new: &Value, old: Option<&Value>) -> Vec<String> {
    let old = old.map(object);
    validate::object(kind, &object(new), old.as_ref()).iter().map(ToString::to_string).collect()
}

#[test]
fn a_definition_becomes_the_row_of_its_version() {
    let kind = kind(&json!({"type": "object"}));
    assert_eq!((kind.list_kind.as_str(), kind.singular.as_str()), ("AtList", "at"));
    assert_eq!(kind.resource(), "ats.cnat.example.com");
    assert!(kind.namespaced && kind.strategy.status && kind.subresource("status").is_some());
    assert!(!kind.strategy.unconditional_update);
}

#[test]
fn a_definition_that_is_not_structural_is_refused_by_path() {
    assert_eq!(
        refusals(&json!({"properties": {"a": {"type": "string"}}})),
        [
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty \
          for specified object fields"
        ]
    );
    assert_eq!(refusals(&json!({"type": "array"})).len(), 1);
    assert_eq!(refusals(&json!({"type": "object", "default": {"a": 1}})).len(), 1);
    assert_eq!(refusals(&json!({"type": "string", "pattern": "("})).len(), 1);
    let mut two = at(&spec(&json!({"type": "object"})));
    two["spec"]["versions"][0]["storage"] = json!(false);
    assert!(!check(&two, None).is_empty());
    two["metadata"]["name"] = json!("other");
    assert_eq!(check(&two, None)[0].path, "metadata.name");
}

#[test]
fn a_rule_that_does_not_compile_is_refused_with_the_definition() {
    let refused =
        refusals(&json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.a >"}]}));
    assert_eq!(refused.len(), 1);
    assert!(refused[0].contains("x-kubernetes-validations[0].rule"), "{refused:?}");
    assert!(refused[0].contains("compilation failed"), "{refused:?}");
}

#[test]
fn objects_are_refused_in_the_words_of_the_api() {
    let kind = kind(&json!({
        "type": "object",
        "required": ["schedule"],
        "properties": {
            "schedule": {"type": "string"},
            "replicas": {"type": "integer", "minimum": 1, "maximum": 5},
            "policy": {"type": "string", "enum": ["Delete", "Retain"]},
            "name": {"type": "string", "maxLength": 3, "pattern": "^[a-z]*$"},
        },
    }));
    assert_eq!(errors(&kind, &json!({"schedule": "now"}), None), Vec::<String>::new());
    assert_eq!(
        errors(&kind, &json!({"replicas": 0, "policy": "Keep", "name": "ABCD"}), None),
        [
            "spec.schedule: Required value",
            "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1",
            "spec.policy: Unsupported value: \"Keep\": supported values: \"Delete\", \"Retain\"",
            "spec.name: Too long: may not be more than 3 bytes",
        ]
    );
    assert_eq!(
        errors(&kind, &json!({"schedule": 3}), None),
        [
            "spec.schedule: Invalid value: \"integer\": spec.schedule in body must be of type string: \
          \"integer\""
        ]
    );
}

#[test]
fn what_was_stored_invalid_may_stay_but_not_be_made_anew() {
    let kind = kind(&json!({"type": "object", "properties": {
        "a": {"type": "integer", "maximum": 1}, "b": {"type": "string"},
    }}));
    assert!(errors(&kind, &json!({"a": 9, "b": "new"}), Some(&json!({"a": 9}))).is_empty());
    assert_eq!(errors(&kind, &json!({"a": 8}), Some(&json!({"a": 9}))).len(), 1);
}

#[test]
fn cel_rules_judge_the_object_and_its_change() {
    let kind = kind(&json!({
        "type": "object",
        "properties": {
            "min": {"type": "integer"},
            "max": {"type": "integer"},
            "engine": {"type": "string", "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "engine is immutable"},
            ]},
        },
        "x-kubernetes-validations": [
            {"rule": "self.min <= self.max", "messageExpression": "'min is ' + (self.min > 2 ? 'far ' : '') + 'above max'"},
            {"rule": "self.max < 100", "reason": "FieldValueForbidden", "fieldPath": ".max", "message": "too many"},
        ],
    }));
    assert!(errors(&kind, &json!({"min": 1, "max": 2, "engine": "a"}), None).is_empty());
    assert_eq!(
        errors(&kind, &json!({"min": 3, "max": 2}), None),
        ["spec: Invalid value: min is far above max"]
    );
    assert_eq!(
        errors(&kind, &json!({"min": 1, "max": 200}), None),
        ["spec.max: Forbidden: too many"]
    );
    assert_eq!(
        errors(
            &kind,
            &json!({"min": 1, "max": 2, "engine": "b"}),
            Some(&json!({"min": 1, "max": 2, "engine": "a"}))
        ),
        ["spec.engine: Invalid value: \"b\": engine is immutable"]
    );
}

#[test]
fn unknown_fields_are_pruned_except_where_they_are_kept() {
    let kind = kind(&json!({"type": "object", "properties": {
        "known": {"type": "string"},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "port": {"x-kubernetes-int-or-string": true},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true,
                     "properties": {"spec": {"type": "object"}}},
    }}));
    let mut value = object(&json!({
        "known": "a", "extra": 1, "open": {"any": {"thing": 1}}, "port": "http", "map": {"k": "v"},
        "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n", "odd": 1}, "data": 1},
    }));
    let dropped = decode::typed(&kind, &mut value).unwrap().unknown;
    assert_eq!(dropped, ["spec.embedded.data", "spec.extra", "spec.embedded.metadata.odd"]);
    assert_eq!(value["spec"]["embedded"]["metadata"], json!({"name": "n"}));
    assert_eq!(value["spec"]["open"], json!({"any": {"thing": 1}}));
    assert_eq!(value["metadata"]["name"], "x");
}

#[test]
fn a_definition_without_conflicts_is_established_and_keeps_its_times() {
    let mut crd = at(&spec(&json!({"type": "object"})));
    let first = "2026-01-01T00:00:00Z".parse().unwrap();
    let nobody = NamesInUse::default();
    crd["status"] = conditions(&crd, &nobody, first);
    let states: Vec<&str> = crd["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| condition["status"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["True", "True"]);
    assert_eq!(crd["status"]["acceptedNames"]["plural"], "ats");
    assert_eq!(crd["status"]["storedVersions"], json!(["v1alpha1"]));
    let later = "2026-01-02T00:00:00Z".parse().unwrap();
    assert_eq!(conditions(&crd, &nobody, later), crd["status"]);
}

#[test]
fn a_name_that_another_definition_has_is_refused_and_the_others_are_accepted() {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let definition = at(&spec(&json!({"type": "object"})));
    let kind = definition["spec"]["names"]["kind"].as_str().unwrap().to_owned();
    let used = NamesInUse { kinds: [kind.clone()].into(), ..NamesInUse::default() };
    let status = conditions(&definition, &used, now);
    let said = |at: usize| {
        let condition = &status["conditions"][at];
        ["type", "status", "reason", "message"].map(|field| condition[field].as_str().unwrap())
    };
    let words = format!("{kind:?} is already in use");
    assert_eq!(said(0), ["NamesAccepted", "False", "KindConflict", words.as_str()]);
    assert_eq!(said(1), ["Established", "False", "NotAccepted", "not all names are accepted"]);
    assert_eq!(status["acceptedNames"]["plural"], "ats");
    assert_eq!(status["acceptedNames"]["kind"], "");
}

#[test]
fn what_may_not_stand_at_the_root_beside_a_status_is_shown_whole() {
    let mut definition = at(&spec(&json!({"type": "object"})));
    let root = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    root["maxProperties"] = json!(3.0);
    root["description"] = json!("<none>");
    let refused: Vec<String> = check(&definition, None).iter().map(ToString::to_string).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    let start = "spec.validation.openAPIV3Schema: Invalid value: {\"ID\":\"\",\"Schema\":\"\",\"Ref\":\
                 null,\"Description\":\"\\u003cnone\\u003e\",\"Type\":\"object\"";
    assert!(refused[0].starts_with(start), "{}", refused[0]);
    assert!(refused[0].contains("\"MaxProperties\":3,\"MinProperties\":null"), "{}", refused[0]);
    assert!(refused[0].contains("only [Description Type Format"), "{}", refused[0]);
}

#[test]
fn junctors_restrict_what_is_described_outside_of_them() {
    let refused = refusals(&json!({
        "type": "object",
        "allOf": [{"description": "", "nullable": true, "properties": {"a": {"minimum": 1}}}],
        "not": {"type": "string"},
    }));
    let at = "spec.validation.openAPIV3Schema.properties[spec]";
    assert_eq!(
        refused,
        [
            format!("{at}.allOf[0].nullable: Forbidden: must be false to be structural"),
            format!("{at}.not.type: Forbidden: must be empty to be structural"),
        ]
    );
    // Only what junctors of the root speak of must be described.
    let mut definition =
        at_root(&json!({"anyOf": [{"required": ["a"]}, {"properties": {"b": {}}}]}));
    definition["spec"]["versions"][0].as_object_mut().unwrap().shift_remove("subresources");
    let refused: Vec<String> = check(&definition, None).iter().map(ToString::to_string).collect();
    assert_eq!(
        refused,
        [
            "spec.validation.openAPIV3Schema.properties[b]: Required value: because it is defined in \
          spec.validation.openAPIV3Schema.anyOf[1].properties[b]"
        ]
    );
}

fn at_root(more: &Value) -> Value {
    let mut definition = at(&spec(&json!({"type": "object"})));
    let root = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for (name, value) in more.as_object().unwrap() {
        root[name] = value.clone();
    }
    definition
}

#[test]
fn what_all_versions_share_is_reported_above_them_and_the_rest_below() {
    let mut definition = at(&spec(&json!({"type": "object"})));
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!("v9");
    second["storage"] = json!(false);
    second["additionalPrinterColumns"] = json!([{"name": "N", "jsonPath": "n", "type": "x"}]);
    definition["spec"]["versions"].as_array_mut().unwrap().push(second);
    for version in 0..2 {
        definition["spec"]["versions"][version]["subresources"]["scale"] = json!({});
    }
    let refused: Vec<String> = check(&definition, None).iter().map(|e| e.path.clone()).collect();
    assert_eq!(
        refused,
        [
            "spec.versions[1].additionalPrinterColumns[0].type",
            "spec.versions[1].additionalPrinterColumns[0].JSONPath",
            "spec.subresources.scale.specReplicasPath",
            "spec.subresources.scale.statusReplicasPath",
        ]
    );
}

#[test]
fn a_default_keeps_the_rules_of_its_schema_as_a_new_value_and_as_one_that_stays() {
    let field = |rule: Value| {
        let field = json!({"type": "string", "default": "x", "x-kubernetes-validations": [rule]});
        refusals(&json!({"type": "object", "properties": {"a": field}}))
    };
    let path = "properties[spec].properties[a].default: Invalid value: \"x\": failed rule:";
    let optional = |rule: &str| json!({"rule": rule, "optionalOldSelf": true});
    assert_eq!(field(json!({"rule": "self == 'x'"})), [""; 0]);
    assert_eq!(field(json!({"rule": "self == oldSelf"})), [""; 0]);
    for rule in [
        json!({"rule": "self != 'x'"}),
        json!({"rule": "self != oldSelf"}),
        optional("oldSelf.hasValue()"),
        optional("!oldSelf.hasValue()"),
    ] {
        let told = format!("{path} {}", rule["rule"].as_str().unwrap());
        let refused = field(rule);
        assert!(refused.len() == 1 && refused[0].ends_with(&told), "{refused:?}");
    }
}

#[test]
fn an_object_within_is_judged_like_any_other() {
    let within = json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}},
    }});
    let kind = kind(&json!({"type": "object", "properties": {"in": within}}));
    let refused = |within: Value| errors(&kind, &json!({"in": within}), None);
    let pod = |metadata: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
    assert_eq!(refused(pod(json!({"name": "abc"}))), [""; 0]);
    assert_eq!(refused(pod(json!({"name": "a/b"}))).len(), 1);
    assert_eq!(refused(pod(json!({"name": "abcd"}))).len(), 1);
    assert_eq!(refused(pod(json!({"labels": {"a": "b c"}}))).len(), 1);
    assert_eq!(refused(json!({"kind": "Pod"})), ["spec.in.apiVersion: Required value"]);
}
