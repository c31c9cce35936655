//! The fields of an object and of its metadata, in order, as they stand in its JSON. Nothing else is
//! looked into, nothing is copied.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::Error as _;

use super::marks;

/// What the server puts around an object.
const EVENT_TYPE: &str = "type";
const EVENT_OBJECT: &str = "object";

/// The fields of a JSON object, values untouched.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(pub(crate) Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Fields<'a> {
    /// Reads the outer level of an object.
    pub(super) fn of(json: &'a str) -> Result<Self, serde_json::Error> {
        Walk::over(json, 1)?.fields(0)
    }

    /// The text of a field's value; `null` counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| *value).filter(|text| *text != "null")
    }

    /// A field as a type that may borrow from it; `None` when it is absent.
    pub(crate) fn read<T: Deserialize<'a>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, serde_json::Error> {
        self.get(name).map(serde_json::from_str).transpose()
    }

    /// A field that is text; `None` when it is absent.
    pub(crate) fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, serde_json::Error> {
        self.get(name).map(text).transpose()
    }
}

/// An object opened two levels deep.
#[derive(Debug, Default)]
pub(crate) struct Scan<'a> {
    /// Everything but the metadata.
    pub(crate) fields: Fields<'a>,
    pub(crate) metadata: Fields<'a>,
}

impl<'a> Scan<'a> {
    /// Reads the outer levels of an object.
    ///
    /// # Errors
    /// When the text is no object, or one whose metadata is none. What is within other fields is not
    /// judged.
    pub(crate) fn of(json: &'a str) -> Result<Self, serde_json::Error> {
        Walk::over(json, 2)?.object(0)
    }

    /// Reads a line of a watch: the type of the event, and its object.
    ///
    /// # Errors
    /// As [`Self::of`], and when one of the two is missing.
    pub(crate) fn of_event(line: &'a str) -> Result<(Cow<'a, str>, Self), serde_json::Error> {
        let walk = Walk::over(line, 3)?;
        let (mut kind, mut object) = (None, None);
        for part in walk.parts(0)? {
            let Part { name, value, within } = part?;
            match &*name {
                EVENT_TYPE => kind = Some(text(value)?),
                EVENT_OBJECT => object = Some(walk.object(within)?),
                _ => {}
            }
        }
        let missing = serde_json::Error::missing_field;
        let kind = kind.ok_or_else(|| missing(EVENT_TYPE))?;
        Ok((kind, object.ok_or_else(|| missing(EVENT_OBJECT))?))
    }
}

/// A text and the marks in it.
struct Walk<'a> {
    text: &'a str,
    marks: Vec<usize>,
}

/// A field of an object: its name, its value, and which mark is the first within the value, if any
/// is.
struct Part<'a> {
    name: Cow<'a, str>,
    value: &'a str,
    within: usize,
}

impl<'a> Walk<'a> {
    /// Nothing but one object or list may be in the text.
    fn over(text: &'a str, deepest: usize) -> Result<Self, serde_json::Error> {
        let text = trimmed(text);
        let marks = marks::find(text, deepest).ok_or_else(|| wrong("a string or a bracket"))?;
        let ends = (marks.first().copied(), marks.last().copied());
        if ends != (Some(0), text.len().checked_sub(1)) {
            return Err(wrong("what is before or after the object"));
        }
        Ok(Self { text, marks })
    }

