//! Requests for a part of an object that name no object, or that would watch the part: nothing answers
//! them, whatever their caller may do. They are refused before anybody acts, because who may see a
//! part of many objects, or watch it, was not asked whether they may do what such a path would lead to.

use http::Method;

use super::route::ResourcePath;
use crate::kinds::Kind;
use crate::status::Status;

/// Refuses such a request, and leaves all others alone.
///
/// # Errors
/// The refusal.
pub(super) fn refuse_unanswerable(
    kind: &Kind,
    path: &ResourcePath,
    method: &Method,
) -> Result<(), Status> {
    if path.subresource.is_empty() || !(path.watch || path.name.is_empty()) {
        return Ok(());
    }
    // What the kind does not have is told elsewhere.
    let Some(part) = kind.subresource(&path.subresource) else { return Ok(()) };
    if path.watch && kind.custom.is_none() {
        return Err(Status::no_such_resource());
    }
    let (of_one, of_many) = match *method {
        Method::PUT => ("update", "update"),
        Method::PATCH => ("patch", "patch"),
        Method::POST => ("create", "create"),
        Method::DELETE => ("delete", "deletecollection"),
        _ => ("get", "list"),
    };
    let asked = if path.watch { "watch" } else { of_many };
    if kind.custom.is_some() && !matches!(asked, "update" | "patch") {
        let words = kind.deprecation().map(str::to_owned);
        let refusal = Status::not_supported(kind, asked);
        return Err(refusal.warned(words.into_iter().collect()));
    }
    Err(if part.verbs.iter().any(|verb| verb == of_one) {
        Status::bad_request("name must be provided")
    } else {
        Status::method_not_allowed()
    })
}
