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

impl DeleteOptions {
    /// Reads the body, and the parameters that stand for fields of it.
    ///
    /// # Errors
    /// 400 or 422 for values that are not options.
    pub fn parse(query: &Query, body: Option<&Value>) -> Result<Self, Status> {
        let empty = Value::Null;
        let body = body.unwrap_or(&empty);
        let kind = body.get("kind").and_then(Value::as_str).unwrap_or("DeleteOptions");
        if kind != "DeleteOptions" {
            let version = body.get("apiVersion").and_then(Value::as_str).unwrap_or("");
            let version = if version.is_empty() { "meta.k8s.io/v1" } else { version };
            return Err(Status::bad_request(unregistered(kind, version)));
        }
        let grace = match body.get("gracePeriodSeconds").and_then(Value::as_i64) {
            Some(grace) => Some(grace),
            None => match text(query, "gracePeriodSeconds") {
                "" => None,
                value => Some(value.parse().map_err(|_| {
                    Status::bad_request(format!("gracePeriodSeconds {value:?} is not a number"))
                })?),
            },
        };
        let word = body
            .get("propagationPolicy")
            .and_then(Value::as_str)
            .unwrap_or_else(|| text(query, "propagationPolicy"));
        let orphan = body.get("orphanDependents").and_then(Value::as_bool).or_else(|| {
            query.contains_key("orphanDependents").then(|| flag(query, "orphanDependents"))
        });
        let refuse = |reason, detail: &str| {
            let error = FieldError::new("propagationPolicy", reason, word.into(), detail);
            Err(Status::invalid_kind("meta.k8s.io", "DeleteOptions", "", &[error]))
        };
        if !word.is_empty() && orphan.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            return refuse(Reason::Invalid, why);
        }
        let propagation = match (word, orphan) {
            ("", None) => None,
            ("", Some(true)) | ("Orphan", _) => Some(Propagation::Orphan),
            ("", Some(false)) | ("Background", _) => Some(Propagation::Background),
            ("Foreground", _) => Some(Propagation::Foreground),
            _ => {
                return refuse(
                    Reason::NotSupported,
                    "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
                );
            }
        };
        let dry_run = text(query, "dryRun") == "All"
            || body.get("dryRun").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
        let precondition =
            |field: &str| body.get("preconditions")?.get(field)?.as_str().map(str::to_owned);
        Ok(Self {
            inquiry: Arc::default(),
            user: None,
            dry_run,
            grace,
            propagation,
            uid: precondition("uid"),
            revision: precondition("resourceVersion"),
        })
    }
}
