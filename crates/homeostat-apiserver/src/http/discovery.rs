//! Discovery and OpenAPI: documents rendered from the catalogue.

use std::sync::Arc;

use http::{Request, Response};

use super::answer;
use super::body::Body;
use super::route::Route;
use crate::server::Shared;
use crate::status::Status;

/// Answers for everything that describes the API.
pub(crate) fn respond(
    _shared: &Arc<Shared>,
    _route: &Route,
    _request: &Request<Body>,
) -> Result<Response<Body>, Status> {
    Ok(answer::text(404, "404 page not found\n"))
}
