//! The proxies of Pods, Services and nodes: what a program behind one is asked.
//!
//! Requests and answers are passed on unread, connections that become other ones included. Who asks
//! is told to nobody: tokens and impersonated names end here.

mod place;
mod transport;

use std::sync::Arc;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, AUTHORIZATION, HeaderName, HeaderValue, LOCATION,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use super::body::{Body, full};
use super::node;
use super::route::ResourcePath;
use crate::registry::Target;
use crate::server::Shared;
use crate::status::Status;
use place::Place;

/// What Go writes as `%XX` in a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// What programs say to browsers about their own origin, which is not the API's.
const OF_ORIGINS: [HeaderName; 4] = [
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN,
];

/// Passes a request on to where the name in its path leads.
pub(super) async fn forward(
    shared: &Arc<Shared>,
    target: &Target,
    path: &ResourcePath,
    query: &str,
    mut request: Request<Body>,
) -> Result<Response<Body>, Status> {
    let place = place::find(&shared.registry, target)?;
    let onward = onward(&path.rest);
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if onward.is_empty() && reads && !transport::wants_another(request.headers()) {
        return Ok(redirect(request.uri().path(), query));
    }
    let host = transport::host_of(&request);
    node::rewrite(&mut request, if onward.is_empty() { "/" } else { &onward }, query)?;
    let (address, secure) = match place {
        Place::Agent(node) => {
            let connector = shared.node_connector().ok_or_else(|| node::unanswered(&node))?;
            return Ok(connector.call(&node, request).await);
        }
        Place::Program { address, secure } => (address, secure),
    };
    let host = host.or_else(|| HeaderValue::from_str(&address).ok());
    let mut response = transport::send(&address, secure, host, request)
        .await
        .map_err(|why| Status::unavailable(format!("error trying to reach service: {why}")))?;
    for name in OF_ORIGINS {
        response.headers_mut().remove(name);
    }
    Ok(response)
}

/// Takes away what is nobody's business behind the API: who asks, and as whom.
pub(super) fn hide_the_caller(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    let told: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("impersonate-")).cloned().collect();
    for name in told {
        headers.remove(name);
    }
}

/// The path for the program, from what follows `/proxy` in the URL: decoded and encoded again, so
/// that it means the same, without ways up or steps on the spot. Empty when nothing follows.
fn onward(rest: &str) -> String {
    let decoded: Vec<u8> = percent_decode_str(rest).collect();
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in decoded.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut path = String::new();
    for part in parts {
        path.push('/');
        path.extend(percent_encode(part, ESCAPED));
    }
    if decoded.ends_with(b"/") || path.is_empty() && !decoded.is_empty() {
        path.push('/');
    }
    path
}

/// Sends a client to the same place with a slash: from there, relative links lead where they should.
fn redirect(path: &str, query: &str) -> Response<Body> {
    let mark = if query.is_empty() { "" } else { "?" };
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(location) = HeaderValue::from_str(&format!("{path}/{mark}{query}")) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
