//! What a request asks for besides its object: the query parameters and `DeleteOptions`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::selector::Selector;
use crate::admission::Inquiry;
use crate::auth::User;
use crate::field::{FieldError, Reason};
use crate::kinds::Propagation;
use crate::status::Status;

/// Query parameters, first value of each name.
pub type Query = BTreeMap<String, String>;

/// What to do about fields nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them and warn; the default.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// How a write is done.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Everything but the commit.
    pub dry_run: bool,
    /// Who owns the fields that are written.
    pub manager: String,
    /// Whether the request itself named the manager.
    pub manager_given: bool,
    /// What to do about fields nobody knows.
    pub validation: FieldValidation,
    /// What the request itself says about fields nobody knows.
    pub validation_given: Option<&'static str>,
    /// Take fields from other managers (apply only).
    pub force: bool,
    /// Who writes; nobody in particular when the server itself does, which may do everything.
    pub user: Option<Arc<User>>,
    /// The write is a patch.
    pub is_patch: bool,
    /// What webhooks are asked about the write.
    pub inquiry: Arc<Inquiry>,
}

/// Reads the query of a request; of a parameter that is there twice the first counts.
pub(crate) fn read(text: &str) -> Query {
    let mut query = Query::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        query.entry(name.into_owned()).or_insert_with(|| value.into_owned());
    }
    query
}

fn text<'a>(query: &'a Query, name: &str) -> &'a str {
    query.get(name).map_or("", String::as_str)
}

/// Whether a boolean parameter is set, as Go reads them: present and neither `0` nor `false`.
pub(crate) fn flag(query: &Query, name: &str) -> bool {
    query.get(name).is_some_and(|value| !matches!(value.as_str(), "0" | "false"))
}

impl WriteOptions {
    /// Reads the parameters; `agent` is the manager of those who name none, which an apply must.
    ///
    /// # Errors
    /// 422 for an unknown `dryRun` or `fieldValidation`.
    pub fn parse(
        query: &Query,
        agent: &str,
        options_kind: &str,
        applies: bool,
    ) -> Result<Self, Status> {
        let mut errors = Vec::new();
        let mut unsupported = |field: &str, value: Value, accepted: &str| {
            errors.push(FieldError::new(field, Reason::NotSupported, value, accepted));
        };
        let dry_run = match text(query, "dryRun") {
            "" => false,
            "All" => true,
            other => {
                unsupported("dryRun", vec![other].into(), "supported values: \"All\"");
                false
            }
        };
        let validation = match text(query, "fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let accepted = "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
                unsupported("fieldValidation", other.into(), accepted);
                FieldValidation::Warn
            }
        };
        let given = text(query, "fieldManager");
        if applies && given.is_empty() {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        if !errors.is_empty() {
            return Err(Status::invalid_kind("meta.k8s.io", options_kind, "", &errors));
        }
        let agent = agent.split('/').next().unwrap_or_default();
        let manager = match (given, agent) {
            ("", "") => "unknown",
            ("", agent) => agent,
            (given, _) => given,
        };
        Ok(Self {
            dry_run,
            manager: manager.to_owned(),
            manager_given: !given.is_empty(),
            validation,
            validation_given: match text(query, "fieldValidation") {
                "Warn" => Some("Warn"),
                "Ignore" => Some("Ignore"),
                "Strict" => Some("Strict"),
                _ => None,
            },
            force: flag(query, "force"),
            user: None,
            is_patch: options_kind == "PatchOptions",
            inquiry: Arc::default(),
        })
    }
}

/// Which revision a read must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// The current state.
    Latest,
    /// Whatever is at hand (here: the current state).
    Any,
    /// Not older than this.
    NotOlderThan(u64),
    /// Exactly this one.
    Exact(u64),
}

/// What a list or a watch reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOptions {
    /// Which objects.
    pub selector: Selector,
    /// The revision.
    pub freshness: Freshness,
    /// At most so many objects; 0 is no limit.
    pub limit: usize,
    /// Where the page before ended.
    pub continue_token: String,
    /// Stream changes instead of listing.
    pub watch: bool,
    /// The watch wants bookmarks.
    pub bookmarks: bool,
    /// The watch begins with the current state and says where it ends.
    pub initial_events: Option<bool>,
    /// How long the watch lasts.
    pub timeout_seconds: Option<u64>,
}

