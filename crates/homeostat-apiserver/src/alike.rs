//! JSON values as members of sets and keys of maps, so that finding one among many does not mean
//! comparing it with each.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Number, Value};

/// A text that two values share exactly if they are equal, whatever the order of their fields.
pub(crate) fn key(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in fields {
                let _ = write!(text, "{name:?}:");
                write(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            text.push(']');
        }
        // There are two of it.
        Value::Number(number) if is_float_zero(number) => text.push_str("0.0"),
        scalar => {
            let _ = write!(text, "{scalar}");
        }
    }
}

fn is_float_zero(number: &Number) -> bool {
    number.is_f64() && number.as_f64() == Some(0.0)
}

/// The positions of values that stand in the list before, too.
pub(crate) fn repeated<'v>(values: impl IntoIterator<Item = &'v Value>) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let positions = values.into_iter().enumerate();
    positions.filter(|(_, value)| !seen.insert(key(value))).map(|(position, _)| position).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_equal_where_values_are_and_nowhere_else() {
        let values = [
            json!(null),
            json!(true),
            json!(1),
            json!(1.0),
            json!(0.0),
            json!(-0.0),
            json!("1"),
            json!(""),
            json!([]),
            json!([[]]),
            json!(["a", "b"]),
            json!(["a,b"]),
            json!({}),
            json!({"a": 1, "b": {"c": 2, "d": 3}}),
            json!({"b": {"d": 3, "c": 2}, "a": 1}),
            json!({"a": 1, "b": {"c": 2}, "d": 3}),
            json!({"a\":1,\"b": 1}),
        ];
        for one in &values {
            for other in &values {
                assert_eq!(one == other, key(one) == key(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn every_repetition_is_found_at_its_own_place() {
        let values = [json!({"a": 1, "b": 2}), json!(1), json!({"b": 2, "a": 1}), json!(1)];
        assert_eq!(repeated(&values), [2, 3]);
    }
}
