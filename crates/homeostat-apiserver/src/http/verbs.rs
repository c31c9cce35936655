//! From a request to an answer: which verb, on what, rendered how.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use http::{HeaderMap, Method, Request, Response};
use serde_json::{Value, json};

use super::body::{self, Body};
use super::call::Call;
use super::dressed::{AsItCame, Dress};
use super::marks::Marks;
use super::negotiate::{self, Accepted};
use super::route::{self, ResourcePath, Route};
use super::websocket::Offer;
use super::{answer, discovery, health, node, parts, patches};
use crate::aside;
use crate::auth::{Outside, Tokens, User, caller, protocol_token};
use crate::kinds::Kind;
use crate::metrics::{self, Measure, Sort};
use crate::registry::options::{self, Query};
use crate::registry::{Registry, Target};
use crate::server::Shared;
use crate::status::Status;

/// Answers a request.
pub(crate) async fn handle(shared: Arc<Shared>, request: Request<Body>) -> Response<Body> {
    let head = request.method() == Method::HEAD;
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let encoding = negotiate::for_refusals(request.headers());
    let mut measure = Measure::begin(&shared.metrics, &shared.registry.env);
    let mut marks = Marks::new(&shared.registry, request.headers());
    let dress = Dress::wanted(&request);
    let answered = route(&shared, request, &mut measure, &mut marks).await;
    if !reads {
        shared.registry.restore();
    }
    // A refusal, too, may tell of something that is not durable yet.
    let settled = if reads { Ok(()) } else { shared.registry.store.settle().await };
    let settled = settled.map_err(|error| Status::internal(error.to_string()));
    let mut response = match settled.and(answered) {
        Ok(response) => response,
        Err(status) => answer::refusal_in(&status, encoding),
    };
    marks.put_on(&mut response);
    let response = dress.put_on(response).await;
    let response = measure.end(response);
    if head { response.map(|_| body::full(Bytes::new())) } else { response }
}

async fn route(
    shared: &Arc<Shared>,
    mut request: Request<Body>,
    measure: &mut Measure,
    marks: &mut Marks,
) -> Result<Response<Body>, Status> {
    protocol_token::take(&mut request);
    let user = caller(shared, &request, marks)?;
    match route::parse(request.uri().path()) {
        Route::Resource(path) => {
            let begins = path.name.is_empty() || path.watch;
            let offer = if begins { Offer::of(&mut request, path.watch) } else { None };
            let response = resource(shared, user, path, request, measure).await?;
            Ok(match offer {
                Some(offer) => offer.take(response, marks),
                None => response,
            })
        }
        Route::Health { root, check } => {
            if check.is_empty() {
                measure.name(Sort::path(&format!("/{root}")), false);
            }
            Ok(health::respond(&shared.registry, &root, &check, &request))
        }
        Route::Metrics => Ok(measured(shared, &request)),
        Route::Version => Ok(answer::verbatim(200, format!("{:#}", version()))),
        Route::TokenKeys => token_keys(shared),
        Route::TokenIssuer => Ok(token_issuer(&request)),
        Route::Unknown => Ok(answer::text(404, "404 page not found\n")),
        other => discovery::respond(shared, &other, &request),
    }
}

/// What the server counts about itself, or a fresh start for it.
fn measured(shared: &Shared, request: &Request<Body>) -> Response<Body> {
    if request.method() == Method::DELETE {
        shared.metrics.reset();
        return answer::plain(200, "metrics reset\n");
    }
    let text = shared.metrics.text(&shared.registry);
    let accepted = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let open = accepted.is_some_and(|accepted| accepted.contains("application/openmetrics-text"));
    let (media, text) =
        if open { (metrics::OPEN, text) } else { (metrics::CLASSIC, metrics::classic(&text)) };
    let mut response = answer::plain(200, text);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

/// The keys with which anybody can check the tokens of service accounts.
fn token_keys(shared: &Shared) -> Result<Response<Body>, Status> {
    let keys = shared.registry.tokens.published();
    let keys = keys.map_err(|error| Status::internal(error.to_string()))?;
    let mut response = answer::verbatim(200, keys.to_string());
    let media = HeaderValue::from_static("application/jwk-set+json");
    response.headers_mut().insert(CONTENT_TYPE, media);
    Ok(response)
}

/// Where those keys are, for whoever knows the issuer only.
fn token_issuer(request: &Request<Body>) -> Response<Body> {
    let header = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = request.uri().authority().map(|host| host.as_str()).or(header);
    answer::verbatim(200, Tokens::discovery(host.unwrap_or("localhost")).to_string())
}

/// What `/version` says. Tools compare it: it names the version whose behaviour is followed.
fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": concat!("v1.36.4-homeostat.", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": concat!("linux/", "amd64"),
    })
}

