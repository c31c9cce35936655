//! Discovery and OpenAPI: documents rendered from the catalogue, with entity tags.

use std::sync::Arc;

use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG,
    HeaderValue, IF_NONE_MATCH, LAST_MODIFIED, VARY,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};

use super::answer;
use super::body::{Body, full};
use super::negotiate::{self, Encoding, Form};
use super::route::Route;
use crate::discovery;
use crate::openapi::Document;
use crate::server::Shared;
use crate::status::Status;

/// The parameters of the media type of aggregated discovery, which clients check for.
const AGGREGATED: &str = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers for everything that describes the API.
pub(crate) fn respond(
    shared: &Arc<Shared>,
    route: &Route,
    request: &Request<Body>,
) -> Result<Response<Body>, Status> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(Status::method_not_allowed());
    }
    match route {
        Route::OpenApiIndex => {
            let documents = shared.documents();
            let mut response = answer::plain(200, documents.index().to_string());
            dated(&mut response, documents.since());
            return Ok(response);
        }
        Route::OpenApi(path) => {
            let documents = shared.documents();
            return Ok(match documents.document(path) {
                Some(document) => {
                    let mut response = open_api(document, request);
                    dated(&mut response, documents.since());
                    if !response.headers().contains_key(CONTENT_ENCODING) {
                        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
                    }
                    response
                }
                None => answer::text(404, "404 page not found\n"),
            });
        }
        Route::Swagger => {
            if negotiate::wants_swagger_message(request.headers()) {
                let documents = shared.documents();
                let mut response = open_api(documents.swagger_message(), request);
                dated(&mut response, documents.since());
                let media = HeaderValue::from_static(negotiate::SWAGGER_MESSAGE);
                response.headers_mut().insert(CONTENT_TYPE, media);
                return Ok(response);
            }
            negotiate::accepted(request.headers())?;
            let documents = shared.documents();
            let mut response = open_api(documents.swagger(), request);
            dated(&mut response, documents.since());
            return Ok(response);
        }
        _ => {}
    }
    let forms: &[Form] = match route {
        Route::CoreVersions | Route::Groups => &[Form::Object, Form::Discovery],
        _ => &[Form::Object],
    };
    let accepted = negotiate::accepted_as(request.headers(), forms)?;
    let aggregated = accepted.form == Form::Discovery;
    let catalogue = shared.registry.catalogue();
    let kinds = catalogue.all();
    let document = match route {
        Route::CoreVersions if aggregated => Some(discovery::aggregated_core(kinds)),
        Route::Groups if aggregated => Some(discovery::aggregated_groups(kinds)),
        Route::CoreVersions => Some(discovery::core_versions(&shared.address())),
        Route::Groups => Some(discovery::groups(kinds)),
        Route::Group(group) => discovery::group(kinds, group),
        Route::Resources { group, version } => discovery::resources(kinds, group, version),
        Route::Root => Some(paths(kinds.iter().map(|kind| kind.api_version()))),
        _ => None,
    };
    let Some(document) = document else {
        return match route {
            Route::Resources { group, .. } => answer::nothing_here(group),
            _ => answer::nothing_here("none"),
        };
    };
    if !aggregated {
        return Ok(answer::value(200, &document, accepted.encoding));
    }
    let mut response = tagged(request.headers(), &document, accepted.encoding);
    if response.status() == StatusCode::OK {
        let media = format!("{};{AGGREGATED}", accepted.encoding.media_type());
        if let Ok(media) = HeaderValue::try_from(media) {
            response.headers_mut().insert(CONTENT_TYPE, media);
        }
    }
    Ok(response)
}

fn paths(versions: impl Iterator<Item = String>) -> Value {
    let mut paths: Vec<String> = versions
        .map(|version| {
            if version.contains('/') {
                format!("/apis/{version}")
            } else {
                format!("/api/{version}")
            }
        })
        .collect();
    paths.extend(
        [
            "/api",
            "/apis",
            "/healthz",
            "/livez",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/readyz",
            "/version",
        ]
        .map(str::to_owned),
    );
    paths.sort();
    paths.dedup();
    json!({"paths": paths})
}

/// One OpenAPI document. A URL that carries its hash names it forever.
fn open_api(document: &Document, request: &Request<Body>) -> Response<Body> {
    let headers = request.headers();
    let tag = format!("\"{}\"", document.hash);
    if headers.get(IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == tag.as_bytes()) {
        let mut response = Response::new(full(""));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(ETAG, tag);
        }
        return response;
    }
    let gzip = headers
        .get(ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accepted| accepted.contains("gzip"));
    let bytes = if gzip { document.gzip.clone() } else { document.text().into() };
    let mut response = answer::verbatim(200, bytes);
    let named = request.uri().query().is_some_and(|query| query.contains(&document.hash));
    let added = response.headers_mut();
    if gzip {
        added.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if named {
        added
            .insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable, max-age=31536000"));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        added.insert(ETAG, tag);
    }
    added.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    added.append(VARY, HeaderValue::from_static("Accept"));
    response
}

/// Says since when a document is as it is.
fn dated(response: &mut Response<Body>, since: Timestamp) {
    let date = since.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    if let Ok(date) = HeaderValue::from_str(&date) {
        response.headers_mut().insert(LAST_MODIFIED, date);
    }
    response.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
}

/// The document with its tag, or 304 when the client has it.
fn tagged(headers: &HeaderMap, document: &Value, encoding: Encoding) -> Response<Body> {
    let bytes = document.to_string();
    let digest = Sha512::digest(bytes.as_bytes());
    let tag: String = digest.iter().take(32).map(|byte| format!("{byte:02X}")).collect();
    let tag = format!("\"{tag}\"");
    let known = headers.get(IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == tag.as_bytes());
    let mut response = if known {
        let mut response = Response::new(full(""));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        answer::document(200, bytes, encoding)
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    response
}
