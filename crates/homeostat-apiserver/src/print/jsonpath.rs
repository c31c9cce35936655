//! The part of JSONPath that printer columns use: `.a.b`, `['a']`, `[0]`, `[*]`,
//! `[?(@.type=="Ready")]`.

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// Items whose field equals (or, with `false`, differs from) the value.
    Where(JsonPath, bool, Value),
}

impl JsonPath {
    /// Parses a path that starts with a dot or a bracket; nothing for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut rest = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        rest = rest.strip_prefix('$').unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let end = closing(after)?;
                steps.push(bracket(&after[..end])?);
                rest = &after[end + 1..];
            } else {
                rest = rest.strip_prefix('.')?;
                let (name, after) = field(rest);
                match name.as_str() {
                    "" if after.starts_with('[') => {}
                    "" => return None,
                    "*" => steps.push(Step::All),
                    _ => steps.push(Step::Field(name)),
                }
                rest = after;
            }
        }
        Some(Self { steps })
    }

    /// The first value the path leads to.
    #[must_use]
    pub fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        walk(&self.steps, value)
    }
}

/// The name up to the next dot or bracket, where `\.` is part of the name.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            '.' | '[' => return (name, &text[at..]),
            _ => name.push(c),
        }
    }
    (name, "")
}

/// Where the bracket closes, brackets and quotes inside it taken into account.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (_, _) => {}
        }
    }
    None
}

fn bracket(text: &str) -> Option<Step> {
    let text = text.trim();
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(quoted) = unquote(text) {
        return Some(Step::Field(quoted.to_owned()));
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        let (path, equal, value) = match filter.split_once("==") {
            Some((path, value)) => (path, true, value),
            None => filter.split_once("!=").map(|(path, value)| (path, false, value))?,
        };
        let path = JsonPath::parse(path.trim().strip_prefix('@')?)?;
        let value = value.trim();
        let value = match unquote(value) {
            Some(text) => Value::from(text),
            None => serde_json::from_str(value).ok()?,
        };
        return Some(Step::Where(path, equal, value));
    }
    text.parse().ok().map(Step::Index)
}

fn unquote(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

fn walk<'a>(steps: &[Step], value: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match step {
        Step::Field(name) => walk(rest, value.get(name)?),
        Step::Index(index) => {
            let items = value.as_array()?;
            let at = if *index < 0 { i64::try_from(items.len()).ok()? + index } else { *index };
            walk(rest, items.get(usize::try_from(at).ok()?)?)
        }
        Step::All => match value {
            Value::Array(items) => items.iter().find_map(|item| walk(rest, item)),
            Value::Object(object) => object.values().find_map(|item| walk(rest, item)),
            _ => None,
        },
        Step::Where(path, equal, wanted) => value
            .as_array()?
            .iter()
            .filter(|item| (path.first(item) == Some(wanted)) == *equal)
            .find_map(|item| walk(rest, item)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_paths_of_printer_columns_lead_to_their_values() {
        let object = json!({
            "spec": {"a": [10, 20], "a.b": "dotted"},
            "status": {"conditions": [
                {"type": "Degraded", "status": "False"},
                {"type": "Ready", "status": "True"},
            ]},
        });
        for (path, value) in [
            (".spec.a[0]", json!(10)),
            (".spec.a[-1]", json!(20)),
            (".spec.a\\.b", json!("dotted")),
            (".spec['a.b']", json!("dotted")),
            (".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
            (".status.conditions[?(@.type=='Ready')].status", json!("True")),
            (".status.conditions[*].type", json!("Degraded")),
        ] {
            let parsed = JsonPath::parse(path).unwrap();
            assert_eq!(parsed.first(&object), Some(&value), "{path}");
        }
        assert_eq!(JsonPath::parse(".spec.none.deeper").unwrap().first(&object), None);
        assert_eq!(JsonPath::parse("spec"), None);
        assert_eq!(JsonPath::parse(".a[0"), None);
    }
}
