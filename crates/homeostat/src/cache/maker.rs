//! From what the server sent to what is kept: version and kind put in, what nobody reads cut out,
//! what objects have in common shared.

use serde::de::Error as _;

use super::body::Packer;
use super::header::Header;
use super::intern::Interner;
use super::scan::{Fields, Scan};
use super::{Entry, Transform};
use crate::contained::contained;
use crate::kind::Kind;

/// How the objects of one informer are written down.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    /// Items of a list come without version and kind; readers should not have to know.
    beginning: String,
    keep_managed_fields: bool,
    /// Whether the runtime speaks in the conditions of such objects, unless a controller says otherwise.
    is_marked: bool,
}

impl Form {
    pub(crate) fn new(kind: &Kind, keep_managed_fields: bool) -> Self {
        let mut beginning = String::from("{");
        push_field(&mut beginning, "apiVersion", &quoted(&kind.api_version()));
        push_field(&mut beginning, "kind", &quoted(kind.kind()));
        beginning.push_str(",\"metadata\":{");
        Self { beginning, keep_managed_fields, is_marked: !kind.is_of_kubernetes() }
    }

    /// Writes down the JSON that is kept.
    pub(super) fn write(&self, scan: &Scan<'_>, body: &mut String) {
        let kept = |field: &str| self.keep_managed_fields || field != "managedFields";
        let named = |field: &str| field == "apiVersion" || field == "kind";
        let fields = size(&scan.metadata, kept) + size(&scan.fields, |field| !named(field));
        body.reserve(self.beginning.len() + fields);
        body.push_str(&self.beginning);
        push_all(body, &scan.metadata, kept);
        body.push('}');
        push_all(body, &scan.fields, |field| !named(field));
        body.push('}');
    }
}

/// Makes the entries of one informer, and knows what its objects have in common.
#[derive(Debug)]
pub(crate) struct Maker {
    form: Form,
    transform: Option<Transform>,
    interner: Interner,
    packer: Packer,
    /// The text of one object, used again for the next.
    text: String,
}

impl Maker {
    pub(crate) fn new(form: Form, transform: Option<Transform>) -> Self {
        let (interner, packer) = (Interner::default(), Packer::new(form.is_marked));
        Self { form, transform, interner, packer, text: String::new() }
    }

    /// The entry of an object that was scanned. One whose transform panics cannot be read.
    pub(crate) fn entry(&mut self, scan: &Scan<'_>) -> Result<Entry, serde_json::Error> {
        // The header stays as the server sent it: keys, owners and selectors do not change.
        let header = Header::parse(&scan.metadata, &mut self.interner)?;
        self.write(scan);
        self.transform()?;
        Ok(Entry { header, body: self.packer.pack(&self.text) })
    }

    /// The entry of an object that is gone. That it went must be heard of, so it is as the server
    /// sent it where it cannot be transformed.
    pub(crate) fn last_entry(&mut self, scan: &Scan<'_>) -> Result<Entry, serde_json::Error> {
        let header = Header::parse(&scan.metadata, &mut self.interner)?;
        self.write(scan);
        if self.transform().is_err() {
            self.write(scan);
        }
        Ok(Entry { header, body: self.packer.pack(&self.text) })
    }

    fn write(&mut self, scan: &Scan<'_>) {
        self.text.clear();
        self.form.write(scan, &mut self.text);
    }

    fn transform(&mut self) -> Result<(), serde_json::Error> {
        let Some(transform) = &self.transform else { return Ok(()) };
        let mut value = serde_json::from_str(&self.text)?;
        contained(|| transform.apply(&mut value))
            .map_err(|said| serde_json::Error::custom(format!("its transform panicked: {said}")))?;
        let json = value.to_string();
        self.text.clear();
        self.form.write(&Scan::of(&json)?, &mut self.text);
        Ok(())
    }
}

/// Room for the fields: quotes, colon and comma of each, and the bracket after them.
fn size(fields: &Fields<'_>, kept: impl Fn(&str) -> bool) -> usize {
    let each = fields.0.iter().filter(|(field, _)| kept(field));
    each.map(|(field, value)| field.len() + value.len() + 4).sum::<usize>() + 1
}

fn push_all(object: &mut String, fields: &Fields<'_>, kept: impl Fn(&str) -> bool) {
    for (field, value) in fields.0.iter().filter(|(field, _)| kept(field)) {
        push_field(object, field, value);
    }
}

fn push_field(object: &mut String, name: &str, value: &str) {
    if !object.ends_with('{') {
        object.push(',');
    }
    if name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\') {
        object.push('"');
        object.push_str(name);
        object.push('"');
    } else {
        object.push_str(&quoted(name));
    }
    object.push(':');
    object.push_str(value);
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
