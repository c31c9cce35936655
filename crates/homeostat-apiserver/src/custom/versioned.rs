//! The versions of a definition: what each says for itself, what all say alike, and that one of
//! them is stored. And what may not change any more once a definition is there.

use serde_json::Value;

use super::kept::{Items, drop_empty};
use super::shared::Stanzas;
use super::{VERSIONS, flag, is_established, list, presented, schemas, structural, text};
use crate::field::{FieldError, Reason};
use crate::go::internal;
use crate::validate::dns_label_1035;

const MOST_FIELDS: usize = 8;
const LONGEST_WARNING: usize = 256;

fn invalid(path: String, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
    FieldError::new(path, Reason::Invalid, value.into(), detail)
}

/// A definition's versions beside those it had before.
pub(super) struct Versions<'a> {
    stanzas: Stanzas<'a>,
    definition: &'a Value,
    old: Option<&'a Value>,
}

impl<'a> Versions<'a> {
    pub(super) fn of(definition: &'a Value, old: Option<&'a Value>) -> Self {
        Self { stanzas: Stanzas::of(definition), definition, old }
    }

    /// Every version has a schema.
    pub(super) fn have_schemas(&self, errors: &mut Vec<FieldError>) {
        for (index, version) in self.stanzas.all.iter().enumerate() {
            if version.pointer("/schema/openAPIV3Schema").is_none() {
                let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
                errors.push(FieldError::required(path, ""));
            }
        }
    }

    /// What each version says for itself, and their names.
    pub(super) fn each(&self, errors: &mut Vec<FieldError>) {
        let all = &self.stanzas.all;
        let mut names: Vec<&str> = all.iter().map(|version| text(version, "/name")).collect();
        for (index, version) in all.iter().enumerate() {
            let path = format!("spec.versions[{index}]");
            let name = names[index];
            let problems = dns_label_1035(name);
            if !problems.is_empty() {
                errors.push(invalid(format!("{path}.name"), name, problems.join(",")));
            }
            deprecation(version, &format!("{path}.deprecationWarning"), errors);
            let part = |part: &str| self.stanzas.own(version, part);
            let subresources = version.get("subresources");
            let schema_path = format!("{path}.schema");
            self.parts(part, has_status(subresources), name, &path, &schema_path, errors);
        }
        let shown = |detail: &str| {
            let is_there = self.definition.pointer("/spec/versions").is_some_and(Value::is_array);
            let versions = if is_there { self.stanzas.apart() } else { Value::Null };
            let shown = internal::form(VERSIONS, &versions);
            invalid("spec.versions".to_owned(), shown, detail)
        };
        let first = names.first().copied();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            errors.push(shown("must contain unique version names"));
        }
        if all.iter().filter(|version| flag(version, "storage")).count() != 1 {
            errors.push(shown("must have exactly one version marked as storage version"));
        }
        let problems = first.map(dns_label_1035).unwrap_or_default();
        if let Some(first) = first.filter(|first| !first.is_empty() && !problems.is_empty()) {
            errors.push(invalid("spec.version".to_owned(), first, problems.join(",")));
        }
    }

    /// What all versions say alike.
    pub(super) fn together(&self, errors: &mut Vec<FieldError>) {
        let all = &self.stanzas.all;
        let has_status = all.iter().any(|version| has_status(version.get("subresources")));
        let first = all.first().map_or("", |version| text(version, "/name"));
        let part = |part: &str| self.stanzas.shared(part);
        self.parts(part, has_status, first, "spec", "spec.validation", errors);
    }

    fn parts(
        &self,
        part: impl Fn(&str) -> Option<&'a Value>,
        has_status: bool,
        name: &str,
        path: &str,
        schema_path: &str,
        errors: &mut Vec<FieldError>,
    ) {
        let schema = part("schema");
        if let Some(schema) = schema {
            let is_known = self.is_known(name, schema);
            errors.extend(schemas::check(schema, has_status, is_known, schema_path));
        }
        if let Some(subresources) = part("subresources") {
            presented::subresources(subresources, path, errors);
        }
        if let Some(columns) = part("additionalPrinterColumns") {
            presented::columns(columns, path, errors);
        }
        if let Some(fields) = part("selectableFields") {
            selectable(fields, schema, path, errors);
        }
    }

    /// Whether a version had this schema before.
    fn is_known(&self, name: &str, schema: &Value) -> bool {
        let before = self.old.into_iter().flat_map(|old| list(old, "/spec/versions"));
        let mut before = before.filter(|version| text(version, "/name") == name);
        before.any(|version| {
            let mut schema = schema.clone();
            if let Some(document) = schema.get_mut("openAPIV3Schema") {
                drop_empty(document, Items::Counted);
            }
            version.get("schema") == Some(&schema)
        })
    }

    /// What is stored must be in a version that is still there.
    pub(super) fn stored(&self, errors: &mut Vec<FieldError>) {
        let all = &self.stanzas.all;
        let path = "status.storedVersions";
        let stored: Vec<&str> =
            list(self.definition, "/status/storedVersions").filter_map(Value::as_str).collect();
        if stored.is_empty() {
            let given = self.definition.pointer("/status/storedVersions").cloned();
            let detail = "must have at least one stored version";
            errors.push(invalid(path.to_owned(), given.unwrap_or(Value::Null), detail));
            return;
        }
        for (index, name) in stored.iter().enumerate() {
            if !all.iter().any(|version| text(version, "/name") == *name) {
                let detail = format!(
                    "missing from spec.versions; {name} was previously a storage version, and must \
                     remain in spec.versions until a storage migration ensures no data remains \
                     persisted in {name} and removes {name} from status.storedVersions"
                );
                errors.push(invalid(format!("{path}[{index}]"), *name, detail));
            }
        }
    }
}

