//! Sets of fields and their JSON form.

use std::collections::BTreeSet;

use proptest::prelude::{Strategy, prop_assert_eq, proptest};
use serde_json::{Value, json};

use super::thing;
use crate::apply::{Atom, FieldSet, PathElement};

/// Numbers that are equal as floats and not as whole numbers, or the other way round.
const CLOSE: [&str; 9] = [
    "9007199254740992",
    "9007199254740993",
    "9007199254740992.0",
    "18446744073709551615",
    "18446744073709551614",
    "18446744073709551616",
    "0",
    "-0.0",
    "1.5",
];

/// Some paths of up to three fields, of four names.
fn paths() -> impl Strategy<Value = Vec<Vec<&'static str>>> {
    let name = proptest::sample::select(vec!["a", "b", "c", "d"]);
    proptest::collection::vec(proptest::collection::vec(name, 1..4), 0..12)
}

fn of(paths: &[Vec<&'static str>]) -> (FieldSet, BTreeSet<Vec<&'static str>>) {
    let set = FieldSet::of_fields(paths.iter().map(Vec::as_slice));
    (set, paths.iter().cloned().collect())
}

/// The paths of a set, and those it should have.
fn both(set: &FieldSet, model: &BTreeSet<Vec<&'static str>>) -> (Vec<String>, Vec<String>) {
    let mut found: Vec<String> = set.to_string().lines().map(str::to_owned).collect();
    found.sort();
    let mut expected: Vec<String> =
        model.iter().map(|path| path.iter().map(|name| format!(".{name}")).collect()).collect();
    expected.sort();
    (found, expected)
}

proptest! {
    #[test]
    fn sets_of_fields_are_sets_of_paths(one in paths(), two in paths()) {
        let ((a, of_a), (b, of_b)) = (of(&one), of(&two));
        let below = |path: &Vec<&str>| of_b.iter().any(|other| path.starts_with(other));
        let (found, expected) = both(&a.clone().union(&b), &(&of_a | &of_b));
        prop_assert_eq!(found, expected);
        let (found, expected) = both(&a.intersection(&b), &(&of_a & &of_b));
        prop_assert_eq!(found, expected);
        let (found, expected) = both(&a.clone().difference(&b), &(&of_a - &of_b));
        prop_assert_eq!(found, expected);
        let rest = of_a.iter().filter(|path| !below(path)).cloned().collect();
        let (found, expected) = both(&a.clone().difference_with_descendants(&b), &rest);
        prop_assert_eq!(found, expected);
        prop_assert_eq!(a.is_subset(&b), of_a.is_subset(&of_b));
    }
}

#[test]
fn numbers_have_one_order_however_they_are_written() {
    let numbers = CLOSE.map(|text| Atom::from(&serde_json::from_str::<Value>(text).unwrap()));
    for (one, two, three) in numbers.iter().flat_map(|one| {
        let pairs = numbers.iter().flat_map(|two| numbers.iter().map(move |three| (two, three)));
        pairs.map(move |(two, three)| (one, two, three))
    }) {
        assert_eq!(one.cmp(two), two.cmp(one).reverse(), "{one} {two}");
        if one <= two && two <= three {
            assert!(one <= three, "{one} {two} {three}");
        }
    }
}

fn set(fields: &Value) -> FieldSet {
    FieldSet::from_fields_v1(fields).unwrap()
}

#[test]
fn fields_v1_comes_back_as_it_was_written() {
    for text in [
        r#"{}"#,
        r#"{"f:a":{}}"#,
        r#"{"f:a":{".":{},"f:b":{}}}"#,
        r#"{"f:list":{"k:{\"name\":\"web\",\"port\":80}":{".":{},"f:image":{}}}}"#,
        r#"{"f:set":{"v:\"x\"":{},"v:true":{}},"i:3":{}}"#,
        r#"{"f:set":{"v:1":{},"v:1.5":{},"v:2":{},"v:\"1\"":{}}}"#,
        r#"{"f:set":{"v:\"a\\u003cb\\u0026\"":{}}}"#,
    ] {
        let fields: Value = serde_json::from_str(text).unwrap();
        assert_eq!(set(&fields).to_fields_v1().to_string(), text);
    }
}

#[test]
fn fields_v1_is_written_in_order_whatever_order_it_was_read_in() {
    let mixed = json!({"v:2": {}, "f:b": {}, "k:{\"b\":1,\"a\":2}": {}, "f:a": {}, "v:10": {}});
    let ordered = r#"{"f:a":{},"f:b":{},"k:{\"a\":2,\"b\":1}":{},"v:2":{},"v:10":{}}"#;
    assert_eq!(set(&mixed).to_fields_v1().to_string(), ordered);
}

#[test]
fn path_elements_of_a_newer_server_are_left_out_and_malformed_ones_refused() {
    assert_eq!(set(&json!({"z:new": {}, "f:a": {}})), set(&json!({"f:a": {}})));
    for malformed in ["nocolon", "k:[1]", "v:{", "i:x"] {
        assert!(FieldSet::from_fields_v1(&json!({ malformed: {} })).is_err(), "{malformed}");
    }
}

#[test]
fn a_field_and_what_is_below_it_are_in_the_set_independently() {
    let parent = set(&json!({"f:a": {}}));
    let child = set(&json!({"f:a": {"f:b": {}}}));
    let both = set(&json!({"f:a": {".": {}, "f:b": {}}}));
    assert_eq!(parent.clone().union(&child), both);
    assert_eq!(both.clone().difference(&parent), child);
    assert_eq!(both.clone().difference(&child), parent);
    assert_eq!(both.intersection(&child), child);
    assert!(parent.intersection(&child).is_empty());
    assert!(both.clone().difference_with_descendants(&parent).is_empty());
    assert!(child.is_subset(&both) && !both.is_subset(&child) && !parent.is_subset(&child));
}

#[test]
fn paths_read_like_kube_apiserver_prints_them() {
    let set = set(&json!({"f:spec": {"f:rows": {
        "k:{\"name\":\"a\\\"b\",\"port\":80}": {"f:note": {}},
        "v:\"x\"": {}, "i:0": {},
    }}}));
    let expected = ".spec.rows[=\"x\"]\n.spec.rows[0]\n.spec.rows[name=\"a\\\"b\",port=80].note";
    assert_eq!(set.to_string(), expected);
}

#[test]
fn a_value_sets_its_leaves_items_and_empty_maps() {
    let schema = thing();
    for (spec, expected) in [
        (json!({"size": 1}), json!({"f:size": {}})),
        (json!({"size": null}), json!({"f:size": {}})),
        // Atomic: one owner for the whole.
        (json!({"whole": {"a": "1"}, "plain": ["x"]}), json!({"f:plain": {}, "f:whole": {}})),
        // No schema: maps field by field, lists as a whole.
        (json!({"free": {"a": {"b": [1]}}}), json!({"f:free": {"f:a": {".": {}, "f:b": {}}}})),
        (json!({"free": {}}), json!({"f:free": {}})),
        (json!({"tags": ["x", "y"]}), json!({"f:tags": {"v:\"x\"": {}, "v:\"y\"": {}}})),
        (json!({"tags": []}), json!(null)),
        // A key that is left out has its default.
        (
            json!({"rows": [{"name": "a"}]}),
            json!({"f:rows": {"k:{\"name\":\"a\",\"port\":80}": {".": {}, "f:name": {}}}}),
        ),
        // Items that share a key are owned as one.
        (
            json!({"rows": [{"name": "a"}, {"name": "a", "port": 80, "note": "n"}]}),
            json!({"f:rows": {"k:{\"name\":\"a\",\"port\":80}": {}}}),
        ),
    ] {
        let fields = FieldSet::of_value(schema.root(), &json!({ "spec": spec })).to_fields_v1();
        let expected = if expected.is_null() { json!({}) } else { json!({ "f:spec": expected }) };
        assert_eq!(fields, expected, "{spec}");
    }
}

#[test]
fn contains_asks_for_exactly_one_path() {
    let mut set = FieldSet::default();
    set.insert([PathElement::field("a"), PathElement::Value(Atom::from("x"))]);
    assert!(set.contains(&[PathElement::field("a"), PathElement::Value(Atom::from("x"))]));
    assert!(!set.contains(&[PathElement::field("a")]));
    assert!(!set.contains(&[]));
}
