//! JSON where YAML is expected, which is what most clients send: a reader of JSON is a tenth of the work.
//!
//! Only what means the same in both is read here. Whatever could be told apart (escapes, repeated keys,
//! fractions and exponents, long keys, line breaks between tokens), and whatever is no JSON, is left to the
//! reader of YAML, with its words for what is wrong.

use serde::de::DeserializeSeed as _;
use serde_json::Value;

use super::tree::{Reading, Tree};

/// YAML looks no farther than 1024 for the colon of a key; there may be spaces before it.
const LONGEST_KEY: usize = 512;

/// The value, if a reader of YAML would read the same.
pub(super) fn read(bytes: &[u8]) -> Option<Value> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
    if bytes.first() != Some(&b'{') || !bytes.iter().all(is_plain) {
        return None;
    }
    let mut reading = Reading::default();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Tree(&mut reading).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    let is_same = reading.duplicates.is_empty() && !reading.has_floats && means_the_same(&value);
    is_same.then_some(value)
}

fn means_the_same(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_i64(),
        Value::Array(items) => items.iter().all(means_the_same),
        Value::Object(fields) => fields
            .iter()
            .all(|(name, value)| name != "<<" && name.len() < LONGEST_KEY && means_the_same(value)),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::yaml_of_any_style;
    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let text = || "[ -~]{0,12}";
        let written = ["1.0", "1e3", "-0", "-0.0", "4503599627370497.4", "18446744073709551615"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            // Put in below as it is written here.
            prop::sample::select(written.to_vec()).prop_map(|number| format!("#{number}#").into()),
            text().prop_map(Value::from),
            prop::sample::select(vec!["~", "null", "yes", "1", "0x1f", "- a", "a: b", "# c", "<<"])
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((text(), inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_read_as_json_is_what_a_reader_of_yaml_reads(
            value in values(), spaced in any::<bool>(), line in any::<bool>(),
        ) {
            let text = json!({ "a": value }).to_string();
            let mut text = text.replace("\"#", "").replace("#\"", "");
            if spaced {
                text = text.replace("\":", "\" : ").replace("},", "} , ");
            }
            if line {
                text.push('\n');
            }
            if let Some(read) = read(text.as_bytes()) {
                prop_assert_eq!(read, yaml_of_any_style(text.as_bytes()).unwrap().value);
            }
        }
    }

    #[test]
    fn what_clients_send_is_read_as_json_and_the_rest_is_left_alone() {
        assert_eq!(read(b"{\"a\": [1, \"yes\", null]}\n"), Some(json!({"a": [1, "yes", null]})));
        for other in ["a: 1", "{a: 1}", "{\"a\": 1.0}", "{\"a\": 1, \"a\": 2}", "{\"a\":\n1}"] {
            assert_eq!(read(other.as_bytes()), None, "{other}");
        }
        assert_eq!(read(br#"{"a": "\n"}"#), None);
        assert_eq!(read(br#"{"<<": {"a": 1}}"#), None);
    }
}