impl ListOptions {
    /// Reads the parameters; `check` says whether the kind has the selected fields.
    ///
    /// # Errors
    /// 400 for what cannot be read, 422 for combinations that make no sense.
    pub fn parse(
        query: &Query,
        check: impl FnOnce(&Selector) -> Result<(), Status>,
    ) -> Result<Self, Status> {
        let number = |name: &str| match text(query, name) {
            "" => Ok(None),
            value => value.parse::<u64>().map(Some).map_err(|_| {
                Status::bad_request(format!("strconv.ParseInt: parsing {value:?}: invalid syntax"))
            }),
        };
        let limit = usize::try_from(number("limit")?.unwrap_or(0)).unwrap_or(usize::MAX);
        let timeout_seconds = number("timeoutSeconds")?;
        let selector = Selector::parse(text(query, "labelSelector"), text(query, "fieldSelector"))?;
        let continue_token = text(query, "continue").to_owned();
        let watch = flag(query, "watch");
        let initial_events =
            query.contains_key("sendInitialEvents").then(|| flag(query, "sendInitialEvents"));
        check_combination(query, watch, &continue_token, initial_events)?;
        check(&selector)?;
        let freshness = freshness(query, watch, limit)?;
        Ok(Self {
            selector,
            freshness,
            limit,
            continue_token,
            watch,
            bookmarks: flag(query, "allowWatchBookmarks"),
            initial_events,
            timeout_seconds,
        })
    }
}

/// A `resourceVersion` as a number; `None` for the empty one.
pub(crate) fn revision(text: &str) -> Result<Option<u64>, Status> {
    match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            Status::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {text:?}: \
                 strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))
        }),
    }
}

/// Parameters that make no sense together.
fn check_combination(
    query: &Query,
    watch: bool,
    continue_token: &str,
    initial_events: Option<bool>,
) -> Result<(), Status> {
    let given = text(query, "resourceVersion");
    let matching = text(query, "resourceVersionMatch");
    let mut errors = Vec::new();
    let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
    if watch && initial_events.is_some() && matching != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        forbid("resourceVersionMatch", why);
    }
    if watch && initial_events.is_none() && !matching.is_empty() {
        let why =
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        forbid("resourceVersionMatch", why);
    }
    if !watch && initial_events.is_some() {
        forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    if !watch && !matching.is_empty() {
        if given.is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            forbid("resourceVersionMatch", why);
        }
        if !continue_token.is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            forbid("resourceVersionMatch", why);
        }
        if matching == "Exact" && given == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            forbid("resourceVersionMatch", why);
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            errors.push(FieldError::new(
                "resourceVersionMatch",
                Reason::NotSupported,
                matching.into(),
                "supported values: \"Exact\", \"NotOlderThan\", \"\"",
            ));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid_kind("meta.k8s.io", "ListOptions", "", &errors))
}

fn freshness(query: &Query, watch: bool, limit: usize) -> Result<Freshness, Status> {
    let given = text(query, "resourceVersion");
    let matching = text(query, "resourceVersionMatch");
    let given = revision(given).map_err(|status| {
        let plain = status.message.trim_start_matches("invalid resource version: ");
        // A watch gives no reason for the same refusal.
        if watch { Status::unexplained(plain) } else { status }
    })?;
    Ok(match (given, matching) {
        (None, _) => Freshness::Latest,
        (Some(0), _) => Freshness::Any,
        (Some(revision), "Exact") => Freshness::Exact(revision),
        (Some(revision), "") if limit > 0 && !watch => Freshness::Exact(revision),
        (Some(revision), _) => Freshness::NotOlderThan(revision),
    })
}

/// The words for a kind that a version does not have.
pub(crate) fn unregistered(kind: &str, version: &str) -> String {
    let scheme = "pkg/runtime/scheme.go:111";
    format!("no kind {kind:?} is registered for version {version:?} in scheme {scheme:?}")
}

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
        let grace = given("gracePeriodSeconds").filter(|text| !text.is_empty());
        let number = |text: String| {
            text.parse().map_err(|_| {
                Status::bad_request(format!("gracePeriodSeconds {text:?} is not a number"))
            })
        };
        Ok(Self {
            grace: grace.map(number).transpose()?,
            propagation: given("propagationPolicy"),
            orphan: given("orphanDependents").map(|_| flag(query, "orphanDependents")),
            dry_run: given("dryRun").into_iter().filter(|word| !word.is_empty()).collect(),
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
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if wanted == "int64" => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
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
            uid: asked.uid,
            revision: asked.revision,
        })
    }
}