async fn resource(
    shared: &Arc<Shared>,
    user: Arc<User>,
    path: ResourcePath,
    request: Request<Body>,
    measure: &mut Measure,
) -> Result<Response<Body>, Status> {
    let catalogue = shared.registry.catalogue();
    let Some(kind) = catalogue.find(&path.group, &path.version, &path.plural) else {
        return answer::nothing_here(&path.group);
    };
    let spaced = !path.namespace.is_empty();
    let is_of_one = !path.name.is_empty() || !path.subresource.is_empty();
    if (kind.namespaced && !spaced && is_of_one) || (!kind.namespaced && spaced) {
        return answer::nothing_here(&path.group);
    }
    parts::refuse_unanswerable(kind, &path, request.method())?;
    let target =
        Target { kind: kind.clone(), namespace: path.namespace.clone(), name: path.name.clone() };
    if node::is_for_node(&path) {
        measure.name(Sort::resource(kind, "CONNECT", &path.subresource, "resource"), false);
        let mut answer = node::forward(shared, &user, &target, &path, request).await?;
        answer.extensions_mut().insert(AsItCame);
        return Ok(answer);
    }
    if !kind.is_listed() && !path.name.is_empty() && path.subresource.is_empty() {
        return Err(Status::no_such_resource());
    }
    if kind.is_listed() && !kind.is_stored() {
        // What is made up can be looked at, and nothing else.
        if path.watch {
            return Err(Status::no_such_resource());
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(Status::method_not_allowed());
        }
    }
    let part_is_served =
        path.subresource.is_empty() || kind.subresource(&path.subresource).is_some();
    if !part_is_served {
        return Err(match kind.custom {
            Some(_) => {
                let words = kind.deprecation().map(str::to_owned);
                Status::not_found(kind, &path.name).warned(words.into_iter().collect())
            }
            None => Status::no_such_resource(),
        });
    }
    let warned = |status: Status| {
        let words = kind.deprecation().filter(|_| kind.custom.is_some());
        status.warned(words.map(str::to_owned).into_iter().collect())
    };
    let (parts, body) = request.into_parts();
    let can_be_patched = !path.name.is_empty()
        && match kind.subresource(&path.subresource) {
            Some(part) => part.verbs.iter().any(|verb| verb == "patch"),
            None => kind.serves("patch"),
        };
    if parts.method == Method::PATCH && (kind.custom.is_some() || can_be_patched) {
        patches::check_type(kind, &parts.headers).map_err(warned)?;
    }
    let is_list = parts.method == Method::GET && path.name.is_empty();
    let accepted = accepted(kind, &parts.headers, is_list).map_err(warned)?;
    let mut query = options::read(parts.uri.query().unwrap_or(""));
    if path.watch {
        query.insert("watch".to_owned(), "true".to_owned());
        if !path.name.is_empty() {
            options::choose_name(&mut query, &path.name)?;
        }
    }
    if let Some(sort) = sort(kind, &path, &parts.method, &query, &parts.headers) {
        measure.name(sort, query.get("dryRun").is_some_and(|value| value == "All"));
    }
    let call = Call {
        registry: shared.registry.clone(),
        user,
        target,
        query,
        accepted,
        headers: parts.headers,
        body: read(&shared.registry, body).await?,
        // Who calls in-process may do so from anywhere.
        may_wait: parts.extensions.get::<Outside>().is_some() && aside::others_go_on(),
    };
    let deprecation = kind.deprecation().map(str::to_owned);
    let (is_builtin, is_patch) = (kind.custom.is_none(), parts.method == Method::PATCH);
    let reads = parts.method == Method::GET;
    let answer = verb(shared, call, &parts.method, &path).await;
    let Some(words) = deprecation else { return answer };
    match answer {
        Ok(mut response) => {
            answer::warn_first(&mut response, &words);
            Ok(response)
        }
        // Methods that a path does not have, and patches of types that nobody knows, are turned away
        // before anybody looks at the kind.
        Err(status) if is_builtin && status.code == 405 && !reads => Err(status),
        Err(status) if is_builtin && is_patch && status.code == 415 => Err(status),
        Err(status) => Err(status.warned(vec![words])),
    }
}