fn has_status(subresources: Option<&Value>) -> bool {
    subresources.is_some_and(|subresources| subresources.get("status").is_some())
}

fn deprecation(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(words) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut refuse = |detail: String| errors.push(invalid(path.to_owned(), words, detail));
    if !flag(version, "deprecated") {
        refuse("can only be set for deprecated versions".to_owned());
        return;
    }
    if words.len() > LONGEST_WARNING {
        refuse(format!("must be <= {LONGEST_WARNING} characters long"));
    }
    if words.is_empty() {
        refuse("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = words.char_indices().find(|(_, char)| char.is_control()) {
        refuse(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index \
             {at}"
        ));
    }
}

fn selectable(fields: &Value, schema: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let fields: Vec<&str> = list(fields, "").map(|field| text(field, "/jsonPath")).collect();
    let schema = schema.map(|schema| schema.get("openAPIV3Schema"));
    let is_top = path == "spec";
    let above = path;
    let path = &format!("{above}.selectableFields");
    let schema = match schema {
        Some(Some(schema)) => schema,
        // At the top, a schema that is there and empty leads nowhere.
        Some(None) if is_top => &Value::Null,
        _ => {
            let detail = if is_top {
                "may only be set when validations.schema is included"
            } else {
                "may only be set when `version.schema.openAPIV3Schema` is not included"
            };
            errors.push(invalid(path.clone(), "", detail));
            return;
        }
    };
    if let Some(why) = structural::unreadable(schema) {
        errors.push(invalid(format!("{above}.schema.openAPIV3Schema"), "", why));
        return;
    }
    let mut found: Vec<&str> = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let path = format!("{path}[{index}].jsonPath");
        if field.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let target = match leads_to(schema, field) {
            Ok(target) => target,
            Err(why) => {
                errors.push(invalid(path, *field, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if field.split('.').nth(1) == Some("metadata") {
            errors.push(invalid(path.clone(), *field, "must not point to fields in metadata"));
        }
        if !matches!(text(target, "/type"), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string \
                          fields and strings with formats are allowed.";
            errors.push(invalid(path.clone(), *field, detail));
        }
        if found.contains(field) {
            errors.push(FieldError::new(path, Reason::Duplicate, (*field).into(), ""));
        } else {
            found.push(field);
        }
    }
    if found.len() > MOST_FIELDS {
        errors.push(FieldError {
            path: path.clone(),
            reason: Reason::TooMany,
            value: Some(found.len().into()),
            detail: format!("must have at most {MOST_FIELDS} items"),
        });
    }
}

/// The schema of the field at a path like `.spec.a`.
fn leads_to<'a>(schema: &'a Value, path: &str) -> Result<&'a Value, String> {
    let Some(names) = path.strip_prefix('.') else {
        let first = path.split(['.', '[', ']']).next().unwrap_or_default();
        return Err(format!("expected [ or . but got: {first}"));
    };
    if path.contains('[') {
        return Err("array notation is not allowed".to_owned());
    }
    names.split('.').try_fold(schema, |schema, name| {
        let field = schema.get("properties").and_then(|fields| fields.get(name));
        field.ok_or_else(|| "does not refer to a valid field".to_owned())
    })
}

/// What an update may not change.
pub(super) fn check_change(definition: &Value, old: &Value) -> Vec<FieldError> {
    let served = is_established(old);
    let fixed = [
        ("/spec/scope", served),
        ("/spec/names/kind", served),
        ("/spec/group", true),
        ("/spec/names/plural", true),
    ];
    let changed = fixed
        .into_iter()
        .filter(|(pointer, fixed)| *fixed && definition.pointer(pointer) != old.pointer(pointer));
    changed
        .map(|(pointer, _)| {
            let path = pointer.trim_start_matches('/').replace('/', ".");
            invalid(path, text(definition, pointer), "field is immutable")
        })
        .collect()
}
