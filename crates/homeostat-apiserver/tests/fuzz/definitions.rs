//! Custom resource definitions with random schemas, and policies are left to the schemas of
//! their kinds.

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::words;

/// The group of all of them.
pub(crate) const GROUP: &str = "fuzz.io";
const PLURALS: &[&str] = &["widgets", "things"];

/// A definition, more often right than wrong.
pub(crate) fn definition(dice: &Dice) -> Value {
    let plural = *dice.pick(PLURALS);
    let kind = if plural == "widgets" { "Widget" } else { "Thing" };
    let several = dice.chance(30);
    let mut versions = vec![version(dice, "v1", true)];
    if several {
        versions.push(version(dice, "v2", dice.chance(3)));
    }
    let mut spec = json!({
        "group": GROUP,
        "scope": if dice.chance(80) { "Namespaced" } else { "Cluster" },
        "names": {"plural": plural, "kind": kind, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
        "versions": versions,
    });
    if dice.chance(15) {
        spec["names"]["shortNames"] = json!([*dice.pick(&["w", "pods", "-", ""])]);
    }
    if dice.chance(25) {
        spec["conversion"] = json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:1/convert", "caBundle": ""},
        }});
    }
    if dice.chance(5) {
        spec["preserveUnknownFields"] = true.into();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")}, "spec": spec,
    })
}

fn version(dice: &Dice, name: &str, storage: bool) -> Value {
    let mut version = json!({
        "name": name, "served": dice.chance(95), "storage": storage,
        "schema": {"openAPIV3Schema": root(dice)},
    });
    if dice.chance(50) {
        version["subresources"] = json!({"status": {}});
        if dice.chance(50) {
            version["subresources"]["scale"] = json!({
                "specReplicasPath": if dice.chance(80) { ".spec.a" } else { *dice.pick(words::of("jsonPath")) },
                "statusReplicasPath": if dice.chance(80) { ".status.a" } else { *dice.pick(words::of("jsonPath")) },
            });
        }
    }
    if dice.chance(30) {
        let types = ["string", "integer", "number", "boolean", "date", "odd"];
        let column = || json!({"name": "C", "type": *dice.pick(&types), "jsonPath": *dice.pick(words::of("jsonPath"))});
        version["additionalPrinterColumns"] = (0..1 + dice.below(3)).map(|_| column()).collect();
    }
    if dice.chance(20) {
        let path = *dice.pick(&[".spec.a", ".spec.b", ".metadata.name", ".spec.c.a"]);
        version["selectableFields"] = json!([{"jsonPath": path}]);
    }
    if dice.chance(10) {
        version["deprecated"] = true.into();
        version["deprecationWarning"] = (*dice.pick(&["old", "", "a\nb"])).into();
    }
    version
}

fn root(dice: &Dice) -> Value {
    let mut root = json!({
        "type": "object",
        "properties": {"spec": node(dice, 3), "status": node(dice, 2)},
    });
    if dice.chance(10) {
        root["properties"]["metadata"] = json!({
            "type": "object", "properties": {"name": {"type": "string", "maxLength": 3}},
        });
    }
    if dice.chance(10) {
        root["x-kubernetes-validations"] = json!([rule(dice)]);
    }
    root
}

fn rule(dice: &Dice) -> Value {
    let mut rule = json!({"rule": *dice.pick(words::of("rule"))});
    if dice.chance(30) {
        rule["messageExpression"] = (*dice.pick(words::of("rule"))).into();
    }
    if dice.chance(30) {
        rule["fieldPath"] = (*dice.pick(words::of("fieldPath"))).into();
    }
    if dice.chance(20) {
        rule["optionalOldSelf"] = dice.chance(50).into();
    }
    rule
}

/// A structural schema; now and then one that is not.
fn node(dice: &Dice, depth: usize) -> Value {
    let types = if depth == 0 { 5 } else { 8 };
    let mut node = match dice.below(types) {
        0 => json!({"type": "string"}),
        1 => json!({"type": "integer"}),
        2 => json!({"type": "boolean"}),
        3 => json!({"type": "number"}),
        4 => json!({"x-kubernetes-int-or-string": true}),
        5 => json!({"type": "array", "items": node(dice, depth - 1)}),
        6 => json!({"type": "object", "additionalProperties": node(dice, depth - 1)}),
        _ => {
            let names = ["a", "b", "c", "a-b", "type", ""];
            let fields: Map<String, Value> = (0..1 + dice.below(4))
                .map(|at| (names[at].to_owned(), node(dice, depth - 1)))
                .collect();
            let mut node = json!({"type": "object", "properties": fields});
            if dice.chance(30) {
                node["required"] = json!(["a"]);
            }
            node
        }
    };
    for _ in 0..dice.below(3) {
        adorn(dice, &mut node);
    }
    node
}

fn adorn(dice: &Dice, node: &mut Value) {
    let bound = || dice.pick(&[json!(0), json!(1), json!(5), json!(-1), json!(1.5)]).clone();
    let values = || {
        dice.pick(&[
            json!("a"),
            json!(1),
            json!(true),
            json!({}),
            json!({"a": 1}),
            json!([]),
            json!(null),
        ])
        .clone()
    };
    let (name, value) = match dice.below(22) {
        0 | 1 => ("default", values()),
        2 => ("nullable", true.into()),
        3 => ("enum", json!([values(), values()])),
        4 => ("minimum", bound()),
        5 => ("maximum", bound()),
        6 => ("maxLength", bound()),
        7 => ("minItems", bound()),
        8 => ("maxProperties", bound()),
        9 => ("pattern", (*dice.pick(words::of("pattern"))).into()),
        10 => (
            "format",
            (*dice.pick(&["date-time", "int32", "byte", "ipv4", "duration", "odd"])).into(),
        ),
        11 => ("x-kubernetes-preserve-unknown-fields", dice.chance(80).into()),
        12 => ("x-kubernetes-embedded-resource", true.into()),
        13 => ("x-kubernetes-list-type", (*dice.pick(&["set", "map", "atomic", "odd"])).into()),
        14 => ("x-kubernetes-list-map-keys", json!(["a"])),
        15 => ("x-kubernetes-map-type", (*dice.pick(&["atomic", "granular", "odd"])).into()),
        16 | 17 => ("x-kubernetes-validations", json!([rule(dice)])),
        18 => ("anyOf", json!([{"required": ["a"]}, {"minimum": 1}])),
        19 => ("oneOf", json!([{"type": "integer"}, {"type": "string"}])),
        20 => ("not", json!({"properties": {"a": {"enum": [1]}}})),
        _ => ("multipleOf", bound()),
    };
    node[name] = value;
}
