//! What a request asks for besides its object: the query parameters and `DeleteOptions`.

mod delete;
mod list;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::admission::Inquiry;
use crate::auth::User;
use crate::field::{FieldError, Reason};
use crate::go;
use crate::status::Status;

pub use delete::DeleteOptions;
pub use list::{Freshness, ListOptions};
pub(crate) use list::{choose_name, chosen_name, revision};

/// Query parameters, first value of each name; of `dryRun` all of them, in lines.
pub type Query = BTreeMap<String, String>;

/// The only parameter that is a list.
const DRY_RUN: &str = "dryRun";
/// A manager has at most so many bytes.
const LONGEST_MANAGER: usize = 128;

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
        match query.entry(name.into_owned()) {
            Entry::Vacant(place) => drop(place.insert(value.into_owned())),
            Entry::Occupied(mut known) if known.key() == DRY_RUN => {
                known.get_mut().push('\n');
                known.get_mut().push_str(&value);
            }
            Entry::Occupied(_) => {}
        }
    }
    query
}

/// Whether nothing shall be written; what is asked for instead is an error.
fn dry_run(query: &Query, errors: &mut Vec<FieldError>) -> bool {
    let Some(given) = query.get(DRY_RUN) else { return false };
    let words: Vec<&str> = given.split('\n').collect();
    if words.iter().any(|word| *word != "All") {
        let accepted = "supported values: \"All\"";
        errors.push(FieldError::new(DRY_RUN, Reason::NotSupported, words.into(), accepted));
    }
    true
}

/// A whole number as Go reads it; `None` where the parameter is not there.
fn number(query: &Query, name: &str) -> Result<Option<i64>, Status> {
    let Some(given) = query.get(name) else { return Ok(None) };
    given.parse().map(Some).map_err(|error: std::num::ParseIntError| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let why = match error.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        Status::bad_request(format!("strconv.ParseInt: parsing {given:?}: {why}"))
    })
}

/// Whether Go calls a character printable: everything that is seen, and the blank.
fn is_printable(char: char) -> bool {
    matches!(char, '"' | '\\') || !format!("{:?}", format!("a{char}")).contains('\\')
}

/// What is wrong with the name of a manager.
fn manager_problems(manager: &str) -> Vec<FieldError> {
    let path = "fieldManager";
    let mut errors = Vec::new();
    if manager.len() > LONGEST_MANAGER {
        errors.push(FieldError {
            path: path.to_owned(),
            reason: Reason::TooLong,
            value: None,
            detail: format!("may not be more than {LONGEST_MANAGER} bytes"),
        });
    }
    for (at, char) in manager.char_indices().filter(|(_, char)| !is_printable(*char)) {
        let code = u32::from(char);
        let why = format!("invalid character U+{code:04X} (at position {at})");
        errors.push(FieldError {
            path: path.to_owned(),
            reason: Reason::Invalid,
            value: None,
            detail: format!("{}: {why}", go::quoted(manager)),
        });
    }
    errors
}

/// The manager of those who name none: their program, as far as it is fit to be shown.
fn program(agent: &str) -> String {
    let mut name = String::new();
    let word = agent.split('/').next().unwrap_or_default();
    for char in word.chars().filter(|char| is_printable(*char)) {
        if name.len() + char.len_utf8() > LONGEST_MANAGER {
            break;
        }
        name.push(char);
    }
    name
}

fn text<'a>(query: &'a Query, name: &str) -> &'a str {
    query.get(name).map_or("", String::as_str)
}

/// Whether a boolean parameter is set, as Go reads them: present and neither `0` nor `false`.
pub(crate) fn flag(query: &Query, name: &str) -> bool {
    query.get(name).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
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
        let given = text(query, "fieldManager");
        let mut errors = Vec::new();
        if applies && given.is_empty() {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        if options_kind == "PatchOptions" && !applies && query.contains_key("force") {
            let why = "may not be specified for non-apply patch";
            errors.push(FieldError::forbidden("force", why));
        }
        errors.extend(manager_problems(given));
        let dry_run = dry_run(query, &mut errors);
        let validation = match text(query, "fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let accepted = "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
                let (path, reason) = ("fieldValidation", Reason::NotSupported);
                errors.push(FieldError::new(path, reason, other.into(), accepted));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(Status::invalid_kind("meta.k8s.io", options_kind, "", &errors));
        }
        let manager = match (given, program(agent)) {
            ("", program) if program.is_empty() => "unknown".to_owned(),
            ("", program) => program,
            (given, _) => given.to_owned(),
        };
        Ok(Self {
            dry_run,
            manager,
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

/// The words for a kind that a version does not have.
pub(crate) fn unregistered(kind: &str, version: &str) -> String {
    let scheme = "pkg/runtime/scheme.go:111";
    format!("no kind {kind:?} is registered for version {version:?} in scheme {scheme:?}")
}