    fn object(&self, opening: usize) -> Result<Scan<'a>, serde_json::Error> {
        let mut scan = Scan { fields: Fields(Vec::with_capacity(8)), metadata: Fields::default() };
        for part in self.parts(opening)? {
            let Part { name, value, within } = part?;
            if name == "metadata" {
                scan.metadata = self.fields(within)?;
            } else {
                scan.fields.0.push((name, value));
            }
        }
        Ok(scan)
    }

    fn fields(&self, opening: usize) -> Result<Fields<'a>, serde_json::Error> {
        let mut fields = Vec::with_capacity(16);
        for part in self.parts(opening)? {
            let Part { name, value, .. } = part?;
            fields.push((name, value));
        }
        Ok(Fields(fields))
    }

    /// The fields of the object that begins at that mark.
    fn parts(
        &self,
        opening: usize,
    ) -> Result<impl Iterator<Item = Result<Part<'a>, serde_json::Error>>, serde_json::Error> {
        if self.at(opening) != b'{' {
            return Err(wrong("what should be an object"));
        }
        let mut mark = opening;
        let is_empty = self.at(mark + 1) == b'}' && self.between(mark, mark + 1).is_empty();
        let mut is_over = is_empty;
        Ok(std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            let part = self.part(mark);
            match &part {
                Ok((_, end)) => (mark, is_over) = (*end, self.at(*end) == b'}'),
                Err(_) => is_over = true,
            }
            Some(part.map(|(part, _)| part))
        }))
    }

    /// The field after a mark, and the mark after the field.
    fn part(&self, before: usize) -> Result<(Part<'a>, usize), serde_json::Error> {
        let colon = before + 1;
        if self.at(colon) != b':' {
            return Err(wrong("a field"));
        }
        let name = text(self.between(before, colon))?;
        let within = colon + 1;
        let (mut end, mut depth) = (within, 0_usize);
        loop {
            match self.at(end) {
                b'{' | b'[' => depth += 1,
                b',' | b'}' if depth == 0 => break,
                b'}' | b']' if depth > 0 => depth -= 1,
                b',' | b':' if depth > 0 => {}
                _ => return Err(wrong("a value")),
            }
            end += 1;
        }
        let value = self.between(colon, end);
        let is_one = match end == within {
            true => !value.is_empty(),
            false => value.starts_with(['{', '[']) && value.ends_with(['}', ']']),
        };
        if !is_one {
            return Err(wrong("a value"));
        }
        Ok((Part { name, value, within }, end))
    }

    /// The byte at a mark; nothing that is looked for beyond the last one.
    fn at(&self, mark: usize) -> u8 {
        self.marks.get(mark).map_or(0, |place| self.text.as_bytes()[*place])
    }

    /// What stands between two marks.
    fn between(&self, before: usize, after: usize) -> &'a str {
        trimmed(&self.text[self.marks[before] + 1..self.marks[after]])
    }
}

/// A string as it is meant; copied only where something in it is escaped.
fn text(json: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    /// Borrows where nothing is escaped; `Cow` alone would always copy.
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let is_plain = |byte: u8| !matches!(byte, ..b' ' | b'"' | b'\\');
    match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(plain) if plain.bytes().all(is_plain) => Ok(Cow::Borrowed(plain)),
        _ => serde_json::from_str::<Text<'_>>(json).map(|Text(text)| text),
    }
}

/// Without the white space that JSON knows.
fn trimmed(json: &str) -> &str {
    json.trim_matches([' ', '\t', '\n', '\r'])
}

fn wrong(what: &str) -> serde_json::Error {
    serde_json::Error::custom(format!("{what} is not as JSON has it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(fields: &Fields<'_>) -> Vec<String> {
        fields.0.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    fn fields_are_as_they_stand_in_the_text() {
        let json =
            r#" { "a" : [1, {"b": "}"}] ,"metadata":{"name":"n","empty":{ }},"é\n":"x,y" } "#;
        let scan = Scan::of(json).unwrap();
        assert_eq!(shown(&scan.fields), [r#"a=[1, {"b": "}"}]"#, "é\n=\"x,y\""]);
        assert_eq!(shown(&scan.metadata), [r#"name="n""#, "empty={ }"]);
        assert_eq!(scan.metadata.text("name").unwrap().as_deref(), Some("n"));
        assert_eq!(scan.metadata.get("absent"), None);
        assert_eq!(shown(&Fields::of("{}").unwrap()), [""; 0]);
    }

    #[test]
    fn a_line_of_a_watch_is_its_type_and_its_object() {
        let line = r#"{"type":"ADDED","object":{"metadata":{"name":"n"},"spec":{"a":1}}}"#;
        let (kind, object) = Scan::of_event(line).unwrap();
        assert_eq!((&*kind, object.metadata.get("name")), ("ADDED", Some(r#""n""#)));
        assert_eq!(shown(&object.fields), [r#"spec={"a":1}"#]);
        for line in [r#"{"type":"ADDED"}"#, r#"{"object":{}}"#, r#"{"type":1,"object":{}}"#] {
            assert!(Scan::of_event(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for json in [
            "",
            "5",
            "[]",
            "null",
            "{",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{a:1}"#,
            "{} 1",
            r#"{"a":1},"#,
            r#"{"a":1} :"#,
            r#",{"a":1}"#,
            r#"{"a":x{}}"#,
            r#"{"a":{}x}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":[1}"#,
            r#"{"a":1]"#,
            r#"{"metadata":null}"#,
            r#"{"metadata":[]}"#,
            r#"{"metadata":"{}"}"#,
            r#"{:1}"#,
        ] {
            assert!(Scan::of(json).is_err(), "{json}");
        }
    }
}
