//! What a delete is asked for.

use std::sync::Arc;

use serde_json::Value;

use super::{DRY_RUN, Query, flag, number, unregistered};
use crate::admission::Inquiry;
use crate::auth::User;
use crate::field::{FieldError, Reason};
use crate::go::json_type;
use crate::kinds::Propagation;
use crate::status::Status;

/// How an object is deleted.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    /// What webhooks are asked about the delete.
    pub inquiry: Arc<Inquiry>,
    /// Who deletes; nobody in particular when the server itself does.
    pub user: Option<Arc<User>>,
    /// Everything but the commit.
    pub dry_run: bool,
    /// Seconds the object has to finish; the kind's own default when unset.
    pub grace: Option<i64>,
    /// What happens to dependents; the kind's own default when unset.
    pub propagation: Option<Propagation>,
    /// The same in the old words, as they were given.
    pub orphan: Option<bool>,
    /// It is one of many that go together, which are not named.
    pub of_many: bool,
    /// Only the object with this uid.
    pub uid: Option<String>,
    /// Only the object at this revision.
    pub revision: Option<String>,
}

/// What a body asks for, or the parameters where there is none.
#[derive(Default)]
struct Asked {
    grace: Option<i64>,
    propagation: Option<String>,
    orphan: Option<bool>,
    dry_run: Vec<String>,
    uid: Option<String>,
    revision: Option<String>,
}

impl Asked {
    fn by_parameters(query: &Query) -> Result<Self, Status> {
        let given = |name: &str| query.get(name).cloned();
        Ok(Self {
            grace: number(query, "gracePeriodSeconds")?,
            propagation: given("propagationPolicy"),
            orphan: given("orphanDependents").map(|_| flag(query, "orphanDependents")),
            dry_run: given(DRY_RUN)
                .iter()
                .flat_map(|all| all.split('\n'))
                .map(str::to_owned)
                .collect(),
            uid: given("uid"),
            revision: None,
        })
    }

    fn by_body(body: &Value) -> Result<Self, Status> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let words = |value: &Value| value.as_array()?.iter().map(text).collect();
        let preconditions =
            member(body, "DeleteOptions", "preconditions", "v1.Preconditions", |value| {
                value.is_object().then(|| value.clone())
            })?;
        let preconditions = preconditions.unwrap_or_default();
        let owner = "Preconditions.preconditions";
        Ok(Self {
            grace: member(body, "DeleteOptions", "gracePeriodSeconds", "int64", Value::as_i64)?,
            propagation: member(
                body,
                "DeleteOptions",
                "propagationPolicy",
                "v1.DeletionPropagation",
                text,
            )?,
            orphan: member(body, "DeleteOptions", "orphanDependents", "bool", Value::as_bool)?,
            dry_run: member(body, "DeleteOptions", "dryRun", "[]string", words)?
                .unwrap_or_default(),
            uid: member(&preconditions, owner, "uid", "types.UID", text)?,
            revision: member(&preconditions, owner, "resourceVersion", "string", text)?,
        })
    }
}

/// A member of the options, absent or null or of its type.
fn member<T>(
    of: &Value,
    owner: &str,
    name: &str,
    wanted: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>, Status> {
    let Some(value) = of.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    let found = match value {
        Value::Number(number) if wanted == "int64" => format!("number {number}"),
        other => json_type(other).to_owned(),
    };
    read(value).map(Some).ok_or_else(|| {
        Status::bad_request(format!(
            "json: cannot unmarshal {found} into Go struct field {owner}.{name} of type {wanted}"
        ))
    })
}

impl DeleteOptions {
    /// Reads the body; without one, the parameters that stand for its fields.
    ///
    /// # Errors
    /// 400 or 422 for values that are not options.
    pub fn parse(query: &Query, body: Option<&Value>) -> Result<Self, Status> {
        let asked = match body {
            None => Asked::by_parameters(query)?,
            Some(body) => {
                let kind = body.get("kind").and_then(Value::as_str).unwrap_or("DeleteOptions");
                if kind != "DeleteOptions" {
                    let version = body.get("apiVersion").and_then(Value::as_str).unwrap_or("");
                    let version = if version.is_empty() { "meta.k8s.io/v1" } else { version };
                    return Err(Status::bad_request(unregistered(kind, version)));
                }
                Asked::by_body(body)?
            }
        };
        let mut errors = Vec::new();
        if let (Some(word), Some(_)) = (&asked.propagation, asked.orphan) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            let word = word.as_str().into();
            errors.push(FieldError::new("propagationPolicy", Reason::Invalid, word, why));
        }
        let propagation = match (asked.propagation.as_deref(), asked.orphan) {
            (None, None) => None,
            (None, Some(true)) | (Some("Orphan"), _) => Some(Propagation::Orphan),
            (None, Some(false)) | (Some("Background"), _) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some(word), _) => {
                let known = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
                let (word, reason) = (word.into(), Reason::NotSupported);
                errors.push(FieldError::new("propagationPolicy", reason, word, known));
                None
            }
        };
        if asked.dry_run.iter().any(|word| word != "All") {
            let (words, known) = (asked.dry_run.clone().into(), "supported values: \"All\"");
            errors.push(FieldError::new("dryRun", Reason::NotSupported, words, known));
        }
        if !errors.is_empty() {
            return Err(Status::invalid_kind("meta.k8s.io", "DeleteOptions", "", &errors));
        }
        Ok(Self {
            inquiry: Arc::default(),
            user: None,
            dry_run: !asked.dry_run.is_empty(),
            grace: asked.grace,
            propagation,
            orphan: asked.orphan,
            of_many: false,
            uid: asked.uid,
            revision: asked.revision,
        })
    }
}
