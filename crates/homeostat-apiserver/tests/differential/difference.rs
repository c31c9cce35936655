//! Where two answers differ, down to the field.

use std::fmt;

use serde_json::Value;

use crate::side::Answer;

/// One place where the servers disagree.
#[derive(Debug)]
pub(crate) struct Difference {
    /// `area: sequence / step`
    pub(crate) step: String,
    /// `code`, a header, or a JSON pointer into the body.
    pub(crate) place: String,
    ours: Option<Value>,
    theirs: Option<Value>,
    /// Both bodies, with the first difference of a step only.
    whole: Option<(Value, Value)>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<Value>| {
            value.as_ref().map_or_else(|| "(absent)".to_owned(), Value::to_string)
        };
        writeln!(f, "{}\n  at {}", self.step, self.place)?;
        writeln!(f, "    kube-apiserver {}", show(&self.theirs))?;
        write!(f, "    this server    {}", show(&self.ours))?;
        if let Some((ours, theirs)) = &self.whole {
            write!(f, "\n    whole answers\n      {theirs}\n      {ours}")?;
        }
        Ok(())
    }
}

impl Difference {
    /// Leaves out the whole answers.
    pub(crate) fn shorten(&mut self) {
        self.whole = None;
    }

    /// Whether kube-apiserver's side of it has these words.
    pub(crate) fn theirs_contains(&self, words: &str) -> bool {
        words.is_empty()
            || self.theirs.as_ref().is_some_and(|value| value.to_string().contains(words))
    }
}

/// All differences between the answers to one step.
pub(crate) fn between(
    sequence: &str,
    title: &str,
    ours: &Answer,
    theirs: &Answer,
) -> Vec<Difference> {
    let mut found = Vec::new();
    let note = |found: &mut Vec<Difference>, place: String, ours, theirs| {
        let step = format!("{sequence} / {title}");
        found.push(Difference { step, place, ours, theirs, whole: None });
    };
    if ours.code != theirs.code {
        let codes = (ours.code.into(), theirs.code.into());
        note(&mut found, "code".to_owned(), Some(codes.0), Some(codes.1));
    }
    let names: std::collections::BTreeSet<_> =
        ours.headers.keys().chain(theirs.headers.keys()).collect();
    for name in names {
        let (our, their) = (ours.headers.get(name), theirs.headers.get(name));
        if our != their {
            let value = |header: Option<&String>| header.map(|text| text.as_str().into());
            note(&mut found, name.clone(), value(our), value(their));
        }
    }
    let mut places = Vec::new();
    walk("", Some(&ours.body), Some(&theirs.body), &mut places);
    walk("asked", Some(&ours.asked), Some(&theirs.asked), &mut places);
    for (place, our, their) in places {
        note(&mut found, place, our.cloned(), their.cloned());
    }
    if let Some(first) = found.first_mut() {
        first.whole = Some((ours.body.clone(), theirs.body.clone()));
    }
    found
}

type Place<'a> = (String, Option<&'a Value>, Option<&'a Value>);

fn walk<'a>(
    path: &str,
    ours: Option<&'a Value>,
    theirs: Option<&'a Value>,
    places: &mut Vec<Place<'a>>,
) {
    match (ours, theirs) {
        (ours, theirs) if ours == theirs => {}
        (Some(Value::Object(ours)), Some(Value::Object(theirs))) => {
            let names: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
            for name in names {
                let step = name.replace('~', "~0").replace('/', "~1");
                walk(&format!("{path}/{step}"), ours.get(name), theirs.get(name), places);
            }
        }
        (Some(Value::Array(ours)), Some(Value::Array(theirs))) => {
            for index in 0..ours.len().max(theirs.len()) {
                walk(&format!("{path}/{index}"), ours.get(index), theirs.get(index), places);
            }
        }
        (ours, theirs) => places.push((path.to_owned(), ours, theirs)),
    }
}
