//! Protobuf without its descriptor: a message as what its fields hold, in order.

use serde_json::{Map, Value, json};

/// A message as an object of lists by field number; entries of maps (a name and a value) under their
/// names, unless `keep` refuses them.
pub(super) fn read(bytes: &[u8], keep: &dyn Fn(&str) -> bool) -> Value {
    message(bytes, keep).unwrap_or(Value::Null)
}

fn message(mut bytes: &[u8], keep: &dyn Fn(&str) -> bool) -> Option<Value> {
    let mut fields: Map<String, Value> = Map::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let number = key >> 3;
        if number == 0 || number > 100 {
            return None;
        }
        let value = match key & 7 {
            0 => json!(varint(&mut bytes)?),
            1 => json!(take(&mut bytes, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let content = take(&mut bytes, length)?;
                content_of(content, keep)
            }
            _ => return None,
        };
        if let Some(name) = name(&value)
            && !keep(name)
        {
            continue;
        }
        let list = fields.entry(number.to_string()).or_insert_with(|| json!([]));
        list.as_array_mut()?.push(value);
    }
    for list in fields.values_mut() {
        let Value::Array(items) = list else { continue };
        if items.len() > 1 && items.iter().all(|item| name(item).is_some()) {
            let named = items
                .iter()
                .map(|item| (name(item).unwrap_or_default().to_owned(), item["2"].clone()));
            *list = Value::Object(named.collect());
        }
    }
    Some(Value::Object(fields))
}

/// The name of a map's entry.
fn name(value: &Value) -> Option<&str> {
    let fields = value.as_object().filter(|fields| fields.len() <= 2)?;
    fields.get("1")?.get(0)?.as_str().filter(|_| fields.contains_key("2"))
}

/// Text, or a message. Texts of this format begin with a letter or a mark that begins no message.
fn content_of(content: &[u8], keep: &dyn Fn(&str) -> bool) -> Value {
    let text = std::str::from_utf8(content).ok();
    let plain = text.filter(|text| text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
    // A newline is also the key of the first field.
    match plain {
        // Values of any shape are YAML, of which there are many spellings.
        Some(text) if text.ends_with('\n') && !text.starts_with('\n') => {
            serde_saphyr::from_str(text).unwrap_or_else(|_| json!(text))
        }
        Some(text) if !text.starts_with('\n') && !text.is_empty() => json!(text),
        _ => message(content, keep).unwrap_or_else(|| json!(text)),
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}
