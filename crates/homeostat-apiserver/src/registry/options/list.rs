//! What a list or a watch is asked for.

use std::num::{IntErrorKind, ParseIntError};

use super::{Query, flag, number, text};
use crate::field::{FieldError, Reason};
use crate::registry::selector::Selector;
use crate::status::Status;

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
        let Read { limit, timeout_seconds, selector } = Read::from(query)?;
        let continue_token = text(query, "continue").to_owned();
        let watch = flag(query, "watch");
        let initial_events =
            query.contains_key("sendInitialEvents").then(|| flag(query, "sendInitialEvents"));
        check_combination(query, watch, &continue_token, initial_events)?;
        check(&selector)?;
        let freshness = freshness(query, watch, limit)?;
        // Whoever takes what is at hand gets all of it.
        let limit = if freshness == Freshness::Any { 0 } else { limit };
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

/// What has to be read before anything of a list or a watch is known: all of it, or nothing.
struct Read {
    limit: usize,
    timeout_seconds: Option<u64>,
    selector: Selector,
}

impl Read {
    fn from(query: &Query) -> Result<Self, Status> {
        let limit = number(query, "limit")?.unwrap_or(0);
        // Less than nothing is no limit.
        let limit = usize::try_from(limit).unwrap_or(0);
        let timeout_seconds =
            number(query, "timeoutSeconds")?.map(|seconds| seconds.max(0).unsigned_abs());
        let selector = Selector::parse(text(query, "labelSelector"), text(query, "fieldSelector"))?;
        Ok(Self { limit, timeout_seconds, selector })
    }
}

/// The one name that a list or a watch asks for, if it does and can be read.
pub(crate) fn chosen_name(query: &Query) -> Option<String> {
    Read::from(query).ok()?.selector.name().map(str::to_owned)
}

/// Asks for that name alone, which the path of a watch of old has. What cannot be read stays as it is, to
/// be refused by who reads it.
///
/// # Errors
/// 400 when the field selector asks for something else.
pub(crate) fn choose_name(query: &mut Query, name: &str) -> Result<(), Status> {
    let Ok(Read { selector, .. }) = Read::from(query) else { return Ok(()) };
    if selector.fields().next().is_none() {
        query.insert("fieldSelector".to_owned(), Selector::of_name(name));
    } else if selector.name() != Some(name) {
        let words = "fieldSelector metadata.name doesn't match requested name";
        return Err(Status::bad_request(words));
    }
    Ok(())
}

/// A `resourceVersion` as a number; `None` for the empty one.
pub(crate) fn revision(text: &str) -> Result<Option<u64>, Status> {
    match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|error: ParseIntError| {
            let why = match error.kind() {
                IntErrorKind::PosOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Status::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {text:?}: \
                 strconv.ParseUint: parsing {text:?}: {why}"
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
    // A watch that says nothing about it begins with what is there, as if it had asked for that.
    let begins = initial_events.is_none() && matching.is_empty() && matches!(given, "" | "0");
    if watch && begins && !continue_token.is_empty() {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        forbid("resourceVersionMatch", why);
    }
    if watch && !matching.is_empty() {
        if !continue_token.is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            forbid("resourceVersionMatch", why);
        }
        if matching != "NotOlderThan" {
            let accepted = "supported values: \"NotOlderThan\"";
            let (path, reason) = ("resourceVersionMatch", Reason::NotSupported);
            errors.push(FieldError::new(path, reason, matching.into(), accepted));
        }
    }
    let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
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