/// What the request is counted under; nothing for those that no kind answers.
fn sort(
    kind: &Kind,
    path: &ResourcePath,
    method: &Method,
    query: &Query,
    headers: &HeaderMap,
) -> Option<Sort> {
    let of_many = path.name.is_empty();
    let watches = path.watch || (of_many && options::flag(query, "watch"));
    let verb = metrics::verb(method, of_many, watches, patches::is_apply(headers))?;
    let scope = match (of_many && verb != "POST", path.namespace.is_empty()) {
        (false, _) => "resource",
        (true, false) => "namespace",
        (true, true) => "cluster",
    };
    Some(Sort::resource(kind, verb, &path.subresource, scope))
}

async fn verb(
    shared: &Arc<Shared>,
    call: Call,
    method: &Method,
    path: &ResourcePath,
) -> Result<Response<Body>, Status> {
    let namespaced = call.target.kind.namespaced;
    // Whoever may watch has been let in, and may do nothing else on this way.
    if path.watch && method != Method::GET {
        return Err(Status::method_not_allowed());
    }
    match (method, path.name.as_str(), path.subresource.as_str()) {
        (&Method::GET, "", "") if call.target.kind.is_listed() => {
            call.list_or_watch(&shared.metrics).await
        }
        (&Method::GET, _, "") if path.watch => call.list_or_watch(&shared.metrics).await,
        // Objects are made and emptied out namespace by namespace.
        (&Method::POST | &Method::DELETE, "", "")
            if namespaced && call.target.namespace.is_empty() =>
        {
            Err(Status::method_not_allowed())
        }
        (&Method::POST, "", "") if call.target.namespace.is_empty() != namespaced => {
            call.create(shared).await
        }
        (&Method::DELETE, "", "") if call.target.kind.is_stored() => call.delete_collection().await,
        (_, "", _) => Err(Status::method_not_allowed()),
        (&Method::GET, _, "" | "status") => call.get().await,
        (&Method::PUT, _, sub @ ("" | "status")) => call.update(sub == "status").await,
        (&Method::PATCH, _, sub @ ("" | "status")) => call.patch(sub == "status").await,
        (&Method::DELETE, _, "") => call.delete().await,
        (method, _, sub) if !sub.is_empty() => call.subresource(method, sub).await,
        _ => Err(Status::method_not_allowed()),
    }
}

/// What the client reads, for the built-in kinds in the words of the routes that lead to them.
fn accepted(kind: &Kind, headers: &HeaderMap, is_list: bool) -> Result<Accepted, Status> {
    negotiate::accepted(headers).map_err(|status| {
        let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
        let offered = ["application/json", "application/yaml", "*/*", "application/*"];
        if kind.custom.is_some() || offered.iter().any(|media| header.contains(media)) {
            return status;
        }
        let streams = if is_list {
            ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        } else {
            ""
        };
        let words = format!(
            "406: Not Acceptable\n\nAvailable representations: application/json, \
             application/yaml, application/vnd.kubernetes.protobuf{streams}"
        );
        let mut status = Status::new(406, "NotAcceptable", words);
        status.details = Some(Box::new(json!({})));
        status
    })
}

/// How long a client may take to send a body.
const BODY_PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

async fn read(registry: &Registry, body: Body) -> Result<Bytes, Status> {
    let read = registry.env.timeout(BODY_PATIENCE, body::read(body)).await;
    read.unwrap_or_else(|_| Err(Status::bad_request("the body did not arrive in time")))
}
