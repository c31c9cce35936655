//! Laws that hold for all objects.

use proptest::option::of;
use proptest::prelude::{
    Just, Strategy, any, prop_assert, prop_assert_eq, prop_assume, prop_oneof, proptest,
};
use serde_json::{Map, Value, json};

use super::{at, owned, status, thing};
use crate::apply::{ApplyError, FieldSet, apply, track_update};

const VERSION: &str = "example.com/v1";

fn letters() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(vec!["a", "b", "c", "d"], 0..=4).prop_shuffle()
}

fn free() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![(0..3_i32).prop_map(Value::from), Just(json!([1])), Just(json!("s"))];
    leaf.prop_recursive(3, 12, 3, |inner| {
        proptest::collection::btree_map("[xyz]", inner, 0..3)
            .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>()))
    })
}

/// An object with any of the fields of a thing.
fn object() -> impl Strategy<Value = Value> {
    let rows = letters().prop_flat_map(|names| {
        let count = names.len();
        (Just(names), proptest::collection::vec((0..2_i32, 80..82_i32), count))
    });
    (
        of(0..3_i32),
        of(free()),
        of(letters()),
        of(letters()),
        of(rows),
        of(letters()),
        of(any::<bool>()),
    )
        .prop_map(|(size, inner, whole, tags, rows, plain, ready)| {
            let mut spec = Map::new();
            let mut put = |name: &str, value: Option<Value>| {
                spec.extend(value.map(|value| (name.to_owned(), value)));
            };
            put("size", size.map(Value::from));
            put("free", inner.map(|inner| json!({ "inner": inner })));
            put("whole", whole.map(|names| names.into_iter().map(|name| (name, "1")).collect()));
            put("tags", tags.map(Value::from));
            put("plain", plain.map(Value::from));
            put(
                "rows",
                rows.map(|(names, values)| {
                    let row = |(name, (note, port)): (&str, (i32, i32))| json!({"name": name, "port": port, "note": format!("{note}")});
                    names.into_iter().zip(values).map(row).collect()
                }),
            );
            let mut object = json!({
                "apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "t"}, "spec": spec,
            });
            if let Some(ready) = ready {
                object["status"] = json!({ "ready": ready });
            }
            object
        })
}

fn forced(live: Option<&Value>, config: &Value, manager: &str, second: i64) -> Value {
    let manager = at(manager, VERSION, second);
    apply(thing().root(), live, config, &manager, true, &status()).unwrap()
}

fn entries(object: &Value) -> impl Iterator<Item = FieldSet> {
    let list = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    list.map(|entry| FieldSet::from_fields_v1(&entry["fieldsV1"]).unwrap())
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(live in object(), config in object()) {
        let live = forced(None, &live, "other", 0);
        let once = forced(Some(&live), &config, "one", 1);
        prop_assert_eq!(&forced(Some(&once), &config, "one", 2), &once);
    }

    #[test]
    fn what_is_applied_is_there_and_owned(live in object(), config in object()) {
        prop_assume!(config["spec"] != json!({}));
        let live = forced(None, &live, "other", 0);
        let result = forced(Some(&live), &config, "one", 1);
        let schema = thing();
        let applied = FieldSet::of_value(schema.root(), &config);
        prop_assert!(applied.is_subset(&FieldSet::of_value(schema.root(), &result)));
        let mine = applied.difference_with_descendants(&status());
        let nobodys = FieldSet::of_fields([&["apiVersion"][..], &["kind"], &["metadata", "name"]]);
        let mine = mine.difference(&nobodys).to_fields_v1();
        prop_assert_eq!(owned(&result, "one").unwrap_or(json!({})), mine);
    }

    #[test]
    fn applying_nothing_undoes_what_nobody_else_owns(config in object()) {
        let empty = json!({"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "t"}});
        let applied = forced(None, &config, "one", 0);
        let undone = forced(Some(&applied), &empty, "one", 1);
        let left = FieldSet::of_value(thing().root(), &undone);
        let nobodys = FieldSet::of_fields([
            &["apiVersion"][..], &["kind"], &["metadata", "name"], &["metadata", "managedFields"],
            &["spec"], &["status", "ready"],
        ]);
        prop_assert!(left.is_subset(&nobodys), "{}", left);
    }

    #[test]
    fn no_field_has_two_owners_with_different_values(first in object(), second in object()) {
        let live = forced(None, &first, "one", 0);
        let mut updated = second;
        updated["metadata"] = live["metadata"].clone();
        track_update(thing().root(), Some(&live), &mut updated, &at("two", VERSION, 1), &status()).unwrap();
        let refused = apply(thing().root(), Some(&updated), &first, &at("one", VERSION, 2), false, &status());
        match refused {
            Ok(result) => prop_assert_eq!(&forced(Some(&updated), &first, "one", 2), &result),
            Err(ApplyError::Conflicts(conflicts)) => {
                let theirs: Vec<FieldSet> = entries(&updated).collect();
                for conflict in conflicts {
                    prop_assert!(theirs.iter().any(|set| set.contains(&conflict.path)), "{}", conflict.field());
                }
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_set_survives_its_json_form(value in object()) {
        let set = FieldSet::of_value(thing().root(), &value);
        prop_assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()), Ok(set));
    }

    #[test]
    fn sets_obey_the_algebra_of_sets(left in object(), right in object()) {
        let (schema_left, schema_right) = (thing(), thing());
        let left = FieldSet::of_value(schema_left.root(), &left);
        let right = FieldSet::of_value(schema_right.root(), &right);
        let both = left.intersection(&right);
        prop_assert_eq!(left.clone().union(&right), right.clone().union(&left));
        prop_assert_eq!(&left.clone().difference(&right).union(&both), &left);
        prop_assert!(both.is_subset(&left) && both.is_subset(&right));
        prop_assert!(left.difference(&right).intersection(&right).is_empty());
    }
}
